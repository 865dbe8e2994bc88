/* dataset_state.h -- the inside of struct stk_dataset, for src/dataset alone.
 * Owns: see stoker/dataset.h.   Threads: all but the counts and the paths is fixed before anybody
 * else sees it.   Errors: none.   Not here: what the loader sees (dataset_view.h). */
#ifndef DATASET_DATASET_STATE_H
#define DATASET_DATASET_STATE_H

#include <stdatomic.h>

#include "base/context.h"
#include "dataset/dataset_view.h"
#include "dataset/subset.h"
#include "store/remote_settings.h"

struct series; /* series_state.h */

/* What a dataset and all its subsets share. */
struct dataset_source {
    _Atomic uint32_t references; /* pairs with itself: the last one to give back sees all */
    struct stk_context context;
    char *root; /* of the objects' names */
    int remote; /* the objects lie on the network */
    struct index *index;
    struct store *store;
    struct series *series; /* NULL: samples are stored, not windows */
    struct dataset_field *fields;
    uint32_t field_count;
    int plain; /* the fields are the index's, one to one */
    uint64_t chunk_limit;
    /* Full paths of objects, made when first asked for: stk_place promises that they stay. */
    _Atomic(char *) *paths; /* each NULL until made; the maker publishes with release */
};

struct stk_dataset {
    _Atomic uint32_t references;
    struct dataset_source *source;
    struct stk_dataset *parent; /* subset: what its positions mean; else NULL */
    struct subset subset;       /* parent != NULL */
    uint64_t samples;
    uint8_t fingerprint[16];
};

/* A new dataset over source, which it takes over only when it succeeds; parent is kept. */
STK_CHECK stk_status dataset_new(struct stk_dataset **out, struct dataset_source *source,
                                 struct stk_dataset *parent, struct stk_error *err);
struct dataset_source *dataset_source_keep(struct dataset_source *source);
void dataset_source_free(struct dataset_source *source); /* half-built is fine */

/* Has blocking remote calls of this thread ask the context's hook, until _end. */
struct remote_patience dataset_wait_begin(const struct dataset_source *source);
void dataset_wait_end(struct remote_patience before);

/* The full path of a stored object; NULL when memory ran out. */
const char *dataset_object_path(const struct stk_dataset *dataset, uint32_t object);

#endif
