/* stk_gen_tensors: every sample takes the same room in its shard, so any thread can write any
 * sample to its place and the shards come out the same. */
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "stoker/pack.h"

#include "base/context.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/npy_header.h"
#include "pack/gen_table.h"
#include "pack/numbered.h"
#include "pack/pattern.h"
#include "pack/staging.h"
#include "pack/tar_writer.h"
#include "pack/write_all.h"
#include "work/cores.h"

#define MAX_THREADS 1024
#define SPAN_BYTES (4u << 20) /* a thread claims about so much at a time */
#define SPAN_SAMPLES 256
#define NPY_CAP 512
#define LABEL_CAP 16
#define NAME_CAP 64

static const struct numbered loose_npy = {"", ".npy", 6}, loose_cls = {"", ".cls", 6};

struct gen {
    struct stk_context *context;
    const struct stk_gen_tensors_options *options;
    struct pattern *pattern;
    struct staging *shards, *loose; /* loose: NULL when not asked for */
    struct numbered shard_names, npy_names, cls_names;
    char npy[NPY_CAP]; /* the header all tensors share */
    size_t npy_len;
    uint64_t payload;                /* bytes of a tensor */
    uint64_t stride;                 /* bytes of a sample in a shard */
    uint64_t span;                   /* samples claimed at a time */
    _Atomic uint64_t next, finished; /* samples claimed and written; only sums are read from them */
    _Atomic int stop;                /* set by whoever fails or is cancelled; all look at it */
};

struct gen_worker {
    struct gen *gen;
    pthread_t thread;
    int started, reports; /* reports: the caller's own thread */
    uint8_t *buffer, *scratch;
    stk_status status;
    struct stk_error error;
};

/* --- places ---------------------------------------------------------------------------------- */

__extension__ typedef unsigned __int128 wide;

static uint64_t shard_first(const struct stk_gen_tensors_options *options, uint64_t shard)
{
    return (uint64_t)((wide)shard * options->samples / options->shards);
}

uint64_t gen_table_shard(const struct stk_gen_tensors_options *options, uint64_t sample)
{
    return (uint64_t)((((wide)sample + 1) * options->shards - 1) / options->samples);
}

static uint64_t padded(uint64_t size)
{
    return (size + TAR_BLOCK - 1) / TAR_BLOCK * TAR_BLOCK;
}

/* --- one sample ------------------------------------------------------------------------------ */

static void add_header(uint8_t *to, const struct numbered *names, uint64_t sample, uint64_t size)
{
    char name[NAME_CAP];

    numbered_name(names, sample, name, sizeof(name));
    tar_writer_header(to, (struct stk_bytes){(const uint8_t *)name, strlen(name)}, size);
}

/* header, npy, padding, header, label, padding. */
static void make_sample(struct gen_worker *worker, uint64_t sample, uint8_t *to)
{
    const struct gen *gen = worker->gen;
    uint64_t npy = gen->npy_len + gen->payload;
    char label[LABEL_CAP];
    int label_len = snprintf(label, sizeof(label), "%" PRIu32, pattern_label(gen->pattern, sample));

    add_header(to, &gen->npy_names, sample, npy);
    memcpy(to + TAR_BLOCK, gen->npy, gen->npy_len);
    pattern_fill(gen->pattern, sample, to + TAR_BLOCK + gen->npy_len, worker->scratch);
    memset(to + TAR_BLOCK + npy, 0, padded(npy) - npy);
    to += TAR_BLOCK + padded(npy);
    add_header(to, &gen->cls_names, sample, (uint64_t)label_len);
    memset(to + TAR_BLOCK, 0, TAR_BLOCK);
    memcpy(to + TAR_BLOCK, label, (size_t)label_len);
}

/* --- files ----------------------------------------------------------------------------------- */

static stk_status fail_write(struct stk_error *err, int number, const struct staging *folder,
                             const char *name)
{
    stk_status status = fail_errno(err, number, "writing failed");
    char path[PATH_MAX];

    snprintf(path, sizeof(path), "%s/%s", staging_target(folder), name);
    fail_at(err, path, STK_NOWHERE);
    return status;
}

