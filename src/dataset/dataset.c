#include "stoker/dataset.h"

#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/parse.h"
#include "dataset/dataset_fields.h"
#include "dataset/dataset_state.h"
#include "dataset/field_heads.h"
#include "dataset/index_keep.h"
#include "dataset/remote_names.h"
#include "dataset/series_open.h"
#include "dataset/series_state.h"
#include "dataset/tokens_open.h"

/* ---- references ---------------------------------------------------------------------------- */

/* Not 0: that was the last one, and it sees what the others did. */
static int give_back(_Atomic uint32_t *references)
{
    return atomic_fetch_sub_explicit(references, 1, memory_order_acq_rel) == 1;
}

struct dataset_source *dataset_source_keep(struct dataset_source *source)
{
    atomic_fetch_add_explicit(&source->references, 1, memory_order_relaxed);
    return source;
}

void dataset_source_free(struct dataset_source *source)
{
    if (!source || !give_back(&source->references))
        return;
    for (uint32_t i = 0; source->paths && i < index_object_count(source->index); i++)
        memory_free(atomic_load_explicit(&source->paths[i], memory_order_relaxed));
    memory_free(source->paths);
    store_close(source->store);
    dataset_fields_free(source);
    index_close(source->index);
    series_free(source->series);
    memory_free(source->root);
    memory_free(source);
}

struct stk_dataset *stk_dataset_keep(struct stk_dataset *dataset)
{
    atomic_fetch_add_explicit(&dataset->references, 1, memory_order_relaxed);
    return dataset;
}

void stk_dataset_close(struct stk_dataset *dataset)
{
    while (dataset && give_back(&dataset->references)) {
        struct stk_dataset *parent = dataset->parent; /* a long chain needs no deep stack */
        subset_reset(&dataset->subset);
        dataset_source_free(dataset->source);
        memory_free(dataset);
        dataset = parent;
    }
}

stk_status dataset_new(struct stk_dataset **out, struct dataset_source *source,
                       struct stk_dataset *parent, struct stk_error *err)
{
    struct stk_dataset *dataset = memory_zero(1, sizeof *dataset);
    *out = dataset;
    if (!dataset)
        return fail_memory(err, sizeof *dataset);
    atomic_init(&dataset->references, 1);
    dataset->source = source;
    dataset->parent = parent ? stk_dataset_keep(parent) : NULL;
    dataset->samples = index_samples(source->index);
    index_fingerprint(source->index, dataset->fingerprint);
    return STK_OK;
}

/* ---- waiting ------------------------------------------------------------------------------- */

static int asks_hook(void *user)
{
    const struct stk_context *context = user;
    return context->hooks.waiting(context->hooks.user);
}

struct remote_patience dataset_wait_begin(const struct dataset_source *source)
{
    const struct stk_context *context = &source->context;
    struct remote_patience patience = {context->hooks.waiting ? asks_hook : NULL, (void *)context};
    return remote_patience_set(patience);
}

void dataset_wait_end(struct remote_patience before)
{
    remote_patience_set(before);
}

/* ---- opening ------------------------------------------------------------------------------- */

static void get_object(const void *owner, uint32_t number, struct object *out)
{
    struct index_object from;
    if (index_object(owner, number, &from, NULL)) /* a damaged block: no such file */
        from = (struct index_object){.name = ""};
    *out = (struct object){.name = from.name, .size = from.size, .version = from.version};
}

/* What is known while a dataset is opened. */
struct opening {
    const char *const *sources;
    uint32_t source_count;
    const struct stk_dataset_options *options;
    struct names names;
    struct index_kept kept; /* its index is the source's */
    struct net *held;       /* data on the network: until the store holds it */
};

/* The options, else the environment. */
static stk_status cache_chosen(struct store_options *out, const struct stk_dataset_options *options,
                               struct stk_error *err)
{
    const char *folder = options->cache ? options->cache : getenv("STOKER_CACHE");
    const char *size = getenv("STOKER_CACHE_SIZE");
    *out = (struct store_options){.cache = folder && *folder ? folder : NULL,
                                  .cache_size = options->cache_size};
    if (out->cache_size || !out->cache || !size || !*size)
        return STK_OK;
    if (parse_size(size, strlen(size), &out->cache_size))
        return STK_OK;
    stk_status status = fail(err, STK_USAGE, "STOKER_CACHE_SIZE is \"%s\": no size", size);
    fail_remedy(err, "write it as 200GiB");
    return status;
}

