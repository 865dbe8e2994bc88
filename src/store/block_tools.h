/* block_tools.h -- what a person does with a block cache: look what is in it, check it, empty it.
 * Owns: nothing.   Threads: any; also while others use the cache.   Errors: status, words in
 * nullable *err.   Not here: filling it (block_warm.h). */
#ifndef STORE_BLOCK_TOOLS_H
#define STORE_BLOCK_TOOLS_H

#include "store/block_cache.h"

/* One version of one object, as far as it is there. */
struct block_held {
    uint8_t id[16];
    const char *uri; /* "" when it is not known */
    uint64_t object_size;
    uint64_t blocks, bytes;
};

struct block_total {
    uint64_t limit;   /* 0: nobody has set one */
    uint64_t on_disk; /* bytes that the files take; those still written to count as full */
    uint64_t objects, blocks, bytes;
    uint64_t segments, hidden; /* hidden: of other users, not to be read */
    uint64_t old_layouts;      /* folders of other versions of Stoker */
};

/* Adds up what is in the folder. held is called for each object, sorted by name; may be NULL. */
STK_CHECK stk_status block_tools_list(const char *folder,
                                      void (*held)(void *user, const struct block_held *held),
                                      void *user, struct block_total *total, struct stk_error *err);

struct block_checked {
    uint64_t blocks, bytes, bad;
};
struct block_check_calls {
    void *user;
    /* A block whose bytes are not what they were when it was written: it is dropped. */
    void (*bad)(void *user, const char *uri, uint64_t offset);
    /* Not 0: stop. */
    int (*progress)(void *user, const struct block_checked *so_far, uint64_t blocks);
};
/* Compares every block that can be read with its checksums. */
STK_CHECK stk_status block_tools_verify(const char *folder, const struct block_check_calls *calls,
                                        struct block_checked *checked, struct stk_error *err);

struct block_cleared {
    uint64_t files, bytes;
    uint64_t kept; /* files of others that could not be removed */
};
/* Removes all blocks, and folders of other layouts. Who reads from them at the time reads on. */
STK_CHECK stk_status block_tools_clear(const char *folder, struct block_cleared *cleared,
                                       struct stk_error *err);

#endif
