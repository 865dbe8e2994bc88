#include "inject_sink.h"

#include <string.h>

#include "inject_clock.h"

enum {
    RING_CAPACITY = 8 << 20, /* 200,000 kernels */
    BATCH = 256,             /* records that are read before the lock is taken */
    SYNC_LEAST_NS = 2000,    /* shorter ones waited for nothing, or only asked */
};
#define LATEST_SLACK_NS UINT64_C(1000000000) /* device times are fitted, not exact */

static size_t padded(size_t size)
{
    return (size + 7) & ~(size_t)7;
}

int inject_sink_open(struct inject_sink *sink, const char *folder)
{
    pthread_mutex_lock(&sink->lock);
    int error = inject_ring_open(&sink->ring, folder, RING_CAPACITY);
    if (!error) {
        inject_names_init(&sink->names);
        sink->earliest = 0;
        sink->offset = 0;
        sink->is_ending = 0;
        sink->reached = 0;
        sink->graph_launches = sink->graph_runs = sink->graph_missing = 0;
        sink->graph_last = 0;
        memset(sink->lost, 0, sizeof sink->lost);
    }
    pthread_mutex_unlock(&sink->lock);
    return error;
}

void inject_sink_close(struct inject_sink *sink)
{
    pthread_mutex_lock(&sink->lock);
    inject_ring_close(&sink->ring);
    inject_names_reset(&sink->names);
    pthread_mutex_unlock(&sink->lock);
}

void inject_sink_forget(struct inject_sink *sink)
{
    pthread_mutex_init(&sink->lock, NULL);
    sink->ring = (struct inject_ring){0};
}

/* --- one record each; under the lock ---------------------------------------------------------- */

/* What is known to be missing is told as soon as there is room. */
static void tell_lost(struct inject_sink *sink)
{
    for (uint32_t why = LOST_DROPPED; why < LOST_REASONS; why++) {
        if (!sink->lost[why])
            continue;
        struct record_lost *out = inject_ring_add(&sink->ring, RECORD_LOST, sizeof *out);
        if (!out)
            return;
        out->time = inject_clock_now();
        out->count = sink->lost[why];
        out->why = why;
        out->rest = 0;
        sink->lost[why] = 0;
    }
}

/* Brings times to the clock of the ring. 0: they cannot be true. */
static int fit_times(const struct inject_sink *sink, uint64_t latest, uint64_t *start,
                     uint64_t *end)
{
    if (!*start || *end < *start)
        return 0;
    *start += (uint64_t)sink->offset;
    *end += (uint64_t)sink->offset;
    return *start >= sink->earliest && *end <= latest;
}

/* text: all of it, of which `name` has the beginning. */
static int tell_name(struct inject_sink *sink, struct inject_name *name, const char *text)
{
    char plain[NAME_LEN_MOST];
    uint32_t len = inject_names_plain(name == &sink->names.rest ? name->text : text, plain);
    size_t size = padded(sizeof(struct record_text) + len);
    struct record_text *out = inject_ring_add(&sink->ring, RECORD_NAME, size);
    if (!out)
        return 0;
    out->id = name->id;
    out->len = len;
    memcpy(out->text, plain, len);
    memset(out->text + len, 0, size - sizeof *out - len);
    name->is_told = 1;
    return 1;
}

static void count_graph(struct inject_sink *sink, uint32_t correlation)
{
    if (correlation == sink->graph_last)
        return; /* of the same launch */
    sink->graph_last = correlation;
    sink->graph_runs++;
}

static void take_kernel(struct inject_sink *sink, const struct cupti_kernel *kernel,
                        uint64_t latest)
{
    uint64_t start = kernel->start, end = kernel->end;
    int in_graph = kernel->graph_node || kernel->graph;
    if (in_graph)
        count_graph(sink, kernel->correlation);
    if (!fit_times(sink, latest, &start, &end)) {
        sink->lost[in_graph ? LOST_GRAPH : LOST_UNTIMED] += !sink->is_ending;
        return;
    }
    sink->busy_ns += end - start;
    struct inject_name *name = inject_names_find(&sink->names, kernel->name);
    if (!name->is_told && !tell_name(sink, name, kernel->name))
        return;
    struct record_kernel *out = inject_ring_add(&sink->ring, RECORD_KERNEL, sizeof *out);
    if (!out)
        return;
    out->start = start;
    out->end = end;
    out->device = kernel->device;
    out->stream = kernel->stream;
    out->name = name->id;
    out->graph = in_graph && !kernel->graph ? 1 : kernel->graph;
}

