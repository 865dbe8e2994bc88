#include "pack/pack_upload.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/context.h"
#include "base/fail.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/parse.h"
#include "pack/numbered.h"
#include "pack/spool_folder.h"
#include "pack/upload_notes.h"
#include "store/remote_settings.h"
#include "store/upload.h"
#include "work/cores.h"

#define NAME_CAP 320
#define UPLOAD_MEMORY (UINT64_C(32) << 20) /* of each */
#define SMALL (UINT64_C(8) << 20) /* is sent in one piece: there are no parts to go on with */
#define HASH_STEP (1u << 20)
#define SECOND INT64_C(1000000000)
#define NOTE_EVERY_NS SECOND      /* notes are written no oftener, ... */
#define NOTE_SHARE 20             /* ... nor for more than this part of the time */
#define LAST_NOTE_NS (SECOND / 2) /* and, when all is broken off, no longer */

/* A whole file, to be sent. */
struct shard_file {
    uint32_t number;
    int fd; /* -1: none */
};

struct pack_upload {
    struct stk_context *context;
    struct upload_place *place;
    struct spool_folder folder;
    struct upload_list there;   /* shards at the site when this began */
    struct upload_notes before; /* notes of another run; immutable */
    char *prefix;               /* "shard" */
    char *front;                /* "shard-" */
    struct numbered names;
    uint32_t shards;
    int has_claimed; /* the notes there are this run's */
    struct text label;
    _Atomic int stops; /* pairs with is_over */

    pthread_mutex_t lock; /* all below */
    pthread_cond_t changed;
    struct upload_notes notes;
    struct shard_file waiting[PACK_UPLOADS];
    uint32_t waiting_count, running, finished, skipped;
    int ends;   /* no more will come */
    int is_new; /* there are notes that were not written */
    int is_noting;
    int64_t note_after_ns; /* not before */
    uint32_t broken_off;   /* shards of which parts may be at the site */
    stk_status status;     /* of the first that failed */
    struct stk_error error;
    pthread_t threads[PACK_UPLOADS];
    uint32_t thread_count; /* the caller's */
};

/* --- one shard ------------------------------------------------------------------------------- */

static stk_status hash_file(const struct shard_file *file, struct upload_note *note,
                            struct stk_error *err)
{
    struct hash128 hash;
    uint8_t *buf = memory_alloc(HASH_STEP);
    int number = 0;

    note->size = 0;
    if (!buf)
        return fail_memory(err, HASH_STEP);
    hash128_init(&hash, 0);
    for (;;) {
        /* Whole steps, so that the parts that are chained are always the same. */
        size_t have = 0;
        while (have < HASH_STEP && !number) {
            ssize_t got = pread(file->fd, buf + have, HASH_STEP - have, (off_t)(note->size + have));
            if (got == 0)
                break;
            if (got > 0)
                have += (size_t)got;
            else if (errno != EINTR)
                number = errno;
        }
        if (!have || number)
            break;
        hash128_add(&hash, buf, have);
        note->size += have;
    }
    hash128_out(&hash, note->hash);
    memory_free(buf);
    return number ? fail_errno(err, number, "cannot read a shard that was written") : STK_OK;
}

/* What was noted of it fits, and so does what is at the site now. */
static int is_there(const struct pack_upload *upload, struct upload_note *note)
{
    const struct upload_note *old = upload_notes_find(&upload->before, note->name);
    const struct upload_entry *entry = upload_list_find(&upload->there, note->name);

    if (!old || !entry || old->size != note->size || entry->size != note->size ||
        old->version != entry->version || memcmp(old->hash, note->hash, sizeof(note->hash)))
        return 0;
    note->version = old->version;
    return 1;
}

static stk_status send_file(struct pack_upload *upload, const struct shard_file *file,
                            struct upload_note *note, struct stk_error *err)
{
    const struct upload_options options = {
        .size = note->size, .memory = UPLOAD_MEMORY, .resume = note->size > SMALL};
    struct upload_entry entry;
    struct text uri = {0};
    char path[64];
    stk_status status;

    /* The file has no name any more: nothing of it stays, however this process ends. */
    snprintf(path, sizeof(path), "/proc/self/fd/%d", file->fd);
    upload_place_uri(upload->place, note->name, &uri);
    if (uri.failed)
        return fail_memory(err, uri.len);
    status = upload_file(uri.data, path, &options, err);
    if (!status)
        status = upload_place_stat(upload->place, note->name, &entry, err);
    if (!status && entry.size != note->size) {
        status = fail(err, STK_IO, "the object has %" PRIu64 " bytes, and %" PRIu64 " were sent",
                      entry.size, note->size);
        fail_at(err, uri.data, STK_NOWHERE);
    }
    if (!status)
        note->version = entry.version;
    text_free(&uri);
    return status;
}

