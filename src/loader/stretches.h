/* stretches.h -- small samples that come over a network: where the order keeps neighbours close in
 * time, they are fetched together, in stretches of half a megabyte, instead of one by one.
 * Owns: what it holds of the store, counted in the loader's budget and never more than a quarter of
 * it.   Threads: all under the loader's lock.   Errors: none: what is not held is read sample by
 * sample.   Not here: how a stretch is fetched (store.h), which samples are neighbours (plan.h).
 *
 * In the local order a group of runs is held from the first batch that lies in it to the last, and
 * the next group comes, run by run, while it is used up. In sequence a few runs lie ahead. In the
 * global order all of the data is held, where it is that little. So each byte is fetched once an
 * epoch. */
#ifndef LOADER_STRETCHES_H
#define LOADER_STRETCHES_H

#include "loader/loader_impl.h"

struct stretches;

/* *out is NULL where there is nothing to gain: files, a cache, large samples, a device that keeps
 * the data. limit: the loader's budget. */
STK_CHECK stk_status stretches_new(struct stretches **out, struct stk_loader *loader,
                                   uint64_t limit, struct stk_error *err);
void stretches_free(struct stretches *stretches);         /* NULL is fine, here and below */
uint64_t stretches_size(const struct stk_loader *loader); /* bytes of what is not counted anew */

/* A slot is admitted next: what it lies in is asked for, and what comes behind it. Lets go of what
 * the batches that are still on their way do not need. */
void stretches_admit(struct stretches *stretches, const struct slot *slot);
void stretches_reset(struct stretches *stretches); /* the next slot is somewhere else */

#endif
