#include "loader/resident_feed.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "base/fail.h"
#include "base/memory.h"
#include "work/cores.h"

#define PIECE_BYTES ((uint64_t)4 << 20)
#define PIECES 2      /* one is read while the other is sent */
#define READER_NICE 5 /* as the workers */

enum piece_state {
    PIECE_FREE,  /* the reader's: to be filled */
    PIECE_READ,  /* the sender's: to be sent */
    PIECE_LAST,  /* the sender's: there is nothing more */
    PIECE_BROKEN /* the sender's: the array could not be read */
};

struct piece_buffer {
    uint8_t *data;
    int pinned;
    gpu_address to;
    uint64_t length;
    struct gpu_event *event; /* behind its copy */
    int under_way;           /* the sender's: event was recorded, and is not known to be over */
    enum piece_state state;  /* under lock */
};

struct resident_feed {
    struct gpu *gpu;
    struct store *store;
    struct feed_object *objects;
    uint32_t object_count;
    struct piece_buffer pieces[PIECES];
    uint32_t next; /* the sender's: piece that is sent next */
    enum feed_state state;
    pthread_t thread;
    int started;
    pthread_mutex_t lock;
    pthread_cond_t freed; /* a piece is free, or stop */
    int stop;             /* under lock */
};

/* --- the reader ------------------------------------------------------------------------------- */

/* Waits for the piece; 0: the feed ends. */
static int reader_take(struct resident_feed *feed, struct piece_buffer *piece)
{
    pthread_mutex_lock(&feed->lock);
    while (piece->state != PIECE_FREE && !feed->stop)
        pthread_cond_wait(&feed->freed, &feed->lock);
    int stop = feed->stop;
    pthread_mutex_unlock(&feed->lock);
    return !stop;
}

static void reader_give(struct resident_feed *feed, struct piece_buffer *piece,
                        enum piece_state state)
{
    pthread_mutex_lock(&feed->lock);
    piece->state = state;
    pthread_mutex_unlock(&feed->lock);
}

static stk_status reader_read(struct resident_feed *feed, struct piece_buffer *piece,
                              const struct feed_object *object, uint64_t at)
{
    uint64_t left = object->size - at;
    piece->to = object->to + at;
    piece->length = left < PIECE_BYTES ? left : PIECE_BYTES;
    struct iovec part = {.iov_base = piece->data, .iov_len = piece->length};
    struct store_read read = {.object = object->number,
                              .part_count = 1,
                              .offset = at,
                              .length = piece->length,
                              .parts = &part};
    return store_read_now(feed->store, &read);
}

static void *reader_run(void *user)
{
    struct resident_feed *feed = user;
    uint32_t turn = 0;
    for (uint32_t i = 0; i < feed->object_count; i++)
        for (uint64_t at = 0; at < feed->objects[i].size; at += PIECE_BYTES) {
            struct piece_buffer *piece = &feed->pieces[turn++ % PIECES];
            if (!reader_take(feed, piece))
                return NULL;
            int broken = reader_read(feed, piece, &feed->objects[i], at) != STK_OK;
            reader_give(feed, piece, broken ? PIECE_BROKEN : PIECE_READ);
            if (broken)
                return NULL;
        }
    struct piece_buffer *piece = &feed->pieces[turn % PIECES];
    if (reader_take(feed, piece))
        reader_give(feed, piece, PIECE_LAST);
    return NULL;
}

/* --- making ----------------------------------------------------------------------------------- */

static stk_status make_pieces(struct resident_feed *feed, struct stk_error *err)
{
    stk_status status = STK_OK;
    for (int i = 0; i < PIECES && !status; i++) {
        struct piece_buffer *piece = &feed->pieces[i];
        piece->data = memory_map(PIECE_BYTES);
        if (!piece->data)
            return fail_memory(err, PIECE_BYTES);
        piece->pinned = gpu_pin(feed->gpu, piece->data, PIECE_BYTES, NULL) == STK_OK;
        status = gpu_event_new(feed->gpu, &piece->event, err);
    }
    return status;
}