static stk_status upload_shard(struct pack_upload *upload, const struct shard_file *file,
                               struct upload_note *note, int *was_there, struct stk_error *err)
{
    stk_status status = hash_file(file, note, err);

    *was_there = !status && is_there(upload, note);
    if (status || *was_there)
        return status;
    return send_file(upload, file, note, err);
}

/* --- notes ----------------------------------------------------------------------------------- */

/* A copy, so that it can be written while others add to them. */
static stk_status copy_notes(struct upload_notes *to, const struct upload_notes *from,
                             struct stk_error *err)
{
    stk_status status = STK_OK;

    *to = (struct upload_notes){.is_complete = from->is_complete};
    memcpy(to->source, from->source, sizeof(to->source));
    for (uint64_t i = 0; i < from->count && !status; i++)
        status = upload_notes_add(to, &from->notes[i], err);
    return status;
}

/* Under lock, which it lets go of meanwhile. Notes that cannot be written only cost a later run
 * its time. */
static void write_notes(struct pack_upload *upload)
{
    struct upload_notes copy;
    stk_status status = copy_notes(&copy, &upload->notes, NULL);

    int64_t begun = clock_now();

    upload->is_noting = 1;
    upload->is_new = 0;
    pthread_mutex_unlock(&upload->lock);
    if (!status)
        status = upload_notes_write(&copy, upload->place, upload->prefix, UPLOAD_REPLACE, NULL);
    upload_notes_reset(&copy);
    pthread_mutex_lock(&upload->lock);
    upload->is_noting = 0;
    int64_t now = clock_now(), pause = NOTE_SHARE * (now - begun);
    upload->note_after_ns = now + (pause > NOTE_EVERY_NS ? pause : NOTE_EVERY_NS);
}

/* Under lock. */
static void note_if_due(struct pack_upload *upload)
{
    if (upload->is_new && !upload->status && !upload->is_noting &&
        clock_now() > upload->note_after_ns)
        write_notes(upload);
}

/* --- threads --------------------------------------------------------------------------------- */

static int is_over(void *user)
{
    struct pack_upload *upload = user;

    return atomic_load(&upload->stops);
}

/* Under lock. 0: there will be none. */
static int take_file(struct pack_upload *upload, struct shard_file *file)
{
    while (!upload->waiting_count && !upload->ends && !upload->status)
        pthread_cond_wait(&upload->changed, &upload->lock);
    if (!upload->waiting_count || upload->status)
        return 0;
    *file = upload->waiting[0];
    upload->waiting_count--;
    memmove(upload->waiting, upload->waiting + 1,
            upload->waiting_count * sizeof(upload->waiting[0]));
    upload->running++;
    return 1;
}

/* Under lock. */
static void take_result(struct pack_upload *upload, const struct upload_note *note, int was_there,
                        stk_status status, const struct stk_error *error)
{
    struct stk_error own = {0};

    upload->running--;
    if (!status) {
        status = upload_notes_add(&upload->notes, note, &own);
        error = &own;
    }
    if (status && !upload->status) {
        upload->status = status;
        upload->error = *error;
        atomic_store(&upload->stops, 1); /* the others are not waited for */
    }
    if (!status) {
        upload->finished++;
        upload->skipped += (uint32_t)was_there;
    }
    pthread_cond_broadcast(&upload->changed);
    if (status && note->size > SMALL)
        upload->broken_off++;
    upload->is_new |= !status && !was_there;
    note_if_due(upload);
}

static void *upload_thread(void *user)
{
    struct pack_upload *upload = user;
    struct shard_file file;

    (void)remote_patience_set((struct remote_patience){is_over, upload});
    pthread_mutex_lock(&upload->lock);
    while (take_file(upload, &file)) {
        struct stk_error error = {0};
        char name[NAME_CAP];
        struct upload_note note = {.name = name};
        int was_there;
        pthread_mutex_unlock(&upload->lock);
        numbered_name(&upload->names, file.number, name, sizeof(name));
        stk_status status = upload_shard(upload, &file, &note, &was_there, &error);
        close(file.fd);
        pthread_mutex_lock(&upload->lock);
        take_result(upload, &note, was_there, status, &error);
    }
    pthread_mutex_unlock(&upload->lock);
    return NULL;
}

