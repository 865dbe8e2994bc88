/* file_cache.h -- keeps some of a table's files open, and checks that they are what the table says.
 * Owns: the open files.   Threads: any.   Errors: a status, and errno behind it.
 * Not here: reading (transfer.h), maps (file_map.h). */
#ifndef STORE_FILE_CACHE_H
#define STORE_FILE_CACHE_H

#include "store/store.h"

struct file_cache;

/* An open file, held until it is given back. */
struct file_ref {
    int fd;
    uint64_t size;
    void *place; /* in the cache; NULL: this file is not kept */
    int taken;
};

/* What a test may do to the system's answers: `result` is a count, a descriptor or minus errno, and
 * the return value is believed instead. For STORE_CALL_OPEN it is asked before, with 0: a negative
 * answer is the result. */
enum store_call { STORE_CALL_OPEN, STORE_CALL_READ };
struct store_fault {
    int64_t (*call)(void *user, enum store_call call, int64_t result); /* NULL: none */
    void *user;
};

/* At most limit files are kept; 0: a quarter of what the process may open, at most 1,024. table and
 * fault must outlive the cache. */
STK_CHECK stk_status file_cache_new(struct file_cache **out, const struct object_table *table,
                                    uint32_t limit, const struct store_fault *fault,
                                    struct stk_error *err);
void file_cache_free(struct file_cache *cache); /* all files are given back before */

/* Opens object, or finds it open. STK_STALE when it is not what the table says; that is asked again
 * each tenth of a second. *error_number is errno, or 0. */
STK_CHECK stk_status file_cache_take(struct file_cache *cache, uint32_t object,
                                     struct file_ref *ref, int *error_number);
void file_cache_give(struct file_cache *cache, struct file_ref *ref);

/* STK_STALE when the file behind ref is no longer what the table says. */
STK_CHECK stk_status file_cache_check(struct file_cache *cache, uint32_t object,
                                      const struct file_ref *ref);

#define FILE_CACHE_RECHECK_NS 100000000

#endif
