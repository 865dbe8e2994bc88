#include "pack/gen_crew.h"

#include <assert.h>
#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/context.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/random.h"
#include "pack/numbered.h"
#include "pack/staging.h"
#include "pack/tar_writer.h"
#include "pack/write_all.h"
#include "work/cores.h"

#define MAX_THREADS 1024
#define MAX_CLASSES 1000000
#define SPAN_SAMPLES 4 /* claimed at a time */
#define NAME_CAP 64
#define LABEL_CAP 16
#define FILE_LIMIT (UINT64_C(4) << 30) /* far below what a ustar header can say */

enum { KEY_DEAL = 0x6465616c };

static const char class_prefix[] = "class-";

struct crew {
    struct stk_context *context;
    const struct stk_gen_options *options;
    const struct gen_kind *kind;
    const void *job;
    struct staging *staging;
    struct numbered shard_names, file_names, label_names, class_names;
    struct permutation deal;
    pthread_mutex_t lock; /* of what is below */
    pthread_cond_t turned;
    uint64_t next;   /* first sample that nobody has claimed */
    uint64_t turn;   /* first sample that has no place in its shard yet */
    uint64_t offset; /* that place */
    uint64_t finished, bytes;
    int stop; /* set by whoever fails or is cancelled */
};

struct crew_worker {
    struct crew *crew;
    pthread_t thread;
    int started, reports; /* reports: the caller's own thread */
    struct context_timer timer;
    void *maker;
    struct text text; /* the samples of a span, as they lie in the shard */
    stk_status status;
    struct stk_error error;
};

/* --- places ---------------------------------------------------------------------------------- */

__extension__ typedef unsigned __int128 wide;

static uint64_t shard_first(const struct stk_gen_options *options, uint64_t shard)
{
    return (uint64_t)((wide)shard * options->samples / options->shards);
}

static uint64_t shard_of(const struct stk_gen_options *options, uint64_t sample)
{
    return (uint64_t)((((wide)sample + 1) * options->shards - 1) / options->samples);
}

static uint32_t label_of(const struct crew *crew, uint64_t sample)
{
    return (uint32_t)(permutation_at(&crew->deal, sample) % crew->options->classes);
}

/* --- one sample ------------------------------------------------------------------------------ */

static stk_status check_made(const struct text *text, uint64_t size, struct stk_error *err)
{
    if (text->failed)
        return fail_memory(err, size);
    if (size > FILE_LIMIT)
        return fail(err, STK_LIMIT, "a sample of more than 4 GiB cannot be generated");
    return STK_OK;
}

static void add_zeros(struct text *text, uint64_t count)
{
    static const char zeros[TAR_END];

    assert(count <= sizeof(zeros));
    text_add(text, zeros, count);
}

/* Header and padding around the bytes that lie behind `header`'s place. */
static void close_member(struct text *text, size_t header, const struct numbered *names,
                         uint64_t sample)
{
    uint64_t size = text->len - header - TAR_BLOCK;
    char name[NAME_CAP];

    numbered_name(names, sample, name, sizeof(name));
    add_zeros(text, (TAR_BLOCK - size % TAR_BLOCK) % TAR_BLOCK);
    if (!text->failed)
        tar_writer_header((uint8_t *)text->data + header,
                          (struct stk_bytes){(const uint8_t *)name, strlen(name)}, size);
}