static stk_status start_threads(struct pack_upload *upload, struct stk_error *err)
{
    stk_status status = STK_OK;

    while (upload->thread_count < PACK_UPLOADS && !status) {
        const struct cores_place place = {.number = upload->thread_count, .name = "stoker-upload"};
        status =
            cores_start(&upload->threads[upload->thread_count], upload_thread, upload, &place, err);
        upload->thread_count += !status;
    }
    return upload->thread_count ? STK_OK : status; /* fewer do it as well */
}

/* Under lock. Waits a tenth of a second for a change. */
static void wait_a_little(struct pack_upload *upload)
{
    struct timespec until;

    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += SECOND / 10;
    if (until.tv_nsec >= SECOND) {
        until.tv_nsec -= SECOND;
        until.tv_sec++;
    }
    pthread_cond_timedwait(&upload->changed, &upload->lock, &until);
}

static void stop_threads(struct pack_upload *upload)
{
    pthread_mutex_lock(&upload->lock);
    upload->ends = 1;
    pthread_cond_broadcast(&upload->changed);
    pthread_mutex_unlock(&upload->lock);
    for (uint32_t i = 0; i < upload->thread_count; i++)
        pthread_join(upload->threads[i], NULL);
    upload->thread_count = 0;
}

static int wants_to_stop(void *user)
{
    const struct stk_context *context = user;

    return context && context->hooks.waiting && context->hooks.waiting(context->hooks.user);
}

/* What the caller's thread waits for ends when the caller wants to stop. */
static struct remote_patience patience_begin(struct stk_context *context)
{
    return remote_patience_set((struct remote_patience){wants_to_stop, context});
}

/* --- beginning ------------------------------------------------------------------------------- */

static int is_shard(const struct pack_upload *upload, const char *name)
{
    size_t front = strlen(upload->front);
    size_t digits = strspn(name + front, "0123456789"); /* the list was asked for by its front */

    return digits >= 4 && !strcmp(name + front + digits, ".tar");
}

static stk_status refuse(const struct pack_upload *upload,
                         const struct pack_upload_options *options, const char *what,
                         struct stk_error *err)
{
    fail(err, STK_USAGE, "%s", what);
    fail_at(err, options->uri, STK_NOWHERE);
    fail_remedy(err, "choose another place or a --prefix other than %s, or replace with --force",
                upload->prefix);
    return STK_USAGE;
}

static int is_same(const struct upload_notes *notes, const struct pack_upload_options *options)
{
    return notes->is_there && !memcmp(notes->source, options->source, sizeof(notes->source));
}

static stk_status check_free(struct pack_upload *upload, const struct pack_upload_options *options,
                             struct stk_error *err)
{
    const struct upload_notes *before = &upload->before;
    int is_open = before->is_there && !before->is_complete;
    uint64_t found = 0;

    for (uint64_t i = 0; i < upload->there.count; i++)
        found += (uint64_t)is_shard(upload, upload->there.entries[i].name);
    if (options->force)
        return STK_OK;
    if (is_open && is_same(before, options)) {
        context_notice(options->context,
                       "a run that was broken off is gone on with: %" PRIu64 " of %" PRIu32
                       " shards are there",
                       found, options->shards);
        return STK_OK;
    }
    if (is_open) /* it may be at work */
        return refuse(upload, options,
                      "a run with other data or options writes there, or was broken off", err);
    return found ? refuse(upload, options, "there are shards of that prefix already", err) : STK_OK;
}

/* Two runs with other data at one place would mix their shards: the first to leave its notes has
 * it. */
static stk_status claim(struct pack_upload *upload, const struct pack_upload_options *options,
                        struct stk_error *err)
{
    struct upload_notes other = {0};
    enum upload_put how = upload->before.is_there ? UPLOAD_REPLACE : UPLOAD_ONLY_NEW;
    stk_status status;

    if (is_same(&upload->before, options) && !upload->before.is_complete)
        return STK_OK;
    status = upload_notes_write(&upload->notes, upload->place, upload->prefix, how, err);
    if (status != STK_MISMATCH)
        return status;
    status = upload_notes_read(&other, upload->place, upload->prefix, err);
    if (!status && !is_same(&other, options)) /* ours, where an answer was lost */
        status = refuse(upload, options, "another run has begun to write there", err);
    upload_notes_reset(&other);
    return status;
}

static stk_status look_around(struct pack_upload *upload, const struct pack_upload_options *options,
                              struct stk_error *err)
{
    struct text front = {0};
    stk_status status;

