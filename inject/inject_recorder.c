#include "inject_recorder.h"

#include <stdio.h>
#include <time.h>

#include "inject_clock.h"

enum {
    FLUSH_COMPLETE = 0, /* buffers in which all is over */
    FLUSH_FORCED = 1,   /* all buffers */
    BEHIND_HELD = 32,   /* buffers with CUPTI: the device is seconds behind its launches */
    FAILURES_MOST = 8,
    CLOCK_LOOKS = 3,
};
#define MILLISECOND UINT64_C(1000000)
#define CLOCK_SLACK_NS MILLISECOND
#define EARLIEST_SLACK_NS (100 * MILLISECOND)
#define GRACE_NS (10000 * MILLISECOND) /* no device is so far behind its launches */

static const struct recorded {
    int kind;
    int is_needed;
} recorded_kinds[] = {
    {KIND_KERNEL, 1}, {KIND_COPY, 1},     {KIND_CLEAR, 1},
    {KIND_SYNC, 0},   {KIND_OVERHEAD, 0}, {KIND_COPY_BETWEEN, 0},
};
enum { RECORDED_KINDS = sizeof recorded_kinds / sizeof recorded_kinds[0] };

/* CUPTI's callbacks are told nothing of who asked. Set once, before they are registered. */
static struct inject_recorder *current;

static void buffer_request(uint8_t **buffer, size_t *size, size_t *most_records)
{
    *buffer = inject_buffers_give(&current->buffers, inject_clock_now(), size, most_records);
}

static void buffer_complete(void *context, uint32_t stream, uint8_t *buffer, size_t size,
                            size_t valid)
{
    (void)size;
    if (buffer) {
        inject_sink_take(&current->sink, &current->table, buffer, valid);
        inject_buffers_take(&current->buffers, buffer);
    }
    size_t dropped = 0;
    if (!current->table.get_dropped(context, stream, &dropped))
        inject_sink_lost(&current->sink, LOST_DROPPED, dropped);
}

static uint64_t clock_now(void)
{
    return inject_clock_now();
}

int inject_recorder_open(struct inject_recorder *recorder, char words[CUPTI_WORDS])
{
    if (inject_buffers_init(&recorder->buffers)) {
        snprintf(words, CUPTI_WORDS, "there is no memory for the buffers of CUPTI");
        return -1;
    }
    current = recorder;
    recorder->allowance = (struct inject_allowance){0};
    recorder->rested_at = 0;
    return cupti_open(&recorder->table, words);
}

/* --- the clock -------------------------------------------------------------------------------- */

/* CUPTI's clock between two looks at one of the system's. */
struct clock_look {
    uint64_t before, theirs, after;
};

/* 0: CUPTI answered. */
static int clock_ask(const struct inject_recorder *recorder, clockid_t clock,
                     struct clock_look *look)
{
    look->before = inject_clock_of(clock);
    if (recorder->table.get_timestamp(&look->theirs))
        return -1;
    look->after = inject_clock_of(clock);
    return 0;
}

/* Whether both may be the same clock. The thread may have slept between the looks. */
static int is_same(const struct clock_look *look)
{
    return look->theirs + CLOCK_SLACK_NS >= look->before &&
           look->theirs <= look->after + CLOCK_SLACK_NS;
}

/* What to add to CUPTI's times, from the closest of some looks. 0: it answered. */
static int clock_distance(const struct inject_recorder *recorder, int64_t *out)
{
    uint64_t closest = UINT64_MAX;
    for (int i = 0; i < CLOCK_LOOKS; i++) {
        struct clock_look look;
        if (clock_ask(recorder, CLOCK_MONOTONIC, &look))
            return -1;
        uint64_t width = look.after - look.before;
        if (width >= closest)
            continue;
        closest = width;
        *out = (int64_t)(look.before + width / 2 - look.theirs);
    }
    return 0;
}

static void clock_start(struct inject_recorder *recorder)
{
    const struct cupti_table *table = &recorder->table;
    struct clock_look look;
    int64_t distance = 0;
    recorder->has_clock = table->register_clock && !table->register_clock(clock_now);
    recorder->is_clock_told =
        recorder->has_clock && !clock_ask(recorder, CLOCK_MONOTONIC, &look) && is_same(&look);
    if (!recorder->has_clock)
        (void)clock_distance(recorder, &distance);
    recorder->earliest = inject_clock_now() - EARLIEST_SLACK_NS;
    inject_sink_clock(&recorder->sink, recorder->earliest, distance);
}

/* Without a clock of ours the distance is measured again: the system's is adjusted now and then. */
static enum recorder_health clock_check(struct inject_recorder *recorder)
{
    int64_t distance;
    struct clock_look look;
    if (!recorder->has_clock && !clock_distance(recorder, &distance))
        inject_sink_clock(&recorder->sink, recorder->earliest, distance);
    if (!recorder->is_clock_told || clock_ask(recorder, CLOCK_MONOTONIC, &look) || is_same(&look))
        return RECORDER_WELL; /* or there is no telling */
    if (clock_ask(recorder, CLOCK_REALTIME, &look) || !is_same(&look))
        return RECORDER_TAKEN;
    return RECORDER_RESET; /* CUPTI is back to the clock that it begins with */
}

