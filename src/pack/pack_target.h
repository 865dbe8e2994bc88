/* pack_target.h -- where shards are put: a folder of this machine, in which they appear all at once
 * when the last is whole, or a site, to which each is sent as soon as it is whole.
 * Owns: what is on its way.   Threads: one.   Errors: STK_USAGE: there are such shards already.
 * Not here: what a shard holds (pack_tar.c), sending (pack_upload.h). */
#ifndef PACK_PACK_TARGET_H
#define PACK_PACK_TARGET_H

#include <stdint.h>

#include "stoker/context.h"
#include "stoker/error.h"

struct pack_target;

struct pack_target_options {
    struct stk_context *context;
    const char *out;    /* a folder, or a URI */
    const char *prefix; /* PREFIX-0000.tar ... */
    uint32_t shards;    /* that will come; a folder need not know */
    uint8_t source[16]; /* as pack_upload's */
    int force;
};

/* Not 0: out is a URI, and the number of shards must be known. */
int pack_target_is_remote(const char *out);
STK_CHECK stk_status pack_target_open(struct pack_target **out,
                                      const struct pack_target_options *options,
                                      struct stk_error *err);
/* A shard is written to a file of the name that its number has, in a folder. */
#define PACK_TARGET_NAME 24
void pack_target_name(uint32_t number, char name[PACK_TARGET_NAME]);
int pack_target_folder(const struct pack_target *target);
/* What messages call the file; until the next call. */
const char *pack_target_label(struct pack_target *target, uint32_t number);
/* A file could not be written: says what helps. */
void pack_target_advise(const struct pack_target *target, struct stk_error *err);
/* Its file is whole. */
STK_CHECK stk_status pack_target_shard(struct pack_target *target, uint32_t number,
                                       struct stk_error *err);
/* All are: on return they are there under their names. */
STK_CHECK stk_status pack_target_finish(struct pack_target *target, uint32_t shards,
                                        struct stk_error *err);
void pack_target_close(struct pack_target *target); /* NULL is fine */

#endif
