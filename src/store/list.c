#include "store/list.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fail.h"
#include "base/memory.h"
#include "store/file_open.h"

#define FIRST_BLOCK 4096
#define LARGEST_BLOCK ((size_t)1 << 20)

/* Folders of one list_add that are still to be read: names relative to the list's root. */
struct walk {
    struct list *list;
    const char **folders;
    uint64_t count, cap;
    int root; /* the root, open */
    struct stk_error *err;
};

/* Doubles an array that is full. */
static int make_room(void **items, uint64_t count, uint64_t *cap, size_t size)
{
    if (count < *cap)
        return 1;
    uint64_t wanted = *cap ? *cap * 2 : 16;
    void *grown = wanted < SIZE_MAX / size ? memory_grow(*items, wanted * size) : NULL;
    if (!grown)
        return 0;
    *items = grown;
    *cap = wanted;
    return 1;
}

/* Names lie in blocks: ten million of them need no allocation each. */
static char *name_room(struct list *list, size_t len)
{
    if (len > list->block_size - list->block_used) {
        size_t size = list->block_size ? list->block_size * 2 : FIRST_BLOCK;
        size = size > LARGEST_BLOCK ? LARGEST_BLOCK : size;
        size = size < len ? len : size;
        char **blocks = memory_grow(list->blocks, (list->block_count + 1) * sizeof *blocks);
        if (!blocks)
            return NULL;
        list->blocks = blocks;
        char *block = memory_alloc(size);
        if (!block)
            return NULL;
        list->blocks[list->block_count++] = block;
        list->block_used = 0;
        list->block_size = size;
    }
    char *room = list->blocks[list->block_count - 1] + list->block_used;
    list->block_used += len;
    return room;
}

/* folder + "/" + name; name alone when folder is the root itself. Without a root names are
 * absolute, or URIs. */
static const char *join_names(struct list *list, const char *folder, const char *name)
{
    size_t folder_len = strlen(folder), len = strlen(name);
    size_t slash = folder_len > 0 || !list->root[0];
    char *joined = name_room(list, folder_len + slash + len + 1);
    if (!joined)
        return NULL;
    memcpy(joined, folder, folder_len);
    if (slash)
        joined[folder_len] = '/';
    memcpy(joined + folder_len + slash, name, len + 1);
    return joined;
}

stk_status list_put(struct list *list, const char *below, const char *name, uint64_t size,
                    uint64_t version, struct stk_error *err)
{
    void *items = list->items;
    int room = make_room(&items, list->count, &list->cap, sizeof *list->items);
    list->items = items;
    const char *joined = room ? join_names(list, below, name) : NULL;
    if (!joined)
        return fail_memory(err, sizeof *list->items);
    list->items[list->count++] = (struct listed){joined, size, version};
    return STK_OK;
}

static stk_status add_item(struct list *list, const char *folder, const char *name,
                           const struct stat *found, struct stk_error *err)
{
    struct file_facts facts;
    file_facts_of(found, &facts);
    return list_put(list, folder, name, facts.size, facts.version, err);
}

static stk_status push_folder(struct walk *walk, const char *name)
{
    void *folders = walk->folders;
    int room = make_room(&folders, walk->count, &walk->cap, sizeof *walk->folders);
    walk->folders = folders;
    if (!name || !room)
        return fail_memory(walk->err, sizeof *walk->folders);
    walk->folders[walk->count++] = name;
    return STK_OK;
}

static stk_status add_folder(struct walk *walk, const char *folder, const char *name)
{
    return push_folder(walk, join_names(walk->list, folder, name));
}

static stk_status walk_fail(struct walk *walk, int number, const char *name)
{
    char buf[FILE_PATH_CAP];
    stk_status status = fail_errno(walk->err, number, "cannot list it");
    fail_at(walk->err, file_path(walk->list->root, name, buf), STK_NOWHERE);
    return status;
}

static stk_status walk_fail_entry(struct walk *walk, int number, const char *folder,
                                  const char *name)
{
    const char *joined = join_names(walk->list, folder, name);
    return walk_fail(walk, number, joined ? joined : folder);
}

/* One entry: a file is added, a folder is noted, a link to a file is followed, the rest is counted.
 */
