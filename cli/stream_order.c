#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "exit_status.h"
#include "message.h"
#include "stream.h"

static void print_step(const uint64_t *samples, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        printf(i ? " %" PRIu64 : "%" PRIu64, samples[i]);
    putchar('\n');
}

static int print_steps(struct stream *stream, uint64_t *samples)
{
    struct stk_error err;
    struct stk_peek step;

    while (stream_goes_on(stream, stream->epoch) && !message_stopped()) {
        stk_status status =
            stk_loader_peek(stream->loader, stream->epoch, stream->position, &step, samples, &err);
        if (status == STK_END) {
            stream->epoch++;
            stream->position = 0;
            continue;
        }
        if (status)
            return message_error(&err);
        print_step(samples, step.real);
        stream->batches++;
        stream->position = step.end;
    }
    /* As if the batches had been drawn: a state saved now goes on behind them. */
    if (stk_loader_seek(stream->loader, stream->epoch, stream->position, &err))
        return message_error(&err);
    return EXIT_DONE;
}

int stream_order(struct stream *stream)
{
    uint64_t *samples = malloc((size_t)stk_loader_capacity(stream->loader) * sizeof(*samples));
    int status;

    if (!samples)
        return message_failed("out of memory");
    stk_loader_position(stream->loader, &stream->epoch, &stream->position);
    status = print_steps(stream, samples);
    free(samples);
    return status;
}
