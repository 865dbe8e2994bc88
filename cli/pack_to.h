/* pack_to.h -- what the files of `stoker pack` share.
 * Owns: nothing.   Threads: one.   Errors: exit statuses; words on standard error.
 * Not here: packing (stoker/pack.h, stoker/series.h). */
#ifndef CLI_PACK_TO_H
#define CLI_PACK_TO_H

#include "options.h"

enum pack_to { PACK_TO_TAR, PACK_TO_SERIES };

struct pack_arguments {
    struct arguments base; /* a series' features, split and window sizes are those of windows */
    const char *out;
    int to, force;
    /* tar */
    const char *prefix;
    uint64_t shard_size, shard_samples;
    /* series */
    const char *entity, *time, *fit_on;
    struct option_list labels, statics;
    int missing, scaler, scale, append;
    uint64_t memory;
    uint32_t threads;
};

int pack_to_tar(struct stk_context *context, const struct pack_arguments *arguments);
int pack_to_series(struct stk_context *context, const struct pack_arguments *arguments);

#endif