static stk_status walk_entry(struct walk *walk, int fd, const char *folder,
                             const struct dirent *entry)
{
    struct stat found;
    int link = entry->d_type == DT_LNK;
    if (entry->d_name[0] == '.')
        return STK_OK;
    if (entry->d_type == DT_DIR)
        return add_folder(walk, folder, entry->d_name);
    if (entry->d_type == DT_UNKNOWN) {
        link =
            fstatat(fd, entry->d_name, &found, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(found.st_mode);
    }
    if (fstatat(fd, entry->d_name, &found, 0) != 0) {
        if (errno != ENOENT && errno != ELOOP)
            return walk_fail_entry(walk, errno, folder, entry->d_name);
        walk->list->skipped++; /* a dangling link, or a file removed while we looked */
        return STK_OK;
    }
    if (S_ISREG(found.st_mode))
        return add_item(walk->list, folder, entry->d_name, &found, walk->err);
    if (S_ISDIR(found.st_mode) && !link)
        return add_folder(walk, folder, entry->d_name);
    walk->list->skipped++;
    return STK_OK;
}

static stk_status walk_folder(struct walk *walk, const char *folder)
{
    int flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC;
    int fd = openat(walk->root, folder[0] ? folder : ".", flags);
    DIR *stream = fd >= 0 ? fdopendir(fd) : NULL;
    if (!stream) {
        stk_status status = walk_fail(walk, errno, folder);
        if (fd >= 0)
            close(fd);
        return status;
    }
    stk_status status = STK_OK;
    errno = 0;
    for (struct dirent *entry; !status && (entry = readdir(stream)); errno = 0)
        status = walk_entry(walk, fd, folder, entry);
    if (!status && errno)
        status = walk_fail(walk, errno, folder);
    closedir(stream);
    return status;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(((const struct listed *)a)->name, ((const struct listed *)b)->name);
}

/* Folders wait in an array, not on the stack: a tree may be deep, and only one is open at a time.
 */
static stk_status walk_tree(struct list *list, const char *folder, struct stk_error *err)
{
    uint64_t first = list->count;
    struct walk walk = {.list = list, .err = err};
    walk.root = open(list->root[0] ? list->root : "/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (walk.root < 0)
        return walk_fail(&walk, errno, folder);
    stk_status status = push_folder(&walk, folder);
    while (!status && walk.count)
        status = walk_folder(&walk, walk.folders[--walk.count]);
    if (!status && list->count - first > 1)
        qsort(list->items + first, list->count - first, sizeof *list->items, compare_names);
    memory_free(walk.folders);
    close(walk.root);
    return status;
}

/* Length of what names the machine in a URI, "s3://bucket"; 0 for a path. */
static size_t machine_length(const char *path)
{
    const char *slashes = file_is_uri(path) ? strstr(path, "://") : NULL;
    return slashes ? (size_t)(slashes - path) + 3 + strcspn(slashes + 3, "/") : 0;
}

/* Length of the longest folder that both paths are under: "/data" for "/data/a" and "/data/ab". */
static size_t common_folder(const char *a, const char *b)
{
    size_t same = 0, i = 0, machine = machine_length(a);
    if (machine != machine_length(b) || strncmp(a, b, machine))
        return 0;
    for (; a[i] && a[i] == b[i]; i++) {
        if (a[i] == '/')
            same = i;
    }
    int a_ends = a[i] == '\0' || a[i] == '/', b_ends = b[i] == '\0' || b[i] == '/';
    return a_ends && b_ends ? i : same;
}

/* Moves the root up to its first len bytes: names get what was cut off before them. With no root
 * left they become absolute. */
static stk_status move_root(struct list *list, size_t len, struct stk_error *err)
{
    const char *cut = len ? list->root + len + 1 : list->root;
    for (uint64_t i = 0; i < list->count; i++) {
        const char *name = join_names(list, cut, list->items[i].name);
        if (!name)
            return fail_memory(err, strlen(cut) + strlen(list->items[i].name) + 2);
        list->items[i].name = name;
    }
    list->root[len] = '\0';
    return STK_OK;
}

static stk_status refuse_mixed(const struct list *list, const char *base, struct stk_error *err)
{
    const char *other = list->root[0] || !list->count ? list->root : list->items[0].name;
    if (!file_is_uri(other) == !file_is_uri(base))
        return STK_OK;
    stk_status status = fail(err, STK_USAGE, "%s and %s: one is on this machine, the other is not",
                             other[0] ? other : "/", base[0] ? base : "/");
    fail_remedy(err, "open each by itself, or copy one to where the other is");
    return status;
}

stk_status list_base(struct list *list, const char *base, const char **below, struct stk_error *err)
{
    size_t base_len = strlen(base);
    *below = "";
    if (!list->root) {
        list->root = memory_text(base, base_len);
        return list->root ? STK_OK : fail_memory(err, base_len + 1);
    }
    stk_status status = refuse_mixed(list, base, err);
    if (status)
        return status;
    size_t same = common_folder(list->root, base);
    if (list->root[same]) {
        status = move_root(list, same, err);
        if (status)
            return status;
    }
    if (base[same]) {
        const char *rest = same ? base + same + 1 : base;
        char *copy = name_room(list, strlen(rest) + 1);
        if (!copy)
            return fail_memory(err, base_len + 1);
        *below = strcpy(copy, rest);
    }
    return STK_OK;
}

/* The absolute folder that path lies in, or is; *name is the file's name in it, NULL for a folder.
 */
static stk_status find_base(const char *path, int is_folder, char base[PATH_MAX], const char **name)
{
    char parent[PATH_MAX];
    const char *slash = strrchr(path, '/');
    *name = NULL;
    if (is_folder)
        return realpath(path, base) ? STK_OK : STK_NOT_FOUND;
    *name = slash ? slash + 1 : path;
    size_t len = slash == path ? 1 : slash ? (size_t)(slash - path) : 0;
    if (len >= sizeof parent) {
        errno = ENAMETOOLONG;
        return STK_NOT_FOUND;
    }
    memcpy(parent, path, len);
    parent[len] = '\0';
    return realpath(len ? parent : ".", base) ? STK_OK : STK_NOT_FOUND;
}

stk_status list_add(struct list *list, const char *path, struct stk_error *err)
{
    char base[PATH_MAX];
    const char *name, *below;
    struct stat found;
    if (stat(path, &found) != 0 || find_base(path, S_ISDIR(found.st_mode), base, &name)) {
        stk_status status = fail_errno(err, errno, "cannot open it");
        fail_at(err, path, STK_NOWHERE);
        return status;
    }
    if (name && !S_ISREG(found.st_mode)) {
        fail(err, STK_UNSUPPORTED, "it is neither a file nor a folder");
        fail_at(err, path, STK_NOWHERE);
        return STK_UNSUPPORTED;
    }
    if (strcmp(base, "/") == 0)
        base[0] = '\0';
    stk_status status = list_base(list, base, &below, err);
    if (status)
        return status;
    return name ? add_item(list, below, name, &found, err) : walk_tree(list, below, err);
}

void list_free(struct list *list)
{
    for (uint64_t i = 0; i < list->block_count; i++)
        memory_free(list->blocks[i]);
    memory_free(list->blocks);
    memory_free(list->items);
    memory_free(list->root);
    *list = (struct list){0};
}
