/* gen_crew.h -- writes generated media: threads make samples KEY.jpg and their class KEY.cls, and
 * put them in order into tar shards, or into a folder a class. The bytes do not hang on the number
 * of threads.
 * Owns: nothing after return.   Threads: starts its own; make is called by many, each with a maker
 * of its own.   Errors: status, words in nullable *err; nothing half-written stays.   Not here:
 * what a sample looks like (gen_images.c, gen_audio.c, gen_video.c, gen_points.c). */
#ifndef PACK_GEN_CREW_H
#define PACK_GEN_CREW_H

#include "stoker/pack.h"

#include "base/text.h"

/* What one kind of media brings. */
struct gen_kind {
    const char *suffix; /* of its files: ".jpg" */
    /* A thread's own state. job: what gen_crew_run was given. */
    stk_status (*open)(void **out, const void *job, struct stk_error *err);
    /* Adds the sample's file to `to`: a function of job, sample and label alone. Memory that `to`
     * could not get is reported by the caller. */
    stk_status (*make)(void *maker, uint64_t sample, uint32_t label, struct text *to,
                       struct stk_error *err);
    void (*close)(void *maker); /* NULL is fine */
};

STK_CHECK stk_status gen_crew_run(struct stk_context *context,
                                  const struct stk_gen_options *options,
                                  const struct gen_kind *kind, const void *job,
                                  struct stk_pack_result *result, struct stk_error *err);

#endif
