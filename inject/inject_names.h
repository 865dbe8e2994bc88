/* inject_names.h -- numbers for the names of kernels. CUPTI hands out the same pointer for the same
 * kernel, so a pointer is looked up first; its text is compared, for a module that is unloaded
 * leaves its pointers to others.
 * Owns: its memory.   Threads: one at a time.   Errors: without memory, or with too many names,
 * all further kernels share one name.   Not here: telling the names (inject_sink.c). */
#ifndef INJECT_NAMES_H
#define INJECT_NAMES_H

#include <stddef.h>
#include <stdint.h>

#define NAME_LEN_MOST 512u

struct inject_name {
    const char *text; /* `len` bytes, no NUL */
    uint32_t len;
    uint32_t hash;
    uint32_t id; /* from 1 on */
    int is_told; /* the caller's: the reader knows it */
};

struct inject_names {
    struct names_memory *memory; /* NULL: none yet, or there was none to have */
    uint32_t count;
    uint32_t text_used;
    struct inject_name rest; /* of the kernels that have no name of their own */
};

void inject_names_init(struct inject_names *names);
/* The name behind CUPTI's pointer, which may be NULL. Never NULL; lives until the reset. */
struct inject_name *inject_names_find(struct inject_names *names, const char *pointer);
void inject_names_reset(struct inject_names *names);
/* A name as the program's author wrote it, where the program has loaded C++; else as it is. Writes
 * at most NAME_LEN_MOST bytes and no NUL; returns how many. */
uint32_t inject_names_plain(const char *text, char out[NAME_LEN_MOST]);

#endif