stk_status resident_feed_new(struct resident_feed **out, const struct feed_options *options,
                             struct stk_error *err)
{
    const struct cores_place place = {.nice = READER_NICE, .name = "stoker-feed"};
    *out = NULL;
    struct resident_feed *feed = memory_zero(1, sizeof *feed);
    if (!feed)
        return fail_memory(err, sizeof *feed);
    pthread_mutex_init(&feed->lock, NULL);
    pthread_cond_init(&feed->freed, NULL);
    feed->gpu = options->gpu;
    feed->store = options->store;
    feed->object_count = options->object_count;
    feed->objects = memory_zero(options->object_count, sizeof *feed->objects);
    stk_status status = STK_OK;
    if (!feed->objects)
        status = fail_memory(err, options->object_count * sizeof *feed->objects);
    else
        memcpy(feed->objects, options->objects, options->object_count * sizeof *feed->objects);
    if (!status)
        status = make_pieces(feed, err);
    if (!status)
        status = cores_start(&feed->thread, reader_run, feed, &place, err);
    if (status)
        goto done;
    feed->started = 1;
    *out = feed;
    feed = NULL;
done:
    resident_feed_free(feed);
    return status;
}

void resident_feed_free(struct resident_feed *feed)
{
    if (!feed)
        return;
    pthread_mutex_lock(&feed->lock);
    feed->stop = 1;
    pthread_cond_signal(&feed->freed);
    pthread_mutex_unlock(&feed->lock);
    if (feed->started)
        pthread_join(feed->thread, NULL);
    for (int i = 0; i < PIECES; i++) {
        struct piece_buffer *piece = &feed->pieces[i];
        if (piece->under_way && gpu_event_sync(feed->gpu, piece->event, NULL))
            piece->under_way = 0; /* the device is lost: nothing reads the piece any more */
        gpu_event_free(feed->gpu, piece->event);
        if (piece->pinned)
            gpu_unpin(feed->gpu, piece->data);
        if (piece->data)
            memory_unmap(piece->data, PIECE_BYTES);
    }
    pthread_cond_destroy(&feed->freed);
    pthread_mutex_destroy(&feed->lock);
    memory_free(feed->objects);
    memory_free(feed);
}

/* --- the sender ------------------------------------------------------------------------------- */

/* Pieces whose copy is over go back to the reader. Not 0: one is still under way. */
static int sender_look(struct resident_feed *feed)
{
    int busy = 0;
    for (int i = 0; i < PIECES; i++) {
        struct piece_buffer *piece = &feed->pieces[i];
        if (!piece->under_way)
            continue;
        if (!gpu_event_over(feed->gpu, piece->event)) {
            busy = 1;
            continue;
        }
        piece->under_way = 0;
        pthread_mutex_lock(&feed->lock);
        piece->state = PIECE_FREE;
        pthread_cond_signal(&feed->freed);
        pthread_mutex_unlock(&feed->lock);
    }
    return busy;
}

static stk_status sender_send(struct resident_feed *feed, struct piece_buffer *piece,
                              struct gpu_stream *stream)
{
    stk_status status = gpu_copy_in(feed->gpu, piece->to, piece->data, piece->length, stream, NULL);
    if (!status)
        status = gpu_event_record(feed->gpu, piece->event, stream, NULL);
    piece->under_way = !status;
    feed->next++;
    if (status && gpu_stream_sync(feed->gpu, stream, NULL)) /* the piece is freed soon */
        status = STK_RESOURCE;
    return status;
}

enum feed_state resident_feed_step(struct resident_feed *feed, struct gpu_stream *stream)
{
    if (feed->state != FEED_MORE)
        return feed->state;
    int busy = sender_look(feed);
    struct piece_buffer *piece = &feed->pieces[feed->next % PIECES];
    pthread_mutex_lock(&feed->lock);
    enum piece_state state = piece->state;
    pthread_mutex_unlock(&feed->lock);
    if (piece->under_way)
        return FEED_MORE;
    if (state == PIECE_READ && sender_send(feed, piece, stream))
        feed->state = FEED_BROKEN;
    else if (state == PIECE_BROKEN)
        feed->state = FEED_BROKEN;
    else if (state == PIECE_LAST && !busy)
        feed->state = FEED_WHOLE;
    return feed->state;
}
