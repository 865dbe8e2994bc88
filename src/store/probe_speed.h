/* probe_speed.h -- reads of a site, started and waited for: one of them, or many at a time.
 * Owns: nothing after return.   Threads: any one at a time; fetches end on the web's.
 * Errors: status, words.   Not here: what is looked for (site_probe.c). */
#ifndef STORE_PROBE_SPEED_H
#define STORE_PROBE_SPEED_H

#include "net/fetch.h"

/* One object that may be read. */
struct probe_object {
    char *key;
    uint64_t size;
};

/* Runs one fetch and waits for it, as patience allows. read_page: not NULL: the answer is a list,
 * and is read into it. */
STK_CHECK stk_status probe_fetch(struct fetch *fetch, struct site_page *page,
                                 struct stk_error *err);

/* Bytes a second with so many reads at a time, over about `seconds`. expected: what was measured
 * with fewer, 0: nothing yet; it decides how long the reads are. */
struct probe_load {
    struct site *site;
    const struct probe_object *objects;
    uint32_t object_count;
    uint32_t at_once;
    double seconds, expected;
};
STK_CHECK stk_status probe_speed(const struct probe_load *load, double *bytes_per_s,
                                 struct stk_error *err);

#endif