    text_format(&front, "%s-", options->prefix);
    upload->prefix = memory_text(options->prefix, strlen(options->prefix));
    upload->front = front.failed ? NULL : memory_text(front.data, front.len);
    text_free(&front);
    if (!upload->prefix || !upload->front)
        return fail_memory(err, strlen(options->prefix));
    upload->names = (struct numbered){upload->front, ".tar", numbered_digits(options->shards, 4)};
    status = upload_place_open(&upload->place, options->uri, err);
    if (!status)
        status = upload_place_list(upload->place, upload->front, &upload->there, err);
    if (!status)
        status = upload_notes_read(&upload->before, upload->place, options->prefix, err);
    if (!status)
        status = check_free(upload, options, err);
    /* What is known stays noted, should this run be broken off, too. */
    if (!status && is_same(&upload->before, options))
        status = copy_notes(&upload->notes, &upload->before, err);
    upload->notes.is_complete = 0;
    memcpy(upload->notes.source, options->source, sizeof(options->source));
    if (!status)
        status = claim(upload, options, err);
    upload->has_claimed = !status;
    return status;
}

stk_status pack_upload_open(struct pack_upload **out, const struct pack_upload_options *options,
                            struct stk_error *err)
{
    struct pack_upload *upload = memory_zero(1, sizeof(*upload));
    struct remote_patience before;
    pthread_condattr_t monotonic;
    stk_status status;

    *out = NULL;
    if (!upload)
        return fail_memory(err, sizeof(*upload));
    pthread_mutex_init(&upload->lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&upload->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    upload->context = options->context;
    upload->shards = options->shards;
    before = patience_begin(options->context);
    status = look_around(upload, options, err);
    (void)remote_patience_set(before);
    if (!status)
        status = spool_folder_open(&upload->folder, err);
    if (!status)
        status = start_threads(upload, err);
    if (!status) {
        *out = upload;
        upload = NULL;
    }
    pack_upload_close(upload);
    return status;
}

int pack_upload_folder(const struct pack_upload *upload)
{
    return upload->folder.fd;
}

const char *pack_upload_path(const struct pack_upload *upload)
{
    return upload->folder.path;
}

const char *pack_upload_label(struct pack_upload *upload, uint32_t number)
{
    char name[NAME_CAP];

    numbered_name(&upload->names, number, name, sizeof(name));
    upload->label.len = 0;
    upload_place_uri(upload->place, name, &upload->label);
    return upload->label.data ? upload->label.data : "";
}

/* --- shards ---------------------------------------------------------------------------------- */

/* Under lock. The first failure, if there was one. */
static stk_status told_failure(struct pack_upload *upload, struct stk_error *err)
{
    if (upload->status && err)
        *err = upload->error;
    return upload->status;
}

stk_status pack_upload_add(struct pack_upload *upload, uint32_t number, const char *name,
                           struct stk_error *err)
{
    struct shard_file file = {.number = number,
                              .fd = openat(upload->folder.fd, name, O_RDONLY | O_CLOEXEC)};
    stk_status status = STK_OK;

