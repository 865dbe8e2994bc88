/* shard_crew.h -- scans the objects of an input one by one, several at a time, each into a part of
 * its own, and joins the parts in the input's order. Owns: its threads and parts, for the length of
 * crew_run.   Threads: scan runs on several at once, each on its own shard; join, progress and the
 * hooks' other calls on the caller's.   Errors: of the first shard in order that failed.   Not
 * here: what a shard is. */
#ifndef FORMAT_SHARD_CREW_H
#define FORMAT_SHARD_CREW_H

#include "format/format.h"

struct shard_crew;

/* One shard on its way. */
struct shard {
    struct shard_crew *crew;
    const struct format_input *input;
    const struct format_object *object;
    uint32_t number; /* the object's, in the index too */
    struct index_part *part;
    uint64_t skipped; /* what was passed over */
    struct stk_error error;
    stk_status status;
};

/* Fills shard->part and shard->skipped. */
typedef stk_status (*shard_scan)(struct shard *shard, struct stk_error *err);

/* Adds every object of the input to the builder, then scans them all. */
STK_CHECK stk_status crew_run(const struct format_input *input, struct index_builder *builder,
                              shard_scan scan, struct stk_error *err);

/* For a scan: says that `bytes` more were passed, and whether to go on (STK_CANCELLED: no). */
STK_CHECK stk_status shard_tick(struct shard *shard, uint64_t bytes, struct stk_error *err);
/* For a scan: a sentence for the user about this shard, not an error. */
void shard_notice(struct shard *shard, const char *words);

#endif
