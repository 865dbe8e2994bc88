#include "store/upload.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/condition.h"
#include "base/fail.h"
#include "base/memory.h"
#include "store/upload_parts.h"

#define MEMORY_USUAL ((uint64_t)64 << 20)
#define MOST_SLOTS 64
#define POLL_NS 100000000
#define FILE_STEP ((size_t)1 << 20)
#define MOST_SIZE ((uint64_t)5 << 40) /* S3's: 5 TiB */

uint64_t upload_part_length(uint32_t number)
{
    uint32_t doublings = (number - 1) / UPLOAD_STEP;
    return UPLOAD_PART << (doublings < UPLOAD_DOUBLINGS ? doublings : UPLOAD_DOUBLINGS);
}

static void slots_free(struct upload *upload)
{
    for (uint32_t i = 0; i < upload->slot_count; i++)
        memory_unmap(upload->slots[i].memory, upload->slots[i].cap);
    memory_free(upload->slots);
}

static void upload_free(struct upload *upload)
{
    if (!upload)
        return;
    slots_free(upload);
    memory_unmap(upload->memory, upload->cap);
    memory_free(upload->tags);
    memory_free(upload->uri);
    site_page_reset(&upload->left.parts);
    site_close(upload->site);
    net_give(upload->net);
    pthread_cond_destroy(&upload->changed);
    pthread_mutex_destroy(&upload->lock);
    memory_free(upload);
}

static void conditions_init(struct upload *upload)
{
    pthread_mutex_init(&upload->lock, NULL);
    condition_init(&upload->changed);
}

static stk_status check_target(const struct upload *upload, struct stk_error *err)
{
    if (upload->options.size > MOST_SIZE)
        return fail(err, STK_LIMIT, "an object of %llu bytes is more than the 5 TiB that fit",
                    (unsigned long long)upload->options.size);
    if (!upload->site->can_put) {
        fail(err, STK_UNSUPPORTED, "nothing can be written there");
        fail_at(err, upload->uri, STK_NOWHERE);
        fail_remedy(err, "write to a folder, to s3:// or to az://");
        return STK_UNSUPPORTED;
    }
    if (!upload->key[0] || upload->key[strlen(upload->key) - 1] == '/') {
        fail(err, STK_USAGE, "an object to be written needs a name");
        fail_at(err, upload->uri, STK_NOWHERE);
        return STK_USAGE;
    }
    return STK_OK;
}

stk_status upload_open(struct upload **out, const char *uri, const struct upload_options *options,
                       struct stk_error *err)
{
    struct upload *upload = memory_zero(1, sizeof(*upload));
    stk_status status = STK_OK;
    *out = NULL;
    if (!upload)
        return fail_memory(err, sizeof(*upload));
    conditions_init(upload);
    if (options)
        upload->options = *options;
    if (!upload->options.memory)
        upload->options.memory = MEMORY_USUAL;
    upload->uri = memory_text(uri, strlen(uri));
    upload->slots = memory_zero(MOST_SLOTS, sizeof(*upload->slots));
    if (!upload->uri || !upload->slots) {
        status = fail_memory(err, sizeof(*upload->slots) * MOST_SLOTS);
        goto done;
    }
    upload->slot_count = MOST_SLOTS;
    status = net_take(&upload->net, err);
    if (!status)
        status = site_open(&upload->site, upload->net, upload->uri, &upload->key, err);
    if (!status)
        status = check_target(upload, err);
    if (!status && upload->options.resume)
        status = upload_left_find(upload, err);
    if (!status) {
        *out = upload;
        upload = NULL;
    }
done:
    upload_free(upload);
    return status;
}

/* --- parts on their way ---------------------------------------------------------------------- */

/* On the web's thread. */
static void part_done(struct fetch *fetch)
{
    struct upload_slot *slot = fetch->owner;
    struct upload *upload = slot->upload;
    pthread_mutex_lock(&upload->lock);
    if (fetch->status && !upload->status) {
        upload->status = fetch->status;
        upload->error = fetch->error;
    } else if (!fetch->status) {
        snprintf(upload->tags[fetch->call.number - 1], UPLOAD_TAG, "%.*s", UPLOAD_TAG - 1,
                 fetch->upload);
    }
    upload->in_flight -= fetch->call.send_length;
    slot->is_busy = 0;
    pthread_cond_broadcast(&upload->changed);
    pthread_mutex_unlock(&upload->lock);
}

/* Sleeps until a part is done, at most a little. Under the lock. */
static void wait_a_little(struct upload *upload)
{
    condition_wait(&upload->changed, &upload->lock, clock_now() + POLL_NS);
}

static struct upload_slot *free_slot(struct upload *upload)
{
    for (uint32_t i = 0; i < upload->slot_count; i++)
        if (!upload->slots[i].is_busy)
            return &upload->slots[i];
    return NULL;
}

/* Waits for room for a part of so many bytes (0: until all are done). Under the lock. *slot is
 * taken where it is not NULL. */
