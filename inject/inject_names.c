#include "inject_names.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { NAMES_MOST = 16384, SLOTS = 32768, POINTERS = 8192, TEXTS = 4 << 20 };

/* Reserved at once and filled from the front: only what is used takes memory. */
struct names_memory {
    struct {
        const char *pointer;
        struct inject_name *name;
    } pointers[POINTERS];  /* the last name seen behind pointers that fall here */
    uint16_t slots[SLOTS]; /* by hash of the text: number of the name + 1; 0: free */
    struct inject_name names[NAMES_MOST];
    char texts[TEXTS];
};

static const char rest_text[] = "other kernels";

void inject_names_init(struct inject_names *names)
{
    *names = (struct inject_names){.rest = {.text = rest_text, .len = sizeof rest_text - 1}};
    names->rest.id = NAMES_MOST + 1;
    void *memory = mmap(NULL, sizeof *names->memory, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    names->memory = memory == MAP_FAILED ? NULL : memory;
}

void inject_names_reset(struct inject_names *names)
{
    if (names->memory)
        munmap(names->memory, sizeof *names->memory);
    *names = (struct inject_names){0};
}

/* FNV-1a; *len is that of the text that is kept. */
static uint32_t text_hash(const char *text, uint32_t *len)
{
    uint32_t hash = 2166136261u, count = 0;
    for (; count < NAME_LEN_MOST && text[count]; count++)
        hash = (hash ^ (uint8_t)text[count]) * 16777619u;
    *len = count;
    return hash;
}

static int is_text(const struct inject_name *name, const char *text)
{
    return strncmp(name->text, text, name->len) == 0 &&
           (name->len == NAME_LEN_MOST || !text[name->len]);
}

static struct inject_name *name_add(struct inject_names *names, const char *text, uint32_t len,
                                    uint32_t hash, uint32_t slot)
{
    struct names_memory *memory = names->memory;
    if (names->count == NAMES_MOST || names->text_used + len > TEXTS)
        return &names->rest;
    struct inject_name *name = &memory->names[names->count++];
    memcpy(memory->texts + names->text_used, text, len);
    *name = (struct inject_name){memory->texts + names->text_used, len, hash, names->count, 0};
    names->text_used += len;
    memory->slots[slot] = (uint16_t)names->count;
    return name;
}

static struct inject_name *find_text(struct inject_names *names, const char *text)
{
    struct names_memory *memory = names->memory;
    uint32_t len, hash = text_hash(text, &len);
    uint32_t slot = hash % SLOTS; /* twice as many slots as names: there is a free one */
    for (; memory->slots[slot]; slot = (slot + 1) % SLOTS) {
        struct inject_name *name = &memory->names[memory->slots[slot] - 1];
        if (name->hash == hash && name->len == len && !memcmp(name->text, text, len))
            return name;
    }
    return name_add(names, text, len, hash, slot);
}

struct inject_name *inject_names_find(struct inject_names *names, const char *pointer)
{
    if (!names->memory || !pointer)
        return &names->rest;
    uint64_t bits = (uint64_t)(uintptr_t)pointer * UINT64_C(0x9e3779b97f4a7c15);
    uint64_t place = bits >> 51; /* 13 bits: POINTERS */
    _Static_assert(POINTERS == 1 << 13, "the shift above");
    struct names_memory *memory = names->memory;
    struct inject_name *name = memory->pointers[place].name;
    if (memory->pointers[place].pointer == pointer && is_text(name, pointer))
        return name;
    name = find_text(names, pointer);
    memory->pointers[place].pointer = pointer;
    memory->pointers[place].name = name;
    return name;
}

uint32_t inject_names_plain(const char *text, char out[NAME_LEN_MOST])
{
    char *(*demangle)(const char *name, char *buf, size_t *len, int *status) = NULL;
    char *plain = NULL;
    void *library = NULL;
    if (!strncmp(text, "_Z", 2))
        library = dlopen("libstdc++.so.6", RTLD_LAZY | RTLD_NOLOAD);
    if (library)
        *(void **)&demangle = dlsym(library, "__cxa_demangle");
    if (demangle)
        plain = demangle(text, NULL, NULL, NULL);
    const char *from = plain ? plain : text;
    uint32_t len = (uint32_t)strnlen(from, NAME_LEN_MOST);
    memcpy(out, from, len);
    free(plain);
    if (library)
        dlclose(library);
    return len;
}
