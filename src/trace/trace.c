#include "trace/trace.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fail.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/text.h"

#define RING_EVENTS 65536 /* 2.5 MiB a thread, touched only as it fills */
#define IS_COUNT (-1)

struct event {
    const char *name;
    int64_t begin, duration; /* IS_COUNT: a counter whose value is in bytes */
    uint64_t step, bytes;
};

struct trace_ring {
    char name[32];
    uint64_t count; /* written ever; the newest RING_EVENTS are there */
    struct event events[RING_EVENTS];
};

struct trace {
    int64_t start;
    uint32_t threads;
    struct trace_ring *rings[]; /* each is written by its own thread alone */
};

stk_status trace_new(struct trace **out, uint32_t threads, struct stk_error *err)
{
    size_t size = sizeof(struct trace) + threads * sizeof(struct trace_ring *);
    *out = NULL;
    struct trace *trace = memory_zero(1, size);
    if (!trace)
        return fail_memory(err, size);
    trace->start = clock_now();
    for (; trace->threads < threads; trace->threads++) {
        struct trace_ring *ring = memory_zero(1, sizeof *ring);
        if (!ring) {
            trace_free(trace);
            return fail_memory(err, sizeof *ring);
        }
        trace->rings[trace->threads] = ring;
    }
    *out = trace;
    return STK_OK;
}

void trace_free(struct trace *trace)
{
    if (!trace)
        return;
    for (uint32_t i = 0; i < trace->threads; i++)
        memory_free(trace->rings[i]);
    memory_free(trace);
}

struct trace_ring *trace_ring(struct trace *trace, uint32_t thread, const char *name)
{
    if (!trace || thread >= trace->threads)
        return NULL;
    struct trace_ring *ring = trace->rings[thread];
    snprintf(ring->name, sizeof ring->name, "%s", name);
    return ring;
}

int64_t trace_begin(struct trace_ring *ring)
{
    return ring ? clock_now() : 0;
}

void trace_end(struct trace_ring *ring, int64_t begin, const char *name, uint64_t step,
               uint64_t bytes)
{
    if (!ring)
        return;
    ring->events[ring->count++ % RING_EVENTS] =
        (struct event){name, begin, clock_now() - begin, step, bytes};
}

void trace_count(struct trace_ring *ring, const char *name, uint64_t value)
{
    if (!ring)
        return;
    ring->events[ring->count++ % RING_EVENTS] =
        (struct event){name, clock_now(), IS_COUNT, 0, value};
}

/* Nanoseconds as microseconds with three digits behind the point. */
static void add_time(struct text *text, const char *name, int64_t ns)
{
    ns = ns < 0 ? 0 : ns;
    text_format(text, ",\"%s\":%" PRId64 ".%03d", name, ns / 1000, (int)(ns % 1000));
}

static void add_event(struct text *text, const struct trace *trace, const struct event *event,
                      uint32_t thread)
{
    int is_count = event->duration == IS_COUNT;
    text_format(text,
                ",\n{\"ph\":\"%c\",\"pid\":%d,\"tid\":%" PRIu32 ",\"name\":", is_count ? 'C' : 'X',
                (int)getpid(), thread);
    json_add_string(text, event->name, strlen(event->name));
    add_time(text, "ts", event->begin - trace->start);
    if (is_count) {
        text_format(text, ",\"args\":{\"value\":%" PRIu64 "}}", event->bytes);
    } else {
        add_time(text, "dur", event->duration);
        text_format(text, ",\"args\":{\"step\":%" PRIu64 ",\"bytes\":%" PRIu64 "}}", event->step,
                    event->bytes);
    }
}

/* Writes and empties the text once it is large, or when asked to. */
static int flush_text(struct text *text, FILE *file, size_t least)
{
    if (text->failed)
        return 0;
    if (text->len < least)
        return 1;
    size_t wrote = fwrite(text->data, 1, text->len, file);
    int whole = wrote == text->len;
    text->len = 0;
    return whole;
}

static int write_ring(const struct trace *trace, uint32_t thread, struct text *text, FILE *file)
{
    const struct trace_ring *ring = trace->rings[thread];
    uint64_t first = ring->count > RING_EVENTS ? ring->count - RING_EVENTS : 0;
    if (!ring->name[0])
        return 1;
    text_format(text,
                ",\n{\"ph\":\"M\",\"pid\":%d,\"tid\":%" PRIu32
                ",\"name\":\"thread_name\",\"args\":{\"name\":",
                (int)getpid(), thread);
    json_add_string(text, ring->name, strlen(ring->name));
    text_format(text, "}}");
    for (uint64_t i = first; i < ring->count; i++) {
        add_event(text, trace, &ring->events[i % RING_EVENTS], thread);
        if (!flush_text(text, file, 65536))
            return 0;
    }
    return 1;
}

static int write_events(const struct trace *trace, struct text *text, FILE *file)
{
    uint64_t dropped = 0;
    text_format(text,
                "{\"traceEvents\":[\n{\"ph\":\"M\",\"pid\":%d,\"name\":\"process_name\","
                "\"args\":{\"name\":\"stoker\"}}",
                (int)getpid());
    for (uint32_t i = 0; i < trace->threads; i++) {
        if (!write_ring(trace, i, text, file))
            return 0;
        if (trace->rings[i]->count > RING_EVENTS)
            dropped += trace->rings[i]->count - RING_EVENTS;
    }
    text_format(text,
                "\n],\"displayTimeUnit\":\"ns\",\"otherData\":{\"dropped\":%" PRIu64
                ",\"begun_ns\":%" PRId64 "}}\n",
                dropped, trace->start);
    return flush_text(text, file, 0);
}

stk_status trace_write(struct trace *trace, const char *path, struct stk_error *err)
{
    struct text temporary = {0}, text = {0};
    stk_status status = STK_OK;
    if (!trace)
        return STK_OK;
    text_format(&temporary, "%s.%d.tmp", path, (int)getpid());
    if (temporary.failed) {
        status = fail_memory(err, strlen(path) + 16);
        goto done;
    }
    FILE *file = fopen(temporary.data, "we");
    int good = file && write_events(trace, &text, file);
    int number = errno;
    if (file && fclose(file) != 0 && good) {
        good = 0;
        number = errno;
    }
    if (good && rename(temporary.data, path) != 0) {
        good = 0;
        number = errno;
    }
    if (!good) {
        status = text.failed ? fail_memory(err, text.len)
                             : fail_errno(err, number, "cannot write the trace");
        fail_at(err, path, STK_NOWHERE);
        if (file)
            unlink(temporary.data);
    }
done:
    text_free(&temporary);
    text_free(&text);
    return status;
}