    if (file.fd < 0)
        return fail_errno(err, errno, "cannot open a shard that was written");
    (void)unlinkat(upload->folder.fd, name, 0);
    pthread_mutex_lock(&upload->lock);
    while (!upload->status && !status && upload->waiting_count + upload->running >= PACK_UPLOADS) {
        wait_a_little(upload);
        note_if_due(upload);
        pthread_mutex_unlock(&upload->lock);
        if (wants_to_stop(upload->context))
            status = fail(err, STK_CANCELLED, "stopped on request");
        pthread_mutex_lock(&upload->lock);
    }
    if (!status)
        status = told_failure(upload, err);
    if (!status) {
        upload->waiting[upload->waiting_count++] = file;
        file.fd = -1; /* a thread's now */
        pthread_cond_broadcast(&upload->changed);
    }
    pthread_mutex_unlock(&upload->lock);
    if (file.fd >= 0)
        close(file.fd);
    return status;
}

/* --- the end --------------------------------------------------------------------------------- */

static stk_status wait_for_all(struct pack_upload *upload, struct stk_error *err)
{
    struct context_timer timer = {0};
    stk_status status = STK_OK;

    pthread_mutex_lock(&upload->lock);
    while (!upload->status && !status && upload->finished < upload->shards) {
        const struct stk_progress progress = {.what = "uploading",
                                              .unit = "shards",
                                              .done = upload->finished,
                                              .total = upload->shards};
        wait_a_little(upload);
        note_if_due(upload);
        pthread_mutex_unlock(&upload->lock);
        if (wants_to_stop(upload->context) || context_progress(upload->context, &timer, &progress))
            status = fail(err, STK_CANCELLED, "stopped on request");
        pthread_mutex_lock(&upload->lock);
    }
    if (!status)
        status = told_failure(upload, err);
    pthread_mutex_unlock(&upload->lock);
    return status;
}

static int is_ours(const struct pack_upload *upload, const char *name)
{
    uint64_t number;
    char wanted[NAME_CAP];
    size_t front = strlen(upload->front);

    if (!parse_u64(name + front, strspn(name + front, "0123456789"), &number) ||
        number >= upload->shards)
        return 0;
    numbered_name(&upload->names, number, wanted, sizeof(wanted));
    return !strcmp(wanted, name);
}

/* Shards of a run before that had more of them, or other names. */
static stk_status remove_others(struct pack_upload *upload, struct stk_error *err)
{
    stk_status status = STK_OK;

    for (uint64_t i = 0; i < upload->there.count && !status; i++) {
        const char *name = upload->there.entries[i].name;
        if (is_shard(upload, name) && !is_ours(upload, name))
            status = upload_place_remove(upload->place, name, err);
    }
    return status;
}

/* What is there is what this run has sent: of two runs that write to one place with --force, the
 * one that ends last sees what the other did. */
static stk_status check_all(struct pack_upload *upload, struct stk_error *err)
{
    struct upload_list there = {0};
    stk_status status = upload_place_list(upload->place, upload->front, &there, err);

    for (uint32_t i = 0; i < upload->shards && !status; i++) {
        char name[NAME_CAP];
        numbered_name(&upload->names, i, name, sizeof(name));
        const struct upload_note *note = upload_notes_find(&upload->notes, name);
        const struct upload_entry *entry = upload_list_find(&there, name);
        if (note && entry && entry->size == note->size && entry->version == note->version)
            continue;
        status = fail(err, STK_STALE, "a shard was %s by somebody else since it was sent",
                      entry ? "replaced" : "removed");
        fail_at(err, pack_upload_label(upload, i), STK_NOWHERE);
        fail_remedy(err, "let one run at a time write there; the same command goes on");
    }
    upload_list_reset(&there);
    return status;
}

static int is_left(const void *user, const char *name)
{
    return is_shard(user, name);
}

static stk_status finish(struct pack_upload *upload, struct stk_error *err)
{
    stk_status status = wait_for_all(upload, err);

    if (status)
        return status;
    stop_threads(upload);
    status = remove_others(upload, err);
    if (!status)
        status = check_all(upload, err);
    if (status)
        return status;
    upload->notes.is_complete = 1;
    status = upload_notes_write(&upload->notes, upload->place, upload->prefix, UPLOAD_REPLACE, err);
    upload->notes.is_complete = !status;
    upload_place_tidy(upload->place, upload->front, is_left, upload);
    if (!status && upload->skipped)
        context_notice(upload->context, "%" PRIu32 " of %" PRIu32 " shards were there already",
                       upload->skipped, upload->shards);
    return status;
}

stk_status pack_upload_finish(struct pack_upload *upload, struct stk_error *err)
{
    struct remote_patience before = patience_begin(upload->context);
    stk_status status = finish(upload, err);

    (void)remote_patience_set(before);
    return status;
}

static int is_late(void *user)
{
    return clock_now() > *(const int64_t *)user;
}

/* So that another run need not send again what is there; or, where this one has left nothing, so
 * that any other may begin. Half a second is all that it gets. */
static void note_the_end(struct pack_upload *upload)
{
    int64_t end = clock_now() + LAST_NOTE_NS;
    struct remote_patience before = remote_patience_set((struct remote_patience){is_late, &end});

    if (upload->notes.count)
        (void)!upload_notes_write(&upload->notes, upload->place, upload->prefix, UPLOAD_REPLACE,
                                  NULL);
    else if (!upload->before.is_there)
        upload_notes_remove(upload->place, upload->prefix);
    (void)remote_patience_set(before);
}

void pack_upload_close(struct pack_upload *upload)
{
    if (!upload)
        return;
    atomic_store(&upload->stops, 1);
    stop_threads(upload);
    for (uint32_t i = 0; i < upload->waiting_count; i++)
        close(upload->waiting[i].fd);
    if (upload->has_claimed && !upload->notes.is_complete)
        note_the_end(upload);
    if (upload->broken_off)
        context_notice(upload->context,
                       "parts of %" PRIu32 " shards stay at the store, and cost what data costs: "
                       "the same command goes on with them",
                       upload->broken_off);
    spool_folder_close(&upload->folder);
    upload_list_reset(&upload->there);
    upload_notes_reset(&upload->before);
    upload_notes_reset(&upload->notes);
    upload_place_close(upload->place);
    pthread_cond_destroy(&upload->changed);
    pthread_mutex_destroy(&upload->lock);
    text_free(&upload->label);
    memory_free(upload->prefix);
    memory_free(upload->front);
    memory_free(upload);
}