static stk_status write_file(const struct staging *folder, const char *name, const void *data,
                             size_t len, uint64_t offset, struct stk_error *err)
{
    int fd = openat(staging_fd(folder), name, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    if (fd < 0)
        return fail_write(err, errno, folder, name);
    int number = write_all_at(fd, data, len, offset);
    if (close(fd) && !number)
        number = errno;
    return number ? fail_write(err, number, folder, name) : STK_OK;
}

static stk_status write_loose(const struct gen *gen, uint64_t sample, const uint8_t *from,
                              struct stk_error *err)
{
    uint64_t npy = gen->npy_len + gen->payload;
    const uint8_t *label = from + TAR_BLOCK + padded(npy) + TAR_BLOCK;
    char name[NAME_CAP];

    numbered_name(&gen->npy_names, sample, name, sizeof(name));
    stk_status status = write_file(gen->loose, name, from + TAR_BLOCK, npy, 0, err);
    if (status)
        return status;
    numbered_name(&gen->cls_names, sample, name, sizeof(name));
    return write_file(gen->loose, name, label, strlen((const char *)label), 0, err);
}

/* Samples [first, last) of one shard. */
static stk_status write_span(struct gen_worker *worker, uint64_t shard, uint64_t first,
                             uint64_t last)
{
    struct gen *gen = worker->gen;
    uint64_t before = first - shard_first(gen->options, shard);
    char name[NAME_CAP];
    stk_status status = STK_OK;

    for (uint64_t i = first; i < last && !status; i++) {
        uint8_t *to = worker->buffer + (i - first) * gen->stride;
        make_sample(worker, i, to);
        if (gen->loose)
            status = write_loose(gen, i, to, &worker->error);
    }
    numbered_name(&gen->shard_names, shard, name, sizeof(name));
    if (!status)
        status = write_file(gen->shards, name, worker->buffer, (last - first) * gen->stride,
                            before * gen->stride, &worker->error);
    return status;
}

/* --- threads --------------------------------------------------------------------------------- */

static stk_status report(struct gen_worker *worker, struct context_timer *timer)
{
    struct gen *gen = worker->gen;
    uint64_t done = atomic_load(&gen->finished);
    struct stk_progress progress = {.what = "generating",
                                    .unit = "samples",
                                    .done = done,
                                    .total = gen->options->samples,
                                    .bytes = done * gen->stride};

    if (worker->reports && context_progress(gen->context, timer, &progress))
        return fail(&worker->error, STK_CANCELLED, "stopped on request");
    return STK_OK;
}

static void *work(void *user)
{
    struct gen_worker *worker = user;
    struct gen *gen = worker->gen;
    uint64_t samples = gen->options->samples;
    struct context_timer timer = {0};

    while (!worker->status && !atomic_load(&gen->stop)) {
        uint64_t first = atomic_fetch_add(&gen->next, gen->span);
        uint64_t last =
            first < samples && samples - first > gen->span ? first + gen->span : samples;
        if (first >= samples)
            break;
        for (uint64_t at = first; at < last && !worker->status;) {
            uint64_t shard = gen_table_shard(gen->options, at);
            uint64_t end = shard_first(gen->options, shard + 1);
            end = end < last ? end : last;
            worker->status = write_span(worker, shard, at, end);
            at = end;
        }
        atomic_fetch_add(&gen->finished, last - first);
        if (!worker->status)
            worker->status = report(worker, &timer);
    }
    if (worker->status)
        atomic_store(&gen->stop, 1);
    return NULL;
}

static stk_status worker_init(struct gen_worker *worker, struct gen *gen, struct stk_error *err)
{
    worker->gen = gen;
    worker->buffer = memory_alloc(gen->span * gen->stride);
    worker->scratch = memory_alloc(pattern_scratch_size(gen->pattern));
    if (!worker->buffer || !worker->scratch)
        return fail_memory(err, gen->span * gen->stride);
    return STK_OK;
}

static stk_status run_workers(struct gen *gen, struct gen_worker *workers, uint32_t count,
                              struct stk_error *err)
{
    stk_status status = STK_OK;

    for (uint32_t i = 0; i < count && !status; i++)
        status = worker_init(&workers[i], gen, err);
    if (status)
        return status;
    for (uint32_t i = 1; i < count; i++) {
        struct cores_place place = {.number = i, .name = "stoker-gen"};
        /* Fewer threads do the same work, later. */
        workers[i].started = !cores_start(&workers[i].thread, work, &workers[i], &place, NULL);
    }
    workers[0].reports = 1;
    work(&workers[0]);
    for (uint32_t i = 1; i < count; i++)
        if (workers[i].started)
            pthread_join(workers[i].thread, NULL);
    for (uint32_t i = 0; i < count && !status; i++)
        if (workers[i].status) {
            status = workers[i].status;
            if (err)
                *err = workers[i].error;
        }
    return status;
}

static stk_status write_samples(struct gen *gen, struct stk_error *err)
{
    uint32_t count = gen->options->threads ? gen->options->threads : cores_usable();
    struct gen_worker *workers = memory_zero(count, sizeof(*workers));
    stk_status status;

    if (!workers)
        return fail_memory(err, count * sizeof(*workers));
    status = run_workers(gen, workers, count, err);
    if (!status) /* whoever came last, the caller's thread says that all is done */
        status = report(&workers[0], &(struct context_timer){0});
    for (uint32_t i = 0; i < count; i++) {
        memory_free(workers[i].buffer);
        memory_free(workers[i].scratch);
    }
    memory_free(workers);
    return status;
}

/* --- the whole ------------------------------------------------------------------------------- */

static stk_status check_options(const struct stk_gen_tensors_options *options,
                                struct stk_error *err)
{
    const struct stk_tensor *shape = &options->shape;

    if (!options->out || !*options->out)
        return fail(err, STK_USAGE, "there is no folder to write to");
    if (options->samples == 0 || options->shards == 0 || options->classes == 0)
        return fail(err, STK_USAGE, "samples, shards and classes must be at least 1");
    if (options->shards > options->samples)
        return fail(err, STK_USAGE, "%" PRIu32 " shards cannot share %" PRIu64 " samples",
                    options->shards, options->samples);
    if (shape->rank < 1 || shape->rank > STK_MAX_RANK || shape->dtype >= STK_DTYPE_COUNT)
        return fail(err, STK_USAGE, "a shape has 1 to %d axes", STK_MAX_RANK);
    for (int32_t i = 0; i < shape->rank; i++)
        if (shape->shape[i] < 1)
            return fail(err, STK_USAGE, "every axis must be at least 1");
    if (stk_tensor_size(shape) > UINT64_C(1) << 32)
        return fail(err, STK_LIMIT, "a sample of more than 4 GiB cannot be generated");
    if (options->threads > MAX_THREADS)
        return fail(err, STK_USAGE, "more than %d threads", MAX_THREADS);
    return STK_OK;
}

static stk_status check_free(const struct gen *gen, struct stk_error *err)
{
    const char *where = NULL;

    if (gen->options->force)
        return STK_OK;
    if (numbered_any(&gen->shard_names, staging_target_fd(gen->shards)))
        where = gen->options->out;
    else if (gen->loose && numbered_any(&loose_npy, staging_target_fd(gen->loose)))
        where = gen->options->loose;
    if (!where)
        return STK_OK;
    stk_status status = fail(err, STK_USAGE, "the folder has generated files already");
    fail_at(err, where, STK_NOWHERE);
    fail_remedy(err, "choose another folder, or replace them with --force");
    return status;
}

static stk_status prepare(struct gen *gen, struct stk_error *err)
{
    const struct stk_gen_tensors_options *options = gen->options;
    stk_status status = check_options(options, err);
    int key_digits = numbered_digits(options->samples, 6);

    if (status)
        return status;
    gen->shard_names = (struct numbered){"shard-", ".tar", numbered_digits(options->shards, 4)};
    gen->npy_names = (struct numbered){"", ".npy", key_digits};
    gen->cls_names = (struct numbered){"", ".cls", key_digits};
    npy_header_write(&options->shape, gen->npy, sizeof(gen->npy), &gen->npy_len);
    gen->payload = stk_tensor_size(&options->shape);
    gen->stride = TAR_BLOCK + padded(gen->npy_len + gen->payload) + 2 * TAR_BLOCK;
    gen->span = SPAN_BYTES / gen->stride;
    gen->span = gen->span < 1 ? 1 : gen->span > SPAN_SAMPLES ? SPAN_SAMPLES : gen->span;
    status = pattern_new(&gen->pattern, &options->shape, options->classes, options->samples,
                         options->seed, err);
    if (!status)
        status = staging_open(&gen->shards, options->out, "shard", err);
    if (!status && options->loose)
        status = staging_open(&gen->loose, options->loose, "loose", err);
    if (!status)
        status = check_free(gen, err);
    return status;
}

/* The zero blocks at the end of each shard. */
static stk_status end_shards(const struct gen *gen, struct stk_error *err)
{
    static const uint8_t zeros[TAR_END];
    stk_status status = STK_OK;
    char name[NAME_CAP];

    for (uint64_t i = 0; i < gen->options->shards && !status; i++) {
        uint64_t samples = shard_first(gen->options, i + 1) - shard_first(gen->options, i);
        numbered_name(&gen->shard_names, i, name, sizeof(name));
        status = write_file(gen->shards, name, zeros, sizeof(zeros), samples * gen->stride, err);
    }
    return status;
}

static stk_status publish_loose(const struct gen *gen, struct stk_error *err)
{
    stk_status status = STK_OK;
    char name[NAME_CAP];

    numbered_remove(&loose_npy, staging_target_fd(gen->loose));
    numbered_remove(&loose_cls, staging_target_fd(gen->loose));
    for (uint64_t i = 0; i < gen->options->samples && !status; i++) {
        numbered_name(&gen->npy_names, i, name, sizeof(name));
        status = staging_publish(gen->loose, name, name, err);
        numbered_name(&gen->cls_names, i, name, sizeof(name));
        if (!status)
            status = staging_publish(gen->loose, name, name, err);
    }
    return status;
}

static stk_status publish(const struct gen *gen, int has_table, struct stk_error *err)
{
    static const struct numbered any_shard = {"shard-", ".tar", 4};
    stk_status status = gen->loose ? publish_loose(gen, err) : STK_OK;
    char name[NAME_CAP];

    numbered_remove(&any_shard, staging_target_fd(gen->shards));
    for (uint64_t i = 0; i < gen->options->shards && !status; i++) {
        numbered_name(&gen->shard_names, i, name, sizeof(name));
        status = staging_publish(gen->shards, name, name, err);
    }
    if (!status && has_table)
        status = staging_publish(gen->shards, GEN_TABLE_NAME, GEN_TABLE_NAME, err);
    return status;
}

stk_status stk_gen_tensors(struct stk_context *context,
                           const struct stk_gen_tensors_options *options,
                           struct stk_pack_result *result, struct stk_error *err)
{
    struct gen gen = {.context = context, .options = options};
    int has_table = context && context->hooks.write_table;

    *result = (struct stk_pack_result){0};
    stk_status status = prepare(&gen, err);
    if (!status)
        status = write_samples(&gen, err);
    if (!status)
        status = end_shards(&gen, err);
    if (!status && has_table) {
        struct gen_table table = {&gen.shard_names, &gen.npy_names, gen.pattern};
        status = gen_table_write(context, options, &table, staging_path(gen.shards), err);
    }
    if (!status)
        status = publish(&gen, has_table, err);
    if (!status)
        *result = (struct stk_pack_result){
            options->samples, options->samples * gen.stride + (uint64_t)options->shards * TAR_END,
            options->shards};
    staging_close(gen.loose);
    staging_close(gen.shards);
    pattern_free(gen.pattern);
    return status;
}
