/* site_probe.h -- a look at the place of a URI, step by step: is its host known, does it answer, is
 * it trusted, are the credentials taken, can it be listed and read, how fast.
 * Owns: nothing after return.   Threads: any; rows come on the caller's.   Errors: those of the
 * first step without which nothing works; words hold no secret.   Not here: drawing (cli). */
#ifndef STORE_SITE_PROBE_H
#define STORE_SITE_PROBE_H

#include <stdint.h>

#include "stoker/error.h"

enum probe_state { PROBE_GOOD, PROBE_ABSENT, PROBE_BAD };

struct probe_row {
    const char *step;
    enum probe_state state; /* ABSENT: does not apply here */
    const char *value, *remedy;
    double seconds;
    uint32_t at_once;   /* speed: requests at a time */
    double bytes_per_s; /* speed */
};

struct probe_options {
    const char *uri;
    uint32_t most_at_once; /* of the speeds: 1, 2, 4, ... up to this */
    double seconds;        /* of each speed */
    void (*row)(void *user, const struct probe_row *row);
    void *user;
};

STK_CHECK stk_status site_probe(const struct probe_options *options, struct stk_error *err);

#endif