static stk_status add_sample(struct crew_worker *worker, uint64_t sample)
{
    const struct crew *crew = worker->crew;
    uint32_t label = label_of(crew, sample);
    struct text *text = &worker->text;
    size_t header = text->len;

    add_zeros(text, TAR_BLOCK);
    stk_status status = crew->kind->make(worker->maker, sample, label, text, &worker->error);
    if (!status)
        status = check_made(text, text->len - header, &worker->error);
    if (status)
        return status;
    close_member(text, header, &crew->file_names, sample);
    header = text->len;
    add_zeros(text, TAR_BLOCK);
    text_format(text, "%" PRIu32, label);
    close_member(text, header, &crew->label_names, sample);
    return check_made(text, 0, &worker->error);
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

static stk_status write_file(struct crew_worker *worker, const char *name, uint64_t offset)
{
    const struct staging *staging = worker->crew->staging;
    int fd = openat(staging_fd(staging), name, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);

    if (fd < 0)
        return fail_write(&worker->error, errno, staging, name);
    int number = write_all_at(fd, worker->text.data, worker->text.len, offset);
    if (close(fd) && !number)
        number = errno;
    return number ? fail_write(&worker->error, number, staging, name) : STK_OK;
}

/* Samples have their places one after the other: waits until those before have theirs. Not 0: the
 * crew was stopped. */
static int take_place(struct crew *crew, uint64_t first, uint64_t last, uint64_t size,
                      uint64_t *offset)
{
    const struct stk_gen_options *options = crew->options;

    pthread_mutex_lock(&crew->lock);
    while (crew->turn != first && !crew->stop)
        pthread_cond_wait(&crew->turned, &crew->lock);
    int stopped = crew->stop;
    if (!stopped) {
        *offset = crew->offset;
        crew->offset += size;
        if (last == shard_first(options, shard_of(options, first) + 1))
            crew->offset = 0; /* the next one begins another shard */
        crew->turn = last;
        pthread_cond_broadcast(&crew->turned);
    }
    pthread_mutex_unlock(&crew->lock);
    return stopped;
}

/* Once a sample, also where a span of them takes long. */
static stk_status report(struct crew_worker *worker)
{
    struct crew *crew = worker->crew;
    struct stk_progress progress = {
        .what = "generating", .unit = "samples", .total = crew->options->samples};

    if (!worker->reports)
        return STK_OK;
    pthread_mutex_lock(&crew->lock);
    progress.done = crew->finished;
    progress.bytes = crew->bytes;
    pthread_mutex_unlock(&crew->lock);
    if (context_progress(crew->context, &worker->timer, &progress))
        return fail(&worker->error, STK_CANCELLED, "stopped on request");
    return STK_OK;
}

static int is_stopped(struct crew *crew)
{
    pthread_mutex_lock(&crew->lock);
    int stop = crew->stop;
    pthread_mutex_unlock(&crew->lock);
    return stop;
}

/* Samples [first, last) of one shard. */
static stk_status write_span(struct crew_worker *worker, uint64_t first, uint64_t last)
{
    struct crew *crew = worker->crew;
    uint64_t shard = shard_of(crew->options, first), offset = 0;
    stk_status status = STK_OK;
    char name[NAME_CAP];

    for (uint64_t i = first; i < last && !status; i++) {
        if (is_stopped(crew))
            return STK_OK; /* who stopped it has the words */
        status = add_sample(worker, i);
        if (!status)
            status = report(worker);
    }
    if (status)
        return status;
    if (last == shard_first(crew->options, shard + 1)) {
        add_zeros(&worker->text, TAR_END);
        status = check_made(&worker->text, 0, &worker->error);
    }
    if (status || take_place(crew, first, last, worker->text.len, &offset))
        return status;
    numbered_name(&crew->shard_names, shard, name, sizeof(name));
    return write_file(worker, name, offset);
}

static stk_status write_loose(struct crew_worker *worker, uint64_t sample)
{
    struct crew *crew = worker->crew;
    char name[NAME_CAP];
    stk_status status = crew->kind->make(worker->maker, sample, label_of(crew, sample),
                                         &worker->text, &worker->error);

    if (!status)
        status = check_made(&worker->text, worker->text.len, &worker->error);
    numbered_name(&crew->file_names, sample, name, sizeof(name));
    return status ? status : write_file(worker, name, 0);
}

/* --- threads --------------------------------------------------------------------------------- */

/* Claims samples [*first, *last); 0 when there are none left. */
static int claim(struct crew *crew, uint64_t *first, uint64_t *last)
{
    const struct stk_gen_options *options = crew->options;

    pthread_mutex_lock(&crew->lock);
    *first = crew->next;
    int more = *first < options->samples && !crew->stop;
    if (more && options->folders) {
        *last = *first + 1;
    } else if (more) {
        uint64_t end = shard_first(options, shard_of(options, *first) + 1);
        *last = end - *first > SPAN_SAMPLES ? *first + SPAN_SAMPLES : end;
    }
    if (more)
        crew->next = *last;
    pthread_mutex_unlock(&crew->lock);
    return more;
}

static void count(struct crew *crew, uint64_t samples, uint64_t bytes, int stop)
{
    pthread_mutex_lock(&crew->lock);
    crew->finished += samples;
    crew->bytes += bytes;
    crew->stop |= stop;
    if (stop)
        pthread_cond_broadcast(&crew->turned);
    pthread_mutex_unlock(&crew->lock);
}

static void *work(void *user)
{
    struct crew_worker *worker = user;
    struct crew *crew = worker->crew;
    uint64_t first, last;

    while (!worker->status && claim(crew, &first, &last)) {
        worker->text.len = 0;
        worker->status =
            crew->options->folders ? write_loose(worker, first) : write_span(worker, first, last);
        if (!worker->status) {
            count(crew, last - first, worker->text.len, 0);
            worker->status = report(worker);
        }
        if (worker->status)
            count(crew, 0, 0, 1);
    }
    return NULL;
}

static stk_status run_workers(struct crew *crew, struct crew_worker *workers, uint32_t number,
                              struct stk_error *err)
{
    stk_status status = STK_OK;

    for (uint32_t i = 0; i < number && !status; i++) {
        workers[i].crew = crew;
        status = crew->kind->open(&workers[i].maker, crew->job, err);
    }
    if (status)
        return status;
    for (uint32_t i = 1; i < number; i++) {
        struct cores_place place = {.number = i, .name = "stoker-gen"};
        /* Fewer threads do the same work, later. */
        workers[i].started = !cores_start(&workers[i].thread, work, &workers[i], &place, NULL);
    }
    workers[0].reports = 1;
    work(&workers[0]);
    for (uint32_t i = 1; i < number; i++)
        if (workers[i].started)
            pthread_join(workers[i].thread, NULL);
    for (uint32_t i = 0; i < number && !status; i++)
        if (workers[i].status) {
            status = workers[i].status;
            if (err)
                *err = workers[i].error;
        }
    return status;
}

static stk_status write_samples(struct crew *crew, struct stk_error *err)
{
    uint32_t number = crew->options->threads ? crew->options->threads : cores_usable();
    if (number > crew->options->samples)
        number = (uint32_t)crew->options->samples;
    struct crew_worker *workers = memory_zero(number, sizeof(*workers));

    if (!workers)
        return fail_memory(err, number * sizeof(*workers));
    stk_status status = run_workers(crew, workers, number, err);
    if (!status) { /* whoever came last, the caller's thread says that all is done */
        status = report(&workers[0]);
        if (status && err)
            *err = workers[0].error;
    }
    for (uint32_t i = 0; i < number; i++) {
        crew->kind->close(workers[i].maker);
        text_free(&workers[i].text);
    }
    memory_free(workers);
    return status;
}

/* --- a folder a class ------------------------------------------------------------------------ */

/* Calls visit for every folder class-N of the target until it says not 0. */
static int each_class_folder(int target_fd, int (*visit)(int folder_fd, const char *name, int fd))
{
    int copy = openat(target_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *folder = copy < 0 ? NULL : fdopendir(copy);
    int found = 0;

    if (!folder) {
        if (copy >= 0)
            close(copy);
        return 0;
    }
    for (struct dirent *entry; !found && (entry = readdir(folder));) {
        if (strncmp(entry->d_name, class_prefix, sizeof(class_prefix) - 1))
            continue;
        int fd = openat(target_fd, entry->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0)
            continue;
        found = visit(target_fd, entry->d_name, fd);
        close(fd);
    }
    closedir(folder);
    return found;
}

static int class_is_there(int folder_fd, const char *name, int fd)
{
    (void)folder_fd, (void)name, (void)fd;
    return 1;
}

/* Only what an earlier run has made, of whatever kind it was. */
static int class_remove(int folder_fd, const char *name, int fd)
{
    static const char *const suffixes[] = {".jpg", ".png", ".wav", ".flac", ".ogg",
                                           ".avi", ".bin", ".pcd", ".ply",  ".npy"};

    for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++)
        numbered_remove(&(struct numbered){"", suffixes[i], 6}, fd);
    (void)unlinkat(folder_fd, name, AT_REMOVEDIR); /* where something else is left, it stays */
    return 0;
}

static stk_status publish_folders(const struct crew *crew, struct stk_error *err)
{
    int target = staging_target_fd(crew->staging);
    char from[NAME_CAP], class_name[NAME_CAP], to[2 * NAME_CAP];
    stk_status status = STK_OK;

    (void)each_class_folder(target, class_remove);
    for (uint64_t i = 0; i < crew->options->samples && !status; i++) {
        numbered_name(&crew->class_names, label_of(crew, i), class_name, sizeof(class_name));
        numbered_name(&crew->file_names, i, from, sizeof(from));
        snprintf(to, sizeof(to), "%s/%s", class_name, from);
        if (mkdirat(target, class_name, 0777) && errno != EEXIST)
            return fail_write(err, errno, crew->staging, class_name);
        status = staging_publish(crew->staging, from, to, err);
    }
    return status;
}

/* --- the whole ------------------------------------------------------------------------------- */

static stk_status check_options(const struct stk_gen_options *options, struct stk_error *err)
{
    if (!options->out || !*options->out)
        return fail(err, STK_USAGE, "there is no folder to write to");
    if (options->samples == 0 || options->classes == 0)
        return fail(err, STK_USAGE, "samples and classes must be at least 1");
    if (options->classes > MAX_CLASSES)
        return fail(err, STK_USAGE, "there may be at most %d classes", MAX_CLASSES);
    if (!options->folders && options->shards == 0)
        return fail(err, STK_USAGE, "there must be at least 1 shard");
    if (!options->folders && options->shards > options->samples)
        return fail(err, STK_USAGE, "%" PRIu32 " shards cannot share %" PRIu64 " samples",
                    options->shards, options->samples);
    if (options->threads > MAX_THREADS)
        return fail(err, STK_USAGE, "more than %d threads", MAX_THREADS);
    return STK_OK;
}

static stk_status check_free(const struct crew *crew, struct stk_error *err)
{
    int target = staging_target_fd(crew->staging);

    if (crew->options->force)
        return STK_OK;
    if (crew->options->folders ? !each_class_folder(target, class_is_there)
                               : !numbered_any(&crew->shard_names, target))
        return STK_OK;
    stk_status status = fail(err, STK_USAGE, "the folder has generated files already");
    fail_at(err, crew->options->out, STK_NOWHERE);
    fail_remedy(err, "choose another folder, or replace them with --force");
    return status;
}

static stk_status publish_shards(const struct crew *crew, struct stk_error *err)
{
    static const struct numbered any_shard = {"shard-", ".tar", 4};
    stk_status status = STK_OK;
    char name[NAME_CAP];

    numbered_remove(&any_shard, staging_target_fd(crew->staging));
    for (uint64_t i = 0; i < crew->options->shards && !status; i++) {
        numbered_name(&crew->shard_names, i, name, sizeof(name));
        status = staging_publish(crew->staging, name, name, err);
    }
    return status;
}

static void name_files(struct crew *crew)
{
    const struct stk_gen_options *options = crew->options;
    int key_digits = numbered_digits(options->samples, 6);

    crew->shard_names = (struct numbered){"shard-", ".tar", numbered_digits(options->shards, 4)};
    crew->file_names = (struct numbered){"", crew->kind->suffix, key_digits};
    crew->label_names = (struct numbered){"", ".cls", key_digits};
    crew->class_names = (struct numbered){class_prefix, "", numbered_digits(options->classes, 2)};
    permutation_init(&crew->deal, options->samples, random_key(options->seed, KEY_DEAL));
}

stk_status gen_crew_run(struct stk_context *context, const struct stk_gen_options *options,
                        const struct gen_kind *kind, const void *job,
                        struct stk_pack_result *result, struct stk_error *err)
{
    struct crew crew = {.context = context, .options = options, .kind = kind, .job = job};
    stk_status status = check_options(options, err);

    *result = (struct stk_pack_result){0};
    if (status)
        return status;
    name_files(&crew);
    pthread_mutex_init(&crew.lock, NULL);
    pthread_cond_init(&crew.turned, NULL);
    status = staging_open(&crew.staging, options->out, "shard", err);
    if (!status)
        status = check_free(&crew, err);
    if (!status)
        status = write_samples(&crew, err);
    if (!status)
        status = options->folders ? publish_folders(&crew, err) : publish_shards(&crew, err);
    if (!status)
        *result = (struct stk_pack_result){options->samples, crew.bytes,
                                           options->folders ? 0 : options->shards};
    staging_close(crew.staging);
    pthread_cond_destroy(&crew.turned);
    pthread_mutex_destroy(&crew.lock);
    return status;
}