static stk_status open_store(struct dataset_source *source,
                             const struct stk_dataset_options *options, struct stk_error *err)
{
    struct object_table table = {
        .root = source->root,
        .count = index_object_count(source->index),
        .owner = source->index,
        .get = get_object,
    };
    source->paths = memory_zero(table.count, sizeof *source->paths);
    if (!source->paths)
        return fail_memory(err, table.count * sizeof *source->paths);
    struct store_options cached = {0};
    stk_status status = STK_OK;
    if (source->remote)
        status = cache_chosen(&cached, options, err);
    return status ? status : store_open(&source->store, &table, &cached, err);
}

static stk_status open_index(struct dataset_source *source, struct opening *opening,
                             struct stk_error *err)
{
    const struct names *names = &opening->names;
    const char *first = opening->sources[0];
    const char *root = names->list.root ? names->list.root : "";
    source->root = memory_text(root, strlen(root));
    if (!source->root)
        return fail_memory(err, strlen(root));
    stk_status status =
        index_keep_open(&opening->kept, &source->context, names, opening->options, err);
    source->index = opening->kept.index;
    if (!status && !index_samples(source->index)) {
        uint64_t skipped = index_skipped(source->index);
        char shown[REMOTE_NAMES_SHOWN];
        remote_names_shown(first, shown);
        status = fail(err, STK_NOT_FOUND, "%s holds no samples", shown);
        fail_at(err, shown, STK_NOWHERE);
        if (skipped)
            fail_remedy(err,
                        "%llu entries were passed over: a sample is a plain file named KEY.FIELD",
                        (unsigned long long)skipped);
    }
    return status;
}

static stk_status refuse_window(const struct stk_dataset_options *options, const char *first,
                                struct stk_error *err)
{
    if (!options->window)
        return STK_OK;
    stk_status status =
        fail(err, STK_USAGE, "windows are cut from a series, and %s is none", first);
    fail_remedy(err, "leave out window, horizon, split and their like, or pack the tables first: "
                     "stoker pack --to series");
    return status;
}

static enum names_series series_policy(const struct stk_dataset_options *options)
{
    if (!options->format)
        return NAMES_SERIES_FOUND;
    return strcmp(options->format, "series") ? NAMES_SERIES_NONE : NAMES_SERIES_WANTED;
}

static stk_status open_source(struct dataset_source *source, struct opening *opening,
                              struct stk_error *err)
{
    const struct stk_dataset_options *options = opening->options;
    struct names *names = &opening->names;
    stk_status status = STK_OK;
    names->policy = series_policy(options);
    if (opening->source_count && remote_names_is(opening->sources[0]))
        status = remote_hold(&opening->held, err);
    if (!status)
        status = names_expand(names, opening->sources, opening->source_count, err);
    if (status)
        return status;
    source->remote = names->remote;
    source->chunk_limit = options->chunk_limit ? options->chunk_limit : UINT64_C(1) << 30;
    if (names->series)
        status = series_open(source, names->series, options, err);
    else if (tokens_wanted(options))
        status = tokens_open(source, names, options, err);
    else
        status = refuse_window(options, opening->sources[0], err);
    if (!status && !source->index)
        status = open_index(source, opening, err);
    if (!status)
        status = open_store(source, options, err);
    if (!status && !source->series)
        status = dataset_fields_make(source, options->fields, options->field_count, err);
    return status;
}

/* What the fields are; of data on the network it is kept, so that the next one need not look. */
static stk_status learn_fields(struct stk_dataset *dataset, const struct opening *opening,
                               struct stk_error *err)
{
    struct dataset_source *source = dataset->source;
    if (source->series) /* its fields are known */
        return STK_OK;
    stk_status status = dataset_fields_probe(dataset, err);
    if (status || !source->remote || !opening->kept.index)
        return status;
    field_heads_keep(dataset);
    if (opening->options->share_index)
        index_keep_share(&opening->kept, &source->context);
    return STK_OK;
}