/* From CUPTI's numbers: arrays are device memory, "static" ones are like their kind. */
static uint8_t memory_of(uint8_t number)
{
    static const uint8_t memories[] = {COPY_UNKNOWN, COPY_PAGEABLE, COPY_PINNED, COPY_DEVICE,
                                       COPY_DEVICE,  COPY_MANAGED,  COPY_DEVICE, COPY_MANAGED};
    return number < sizeof memories ? memories[number] : COPY_UNKNOWN;
}

static uint8_t way_of(uint8_t number)
{
    static const uint8_t ways[] = {COPY_OTHER,     COPY_TO_DEVICE, COPY_TO_HOST,   COPY_TO_DEVICE,
                                   COPY_TO_HOST,   COPY_ON_DEVICE, COPY_ON_DEVICE, COPY_ON_DEVICE,
                                   COPY_ON_DEVICE, COPY_OTHER,     COPY_ON_DEVICE};
    return number < sizeof ways ? ways[number] : COPY_OTHER;
}

static void take_copy(struct inject_sink *sink, const struct cupti_copy *copy, uint64_t latest)
{
    uint64_t start = copy->start, end = copy->end;
    int in_graph = copy->kind != KIND_COPY_BETWEEN && copy->graph_node;
    if (in_graph)
        count_graph(sink, copy->correlation);
    if (!fit_times(sink, latest, &start, &end)) {
        sink->lost[in_graph ? LOST_GRAPH : LOST_UNTIMED] += !sink->is_ending;
        return;
    }
    struct record_copy *out = inject_ring_add(&sink->ring, RECORD_COPY, sizeof *out);
    if (!out)
        return;
    out->start = start;
    out->end = end;
    out->bytes = copy->bytes;
    out->device = copy->device;
    out->stream = copy->stream;
    int is_clear = copy->kind == KIND_CLEAR;
    out->way = is_clear ? COPY_CLEAR : way_of(copy->way);
    out->from = is_clear ? COPY_UNKNOWN : memory_of(copy->from);
    out->to = is_clear ? COPY_DEVICE : memory_of(copy->to);
    memset(out->rest, 0, sizeof out->rest);
}

/* A stream that waits for an event holds up no thread, and a query waits for nothing. */
static void take_sync(struct inject_sink *sink, const struct cupti_sync *sync, uint64_t latest)
{
    uint64_t start = sync->start, end = sync->end;
    if (sync->what != SYNC_EVENT && sync->what != SYNC_STREAM && sync->what != SYNC_CONTEXT)
        return;
    if (!fit_times(sink, latest, &start, &end) || end - start < SYNC_LEAST_NS)
        return;
    struct record_sync *out = inject_ring_add(&sink->ring, RECORD_SYNC, sizeof *out);
    if (!out)
        return;
    out->start = start;
    out->end = end;
    out->what = sync->what;
    out->stream = sync->stream;
}

static void take_overhead(struct inject_sink *sink, const struct cupti_overhead *overhead,
                          uint64_t latest)
{
    uint64_t start = overhead->start, end = overhead->end;
    uint32_t what = overhead->what;
    if (what != OVERHEAD_INSTRUMENTATION && what != OVERHEAD_RESOURCE && what != OVERHEAD_REQUEST)
        return;
    if (!fit_times(sink, latest, &start, &end))
        return;
    struct record_cost *out = inject_ring_add(&sink->ring, RECORD_COST, sizeof *out);
    if (!out)
        return;
    out->start = start;
    out->end = end;
    out->what = what >> 16;
    out->rest = 0;
}

static void take_record(struct inject_sink *sink, const struct cupti_record *record,
                        uint64_t latest)
{
    switch (record->kind) {
    case KIND_KERNEL:
    case KIND_KERNEL_ALONE:
        take_kernel(sink, (const struct cupti_kernel *)record, latest);
        break;
    case KIND_COPY:
    case KIND_CLEAR:
    case KIND_COPY_BETWEEN:
        take_copy(sink, (const struct cupti_copy *)record, latest);
        break;
    case KIND_SYNC:
        take_sync(sink, (const struct cupti_sync *)record, latest);
        break;
    case KIND_OVERHEAD:
        take_overhead(sink, (const struct cupti_overhead *)record, latest);
        break;
    case KIND_GRAPH: /* somebody asked CUPTI for graphs as a whole: their kernels are not told */
    case KIND_DEVICE_GRAPH:
        sink->lost[LOST_GRAPH]++;
        break;
    default:
        break; /* of a kind that somebody else enabled */
    }
}

