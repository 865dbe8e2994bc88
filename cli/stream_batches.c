#include <time.h>

#include "exit_status.h"
#include "interrupt.h"
#include "message.h"
#include "progress_bar.h"
#include "stream.h"

#define WAIT_NS 200000000 /* how late a signal may be seen while no batch comes */
#define DRAW_NS 100000000

static int64_t now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

/* EXIT_DONE, or the digest could not be made. */
static int hash(struct stream *stream, struct stk_batch *batch)
{
    struct stk_error err;

    if (stream->arguments->no_digest)
        return EXIT_DONE;
    stk_status status = stk_digest_add(&stream->digest, batch, &err);
    /* Hashed again only after a resume: till then the two are the same. */
    if (!status && stream->has_run_digest)
        status = stk_digest_add(&stream->run_digest, batch, &err);
    return status ? message_error(&err) : EXIT_DONE;
}

static int take(struct stream *stream, struct stk_batch *batch)
{
    int status = hash(stream, batch);

    stream->batches++;
    stream->samples += batch->real;
    stream->bytes += batch->bytes;
    stk_batch_release(batch);
    return status;
}

/* Draws the bar at most ten times a second; a call costs one reading of the clock. */
static void draw(const struct stream *stream, int64_t *next)
{
    int64_t time = now();

    if (time < *next)
        return;
    *next = time + DRAW_NS;
    uint64_t total = stk_loader_steps(stream->loader) * stream->arguments->epochs;
    if (stream->arguments->stop_after < total)
        total = stream->arguments->stop_after;
    struct stk_progress progress = {.what = "streaming",
                                    .unit = "batches",
                                    .done = stream->batches,
                                    .total = total,
                                    .bytes = stream->bytes};
    progress_bar_draw(&progress);
}

int stream_batches(struct stream *stream)
{
    struct stk_batch *batch;
    struct stk_error err;
    uint64_t epoch, position;
    int status = EXIT_DONE;
    int64_t begun = now(), next_draw = begun + DRAW_NS;

    stk_loader_position(stream->loader, &epoch, &position);
    while (!status && stream_goes_on(stream, epoch) && !interrupt_pending()) {
        switch (stk_loader_next_within(stream->loader, WAIT_NS, &batch, &err)) {
        case STK_OK:
            status = take(stream, batch);
            break;
        case STK_END:
            epoch++;
            break;
        case STK_CANCELLED: /* nothing came in time: look for a signal, then go on */
            break;
        default:
            status = message_error(&err);
            break;
        }
        draw(stream, &next_draw);
    }
    stream->seconds = 1e-9 * (double)(now() - begun);
    progress_bar_clear();
    stk_loader_position(stream->loader, &stream->epoch, &stream->position);
    return interrupt_pending() ? EXIT_SIGNALLED + interrupt_pending() : status;
}