static stk_status wait_for_room(struct upload *upload, uint64_t length, struct upload_slot **slot,
                                struct stk_error *err)
{
    struct net_patience patience = net_patience();
    for (;;) {
        struct upload_slot *found = free_slot(upload);
        int fits = length && found &&
                   (!upload->in_flight || upload->in_flight + length <= upload->options.memory);
        if (upload->status) {
            if (err)
                *err = upload->error;
            return upload->status;
        }
        if (fits || !upload->in_flight) {
            if (slot)
                *slot = found;
            return STK_OK;
        }
        if (patience.is_over && patience.is_over(patience.user))
            return fail(err, STK_CANCELLED, "stopped while an object was being written");
        wait_a_little(upload);
    }
}

static stk_status room_for_tag(struct upload *upload, struct stk_error *err)
{
    stk_status status = STK_OK;
    pthread_mutex_lock(&upload->lock); /* parts in flight write into the tags */
    if (upload->begun == upload->tag_cap) {
        uint32_t cap = upload->tag_cap ? 2 * upload->tag_cap : 64;
        void *grown = memory_grow(upload->tags, (size_t)cap * UPLOAD_TAG);
        if (grown) {
            upload->tags = grown;
            upload->tag_cap = cap;
        } else {
            status = fail_memory(err, (uint64_t)cap * UPLOAD_TAG);
        }
    }
    pthread_mutex_unlock(&upload->lock);
    return status;
}

/* Sites without ids take parts by the object's name alone. */
static stk_status begin(struct upload *upload, struct stk_error *err)
{
    struct fetch fetch;
    if (upload->has_begun)
        return STK_OK;
    upload->has_begun = 1;
    if (upload->left.id[0]) {
        strcpy(upload->id, upload->left.id);
        return STK_OK;
    }
    upload_fetch(upload, &fetch, SITE_BEGIN, 0);
    stk_status status = fetch_now(&fetch, err);
    if (status == STK_UNSUPPORTED)
        return STK_OK;
    if (!status)
        memcpy(upload->id, fetch.upload, sizeof(upload->id));
    return status;
}

/* Gives the filled memory to a slot and sends it. */
static void send_in(struct upload *upload, struct upload_slot *slot, uint32_t number)
{
    uint8_t *memory = slot->memory;
    size_t cap = slot->cap;
    slot->upload = upload;
    slot->memory = upload->memory;
    slot->cap = upload->cap;
    upload->memory = memory; /* the slot's old one is filled next */
    upload->cap = cap;
    upload_fetch(upload, &slot->fetch, SITE_PART, upload->filled);
    slot->fetch.call.number = number;
    slot->fetch.call.send = slot->memory;
    slot->fetch.call.send_length = upload->filled;
    slot->fetch.done = part_done;
    slot->fetch.owner = slot;
    fetch_start(&slot->fetch);
}

static stk_status send_part(struct upload *upload, struct stk_error *err)
{
    struct upload_slot *slot = NULL;
    uint32_t number = upload->begun + 1;
    if (number > UPLOAD_MOST_PARTS)
        return fail(err, STK_LIMIT, "an object of more than %d parts", UPLOAD_MOST_PARTS);
    stk_status status = begin(upload, err);
    if (!status)
        status = room_for_tag(upload, err);
    if (status)
        return status;
    if (upload_left_has(upload, number, upload->memory, upload->filled, upload->tags[number - 1])) {
        upload->begun++;
        goto done;
    }
    pthread_mutex_lock(&upload->lock);
    status = wait_for_room(upload, upload->filled, &slot, err);
    if (!status) {
        slot->is_busy = 1;
        upload->in_flight += upload->filled;
        upload->begun++;
    }
    pthread_mutex_unlock(&upload->lock);
    if (status)
        return status;
    send_in(upload, slot, number);
done:
    upload->sent += upload->filled;
    upload->filled = 0;
    return status;
}

/* Memory for the part that comes next. */
static stk_status room_for_part(struct upload *upload, size_t length, struct stk_error *err)
{
    if (upload->cap >= length)
        return STK_OK;
    memory_unmap(upload->memory, upload->cap);
    upload->cap = 0;
    upload->memory = memory_map(length);
    if (!upload->memory)
        return fail_memory(err, length);
    upload->cap = length;
    return STK_OK;
}

stk_status upload_write(struct upload *upload, const void *data, size_t length,
                        struct stk_error *err)
{
    const uint8_t *from = data;
    while (length) {
        size_t part = (size_t)upload_part_length(upload->begun + 1);
        stk_status status = STK_OK;
        if (upload->filled == part) /* kept until more comes: the last may be the only one */
            status = send_part(upload, err);
        if (status)
            return status;
        part = (size_t)upload_part_length(upload->begun + 1);
        if (!upload->filled)
            status = room_for_part(upload, part, err);
        if (status)
            return status;
        size_t step = part - upload->filled < length ? part - upload->filled : length;
        memcpy(upload->memory + upload->filled, from, step);
        upload->filled += step;
        from += step;
        length -= step;
    }
    return STK_OK;
}