stk_status stk_dataset_open(struct stk_context *context, struct stk_dataset **out,
                            const char *const *sources, uint32_t source_count,
                            const struct stk_dataset_options *options, struct stk_error *err)
{
    static const struct stk_dataset_options none = {0};
    struct opening opening = {sources, source_count, options ? options : &none, .held = NULL};
    struct stk_dataset *dataset = NULL;
    *out = NULL;
    struct dataset_source *source = memory_zero(1, sizeof *source);
    if (!source)
        return fail_memory(err, sizeof *source);
    atomic_init(&source->references, 1);
    if (context)
        source->context = *context;
    struct remote_patience before = dataset_wait_begin(source);
    stk_status status = open_source(source, &opening, err);
    if (!status)
        status = dataset_new(&dataset, source, NULL, err);
    if (status)
        goto done;
    source = NULL; /* the dataset's now */
    status = learn_fields(dataset, &opening, err);
    if (status)
        goto done;
    *out = dataset;
    dataset = NULL;
done:
    dataset_wait_end(before);
    names_free(&opening.names);
    memory_free(opening.kept.beside);
    remote_let_go(opening.held);
    stk_dataset_close(dataset);
    dataset_source_free(source);
    return status;
}

/* ---- subsets ------------------------------------------------------------------------------- */

/* Takes subset over, also when it fails. */
static stk_status open_subset(struct stk_dataset *parent, struct stk_dataset **out,
                              struct subset *subset, const struct hash128 *hash,
                              struct stk_error *err)
{
    stk_status status = dataset_new(out, parent->source, parent, err);
    if (status) {
        subset_reset(subset);
        return status;
    }
    dataset_source_keep(parent->source);
    (*out)->subset = *subset;
    (*out)->samples = subset->count;
    hash128_out(hash, (*out)->fingerprint);
    return STK_OK;
}

/* Kinds are part of the fingerprint: never change them. */
enum subset_tag { SUBSET_TAG_SPLIT = 1, SUBSET_TAG_SELECT = 2, SUBSET_TAG_RANGE = 3 };

static void hash_subset(struct hash128 *hash, const struct stk_dataset *parent, enum subset_tag tag)
{
    hash128_init(hash, tag);
    hash128_add(hash, parent->fingerprint, sizeof parent->fingerprint);
}

stk_status stk_dataset_split(struct stk_dataset *dataset, struct stk_dataset **out,
                             const double *shares, uint32_t part_count, uint32_t part,
                             uint64_t seed, struct stk_error *err)
{
    struct subset subset;
    struct hash128 hash;
    *out = NULL;
    stk_status status =
        subset_split(&subset, dataset->samples, shares, part_count, part, seed, err);
    if (status)
        return status;
    hash_subset(&hash, dataset, SUBSET_TAG_SPLIT);
    hash128_add_number(&hash, seed);
    hash128_add_number(&hash, subset.first);
    hash128_add_number(&hash, subset.count);
    return open_subset(dataset, out, &subset, &hash, err);
}

/* Takes subset over. */
static stk_status open_range(struct stk_dataset *dataset, struct stk_dataset **out,
                             struct subset *subset, struct stk_error *err)
{
    struct hash128 hash;
    hash_subset(&hash, dataset, SUBSET_TAG_RANGE);
    hash128_add_number(&hash, subset->first);
    hash128_add_number(&hash, subset->count);
    return open_subset(dataset, out, subset, &hash, err);
}

stk_status stk_dataset_range(struct stk_dataset *dataset, struct stk_dataset **out, uint64_t first,
                             uint64_t count, struct stk_error *err)
{
    struct subset subset = {.kind = SUBSET_RANGE, .first = count ? first : 0, .count = count};
    uint64_t samples = dataset->samples;
    *out = NULL;
    if (first > samples || count > samples - first)
        return fail(err, STK_USAGE, "%llu samples from %llu on reach past the last of %llu samples",
                    (unsigned long long)count, (unsigned long long)first,
                    (unsigned long long)samples);
    return open_range(dataset, out, &subset, err);
}

stk_status stk_dataset_select(struct stk_dataset *dataset, struct stk_dataset **out,
                              const uint64_t *positions, uint64_t count, struct stk_error *err)
{
    struct subset subset;
    struct hash128 hash;
    *out = NULL;
    stk_status status = subset_select(&subset, dataset->samples, positions, count, err);
    if (status)
        return status;
    if (subset.kind == SUBSET_RANGE) /* the same samples, the same fingerprint */
        return open_range(dataset, out, &subset, err);
    hash_subset(&hash, dataset, SUBSET_TAG_SELECT);
    hash128_add(&hash, positions, count * sizeof *positions);
    return open_subset(dataset, out, &subset, &hash, err);
}