/* --- recording -------------------------------------------------------------------------------- */

static void kinds_disable(const struct cupti_table *table)
{
    for (int i = 0; i < RECORDED_KINDS; i++)
        (void)table->disable(recorded_kinds[i].kind);
    if (table->enable_all_syncs)
        (void)table->enable_all_syncs(1); /* as it was */
}

/* The result of the first needed kind that was refused; 0: none was. */
static int kinds_enable(const struct cupti_table *table)
{
    if (table->enable_all_syncs)
        (void)table->enable_all_syncs(0); /* no records of queries that found work under way */
    for (int i = 0; i < RECORDED_KINDS; i++) {
        int result = table->enable(recorded_kinds[i].kind);
        if (result && recorded_kinds[i].is_needed)
            return result;
    }
    return 0;
}

int inject_recorder_start(struct inject_recorder *recorder, char words[CUPTI_WORDS])
{
    const struct cupti_table *table = &recorder->table;
    clock_start(recorder); /* before anything is recorded */
    int result = table->register_callbacks(buffer_request, buffer_complete);
    if (result) {
        cupti_refusal(table, result, "hand out records", words);
        return -1;
    }
    result = kinds_enable(table);
    if (result) {
        kinds_disable(table);
        cupti_refusal(table, result, "record kernels and copies", words);
        return -1;
    }
    recorder->failures = 0;
    recorder->rate_time = recorder->graph_time = inject_clock_now();
    recorder->graph_launches = inject_sink_launches(&recorder->sink);
    return 0;
}

static void rate_measure(struct inject_recorder *recorder, uint64_t now)
{
    uint64_t records = inject_sink_records(&recorder->sink);
    uint64_t elapsed = now - recorder->rate_time;
    if (elapsed < 50 * MILLISECOND)
        return;
    uint64_t rate = (records - recorder->rate_records) * 1000 * MILLISECOND / elapsed;
    uint32_t rate_fits = rate < UINT32_MAX ? (uint32_t)rate : UINT32_MAX;
    atomic_store_explicit(&recorder->buffers.records_s, rate_fits, memory_order_relaxed);
    recorder->rate_time = now;
    recorder->rate_records = records;
}

static void graphs_check(struct inject_recorder *recorder, uint64_t now)
{
    if (now - recorder->graph_time < GRACE_NS)
        return;
    inject_sink_check_graphs(&recorder->sink, recorder->graph_launches);
    recorder->graph_launches = inject_sink_launches(&recorder->sink);
    recorder->graph_time = now;
}

/* It is told before recording stops: all that was launched until then is recorded. */
static void rest_look(struct inject_recorder *recorder, uint64_t now)
{
    struct inject_sink *sink = &recorder->sink;
    if (!inject_allowance_spend(&recorder->allowance, now, inject_sink_records(sink),
                                inject_sink_busy(sink)) ||
        recorder->never_rests)
        return;
    inject_sink_state(sink, GPU_RESTS, NULL);
    kinds_disable(&recorder->table);
    recorder->rested_at = now;
}

/* Work that is queued still has its records to come. */
static void rest_flush(struct inject_recorder *recorder, uint64_t now)
{
    uint64_t reached = now;
    if (now - recorder->rested_at < GRACE_NS && !recorder->table.flush_all(FLUSH_COMPLETE))
        reached = inject_buffers_oldest(&recorder->buffers, now);
    inject_sink_reached(&recorder->sink, reached);
}

void inject_recorder_graph(struct inject_recorder *recorder)
{
    if (!recorder->rested_at)
        inject_sink_launched(&recorder->sink);
}

int inject_recorder_is_behind(struct inject_recorder *recorder)
{
    return atomic_load_explicit(&recorder->buffers.held, memory_order_relaxed) >= BEHIND_HELD;
}

enum recorder_health inject_recorder_flush(struct inject_recorder *recorder)
{
    uint64_t now = inject_clock_now();
    if (recorder->rested_at) {
        rest_flush(recorder, now);
        return RECORDER_WELL;
    }
    int result = recorder->table.flush_all(FLUSH_COMPLETE);
    recorder->failures = result ? recorder->failures + 1 : 0;
    if (result == CUPTI_NOT_INITIALIZED || recorder->failures > FAILURES_MOST)
        return RECORDER_RESET;
    enum recorder_health health = clock_check(recorder);
    if (health || result)
        return health;
    inject_sink_reached(&recorder->sink, inject_buffers_oldest(&recorder->buffers, now));
    graphs_check(recorder, now);
    rate_measure(recorder, now);
    rest_look(recorder, now);
    return RECORDER_WELL;
}

void inject_recorder_stop(struct inject_recorder *recorder)
{
    kinds_disable(&recorder->table);
    uint64_t now = inject_clock_now();
    (void)recorder->table.flush_all(FLUSH_COMPLETE);
    (void)recorder->table.flush_all(FLUSH_FORCED);
    inject_buffers_forget(&recorder->buffers);
    inject_sink_check_graphs(&recorder->sink, inject_sink_launches(&recorder->sink));
    inject_sink_reached(&recorder->sink, now);
}