/* --- the end --------------------------------------------------------------------------------- */

static void cancel_all(struct upload *upload)
{
    for (uint32_t i = 0; i < upload->slot_count; i++) {
        pthread_mutex_lock(&upload->lock);
        int busy = upload->slots[i].is_busy;
        pthread_mutex_unlock(&upload->lock);
        if (busy)
            fetch_cancel(&upload->slots[i].fetch);
    }
    pthread_mutex_lock(&upload->lock);
    while (upload->in_flight || free_slot(upload) == NULL)
        wait_a_little(upload);
    pthread_mutex_unlock(&upload->lock);
}

void upload_abort(struct upload *upload, int keep)
{
    struct fetch fetch;
    if (!upload)
        return;
    cancel_all(upload);
    if (!keep && upload->has_begun && upload->id[0]) {
        upload_fetch(upload, &fetch, SITE_ABORT, 0);
        (void)!fetch_now(&fetch, NULL); /* what is left then is the site's to remove */
    }
    upload_free(upload);
}

/* All of it fits one request. */
static stk_status put_whole(struct upload *upload, struct stk_error *err)
{
    struct fetch fetch;
    upload_fetch(upload, &fetch, SITE_PUT, upload->filled);
    fetch.call.send = upload->memory ? (const void *)upload->memory : "";
    fetch.call.send_length = upload->filled;
    fetch.call.only_new = upload->options.only_new;
    stk_status status = fetch_now(&fetch, err);
    if (status == STK_MISMATCH && fetch.tries > 1 &&
        upload_is_there(upload, fetch.call.send, upload->filled))
        return STK_OK; /* it came by a try whose answer was lost */
    return status;
}

static stk_status finish_parts(struct upload *upload, struct stk_error *err)
{
    struct fetch fetch;
    pthread_mutex_lock(&upload->lock);
    stk_status status = wait_for_room(upload, 0, NULL, err);
    pthread_mutex_unlock(&upload->lock);
    if (status)
        return status;
    const char **tags = memory_zero(upload->begun, sizeof(*tags));
    if (!tags)
        return fail_memory(err, upload->begun * sizeof(*tags));
    for (uint32_t i = 0; i < upload->begun; i++)
        tags[i] = upload->tags[i];
    upload_fetch(upload, &fetch, SITE_FINISH, 0);
    fetch.call.number = upload->begun;
    fetch.call.tags = tags;
    fetch.call.only_new = upload->options.only_new;
    status = fetch_now(&fetch, err);
    if ((status == STK_MISMATCH || status == STK_NOT_FOUND) && fetch.tries > 1 &&
        upload_is_there(upload, NULL, 0))
        status = STK_OK;
    memory_free(tags);
    return status;
}

stk_status upload_finish(struct upload *upload, struct stk_error *err)
{
    stk_status status = STK_OK;
    if (!upload->begun) {
        status = put_whole(upload, err);
    } else {
        if (upload->filled)
            status = send_part(upload, err);
        if (!status)
            status = finish_parts(upload, err);
    }
    if (!status) {
        upload_free(upload);
        return STK_OK;
    }
    if (err && !err->object[0])
        fail_at(err, upload->uri, STK_NOWHERE);
    upload_abort(upload, upload->options.resume);
    return status;
}

/* --- files ----------------------------------------------------------------------------------- */

static stk_status write_file(struct upload *upload, int fd, const char *path, uint64_t size,
                             struct stk_error *err)
{
    uint64_t total = 0;
    uint8_t *memory = memory_alloc(FILE_STEP);
    stk_status status = memory ? STK_OK : fail_memory(err, FILE_STEP);
    while (!status) {
        ssize_t got = read(fd, memory, FILE_STEP);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            status = fail_errno(err, errno, "cannot read %s", path);
        if (got <= 0)
            break;
        total += (uint64_t)got;
        status = upload_write(upload, memory, (size_t)got, err);
    }
    memory_free(memory);
    if (!status && total != size) {
        status = fail(err, STK_STALE, "the file changed while it was read");
        fail_at(err, path, STK_NOWHERE);
    }
    return status;
}

stk_status upload_file(const char *uri, const char *path, const struct upload_options *options,
                       struct stk_error *err)
{
    struct upload *upload = NULL;
    struct upload_options own = options ? *options : (struct upload_options){0};
    struct stat found;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &found)) {
        stk_status status = fail_errno(err, errno, "cannot open %s", path);
        if (fd >= 0)
            close(fd);
        return status;
    }
    own.size = (uint64_t)found.st_size;
    stk_status status = upload_open(&upload, uri, &own, err);
    if (!status)
        status = write_file(upload, fd, path, own.size, err);
    if (status)
        upload_abort(upload, own.resume);
    else
        status = upload_finish(upload, err);
    close(fd);
    return status;
}