/* --- what others call ------------------------------------------------------------------------- */

void inject_sink_take(struct inject_sink *sink, const struct cupti_table *table, uint8_t *buffer,
                      size_t valid)
{
    const struct cupti_record *batch[BATCH];
    struct cupti_record *record = NULL;
    uint64_t latest = inject_clock_now() + LATEST_SLACK_NS;
    int is_more = valid > 0;
    while (is_more) {
        size_t count = 0;
        while (count < BATCH && (is_more = !table->next_record(buffer, valid, &record)))
            batch[count++] = record;
        pthread_mutex_lock(&sink->lock);
        for (size_t i = 0; i < count; i++)
            take_record(sink, batch[i], latest);
        sink->records += count;
        tell_lost(sink);
        inject_ring_publish(&sink->ring);
        pthread_mutex_unlock(&sink->lock);
    }
}

void inject_sink_lost(struct inject_sink *sink, enum sink_lost why, uint64_t count)
{
    if (!count)
        return;
    pthread_mutex_lock(&sink->lock);
    sink->lost[why] += count;
    tell_lost(sink);
    inject_ring_publish(&sink->ring);
    pthread_mutex_unlock(&sink->lock);
}

void inject_sink_state(struct inject_sink *sink, enum gpu_state state, const char *words)
{
    size_t len = words ? strlen(words) : 0;
    size_t size = padded(sizeof(struct record_gpu) + len);
    pthread_mutex_lock(&sink->lock);
    struct record_gpu *out = inject_ring_add(&sink->ring, RECORD_GPU, size);
    if (out) {
        out->time = inject_clock_now();
        out->state = state;
        out->len = (uint32_t)len;
        memset(out->text, 0, size - sizeof *out);
        memcpy(out->text, words ? words : "", len);
    }
    inject_ring_publish(&sink->ring);
    pthread_mutex_unlock(&sink->lock);
}

void inject_sink_reached(struct inject_sink *sink, uint64_t time)
{
    pthread_mutex_lock(&sink->lock);
    tell_lost(sink);
    struct record_reached *out = NULL;
    if (time > sink->reached)
        out = inject_ring_add(&sink->ring, RECORD_REACHED, sizeof *out);
    if (out)
        sink->reached = out->time = time;
    inject_ring_publish(&sink->ring);
    pthread_mutex_unlock(&sink->lock);
}

void inject_sink_clock(struct inject_sink *sink, uint64_t earliest, int64_t offset)
{
    pthread_mutex_lock(&sink->lock);
    sink->earliest = earliest;
    sink->offset = offset;
    pthread_mutex_unlock(&sink->lock);
}

void inject_sink_ending(struct inject_sink *sink)
{
    pthread_mutex_lock(&sink->lock);
    sink->is_ending = 1;
    pthread_mutex_unlock(&sink->lock);
}

void inject_sink_launched(struct inject_sink *sink)
{
    pthread_mutex_lock(&sink->lock);
    sink->graph_launches++;
    pthread_mutex_unlock(&sink->lock);
}

uint64_t inject_sink_launches(struct inject_sink *sink)
{
    pthread_mutex_lock(&sink->lock);
    uint64_t launches = sink->graph_launches;
    pthread_mutex_unlock(&sink->lock);
    return launches;
}

void inject_sink_check_graphs(struct inject_sink *sink, uint64_t launches)
{
    pthread_mutex_lock(&sink->lock);
    uint64_t missing = launches > sink->graph_runs ? launches - sink->graph_runs : 0;
    /* Records of launches side by side may be mingled and counted as one: a few are no proof. */
    if (missing > launches / 10 + 1 && missing > sink->graph_missing) {
        sink->lost[LOST_GRAPH] += missing - sink->graph_missing;
        sink->graph_missing = missing;
        tell_lost(sink);
        inject_ring_publish(&sink->ring);
    }
    pthread_mutex_unlock(&sink->lock);
}

uint64_t inject_sink_records(struct inject_sink *sink)
{
    pthread_mutex_lock(&sink->lock);
    uint64_t records = sink->records;
    pthread_mutex_unlock(&sink->lock);
    return records;
}

uint64_t inject_sink_busy(struct inject_sink *sink)
{
    pthread_mutex_lock(&sink->lock);
    uint64_t busy_ns = sink->busy_ns;
    pthread_mutex_unlock(&sink->lock);
    return busy_ns;
}
