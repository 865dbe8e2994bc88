/* time_order.h -- the windows of a series in the order of time: by the time of the last row, then
 * by entity. Where rows have no times, their number within the entity stands for it. Owns: a table
 * of entities; a cursor another one. Nothing is kept per window.   Threads: an order is immutable
 * once made; a cursor belongs to one thread at a time.   Errors: status, words in nullable *err; a
 * cursor that failed finds its place again by itself.   Not here: the other orders (plan.h), the
 * windows (index/windows_index.h).
 *
 * Which window comes at a position depends on the series and the position alone. Walking on is a
 * merge of the entities' own orders by a heap. Going anywhere else is a selection: pivots narrow
 * down, for every entity at once, how many of its windows come before the position. */
#ifndef LOADER_TIME_ORDER_H
#define LOADER_TIME_ORDER_H

#include <stdint.h>

#include "dataset/dataset_view.h"

struct time_order;
struct time_cursor;

/* STK_USAGE: the dataset is no series, or a subset that is no range of it. */
STK_CHECK stk_status time_order_new(struct time_order **out, const struct stk_dataset *dataset,
                                    struct stk_error *err);
void time_order_free(struct time_order *order); /* NULL is fine */

/* Times are read in blocks that the cursor keeps, one an entity. */
STK_CHECK stk_status time_cursor_new(struct time_cursor **out, const struct time_order *order,
                                     struct stk_error *err);
void time_cursor_free(struct time_cursor *cursor);         /* NULL is fine */
uint64_t time_cursor_size(const struct time_order *order); /* bytes of one */

/* The samples at n positions of the epoch, all of which it has. STK_CORRUPT: times of an entity
 * decrease. */
STK_CHECK stk_status time_cursor_samples(struct time_cursor *cursor, uint64_t position, uint32_t n,
                                         uint64_t *out, struct stk_error *err);

#endif
