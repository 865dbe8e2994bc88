#include "gpu/activity.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "stoker/activity.h"
#include "base/clock.h"
#include "base/fail.h"
#include "base/memory.h"
#include "gpu/cupti_api.h"
#include "gpu/gpu.h"

#define BUFFER_SIZE ((size_t)256 << 10) /* a thousand kernels */
#define BIN_DEFAULT UINT64_C(10000000)
#define BIN_LEAST UINT64_C(1000000)

/* --- spans ------------------------------------------------------------------------------------ */

stk_status cover_init(struct cover *cover, uint64_t bin_ns, struct stk_error *err)
{
    assert(bin_ns > 0);
    *cover = (struct cover){.bin_ns = bin_ns};
    cover->spans = memory_alloc(COVER_SPANS * sizeof *cover->spans);
    return cover->spans ? STK_OK : fail_memory(err, COVER_SPANS * sizeof *cover->spans);
}

void cover_reset(struct cover *cover)
{
    memory_free(cover->spans);
    memory_free(cover->bins);
    *cover = (struct cover){0};
}

static int span_order(const void *a, const void *b)
{
    const struct cover_span *left = a, *right = b;
    return (left->start > right->start) - (left->start < right->start);
}

static void spans_sort(struct cover *cover)
{
    qsort(cover->spans, cover->count, sizeof *cover->spans, span_order);
}

/* The part of a span that lies behind the frontier, which moves to its end. 0: none. */
static int span_clip(struct cover_span *span, uint64_t *frontier)
{
    if (span->start < *frontier)
        span->start = *frontier;
    if (span->start >= span->end)
        return 0;
    *frontier = span->end;
    return 1;
}

static void span_into_bins(const struct cover_span *span, uint64_t bin_ns, uint64_t *bins,
                           uint64_t count)
{
    uint64_t last = (span->end - 1) / bin_ns;
    for (uint64_t bin = span->start / bin_ns; bin <= last && bin < count; bin++) {
        uint64_t from = bin * bin_ns, to = from + bin_ns;
        bins[bin] += (span->end < to ? span->end : to) - (span->start > from ? span->start : from);
    }
}

/* Room for the bins up to a moment. */
static stk_status bins_grow(struct cover *cover, uint64_t end, struct stk_error *err)
{
    uint64_t count = (end - 1) / cover->bin_ns + 1;
    if (count > COVER_BINS)
        count = COVER_BINS;
    if (count <= cover->bin_cap)
        return STK_OK;
    size_t cap = cover->bin_cap ? cover->bin_cap : 1024;
    while (cap < count)
        cap *= 2;
    uint64_t *bins = memory_grow(cover->bins, cap * sizeof *bins);
    if (!bins)
        return fail_memory(err, cap * sizeof *bins);
    memset(bins + cover->bin_cap, 0, (cap - cover->bin_cap) * sizeof *bins);
    cover->bins = bins;
    cover->bin_cap = cap;
    return STK_OK;
}

/* Sums up the half of the list that begins first. Without memory for bins only the sum is right. */
static stk_status spans_fold(struct cover *cover, struct stk_error *err)
{
    spans_sort(cover);
    size_t count = cover->count / 2;
    stk_status status = STK_OK;
    for (size_t i = 0; i < count; i++) {
        struct cover_span span = cover->spans[i];
        if (!span_clip(&span, &cover->frontier))
            continue;
        cover->covered += span.end - span.start;
        if (!status)
            status = bins_grow(cover, span.end, err);
        span_into_bins(&span, cover->bin_ns, cover->bins, cover->bin_cap);
    }
    cover->count -= count;
    memmove(cover->spans, cover->spans + count, cover->count * sizeof *cover->spans);
    return status;
}

stk_status cover_add(struct cover *cover, struct cover_span span, struct stk_error *err)
{
    stk_status status = STK_OK;
    if (cover->count == COVER_SPANS)
        status = spans_fold(cover, err);
    cover->spans[cover->count++] = span;
    return status;
}

uint64_t cover_total(struct cover *cover)
{
    spans_sort(cover);
    uint64_t total = cover->covered, frontier = cover->frontier;
    for (size_t i = 0; i < cover->count; i++) {
        struct cover_span span = cover->spans[i];
        if (span_clip(&span, &frontier))
            total += span.end - span.start;
    }
    return total;
}

void cover_bins(struct cover *cover, uint64_t *to, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        to[i] = i < cover->bin_cap ? cover->bins[i] : 0;
    spans_sort(cover);
    uint64_t frontier = cover->frontier;
    for (size_t i = 0; i < cover->count; i++) {
        struct cover_span span = cover->spans[i];
        if (span_clip(&span, &frontier))
            span_into_bins(&span, cover->bin_ns, to, count);
    }
}

/* --- recordings ------------------------------------------------------------------------------- */

struct stk_activity {
    const struct cupti_api *api;
    uint32_t device;
    int has_clock;  /* CUPTI's times are ours */
    uint64_t begun; /* by the clock of the records */
    /* the rest under recorder.lock */
    struct cover kernels, copies;
    struct stk_activity_sums sums;
};

/* CUPTI's callbacks are told nothing of who asked: the recording they are for is found here. */
static struct {
    pthread_mutex_t lock;
    struct stk_activity *current; /* NULL: none */
} recorder = {.lock = PTHREAD_MUTEX_INITIALIZER};

static const int recorded_kinds[] = {CUPTI_KERNEL, CUPTI_COPY, CUPTI_CLEAR};
enum { RECORDED_KINDS = sizeof recorded_kinds / sizeof recorded_kinds[0] };

static void buffer_request(uint8_t **buffer, size_t *size, size_t *most_records)
{
    *buffer = memory_alloc(BUFFER_SIZE); /* NULL: CUPTI counts what it drops */
    *size = *buffer ? BUFFER_SIZE : 0;
    *most_records = 0;
}

/* A record's time, of which only what follows the start counts. 0: it is not counted. */
static int record_span(struct stk_activity *activity, const struct cupti_record *record,
                       struct cover_span *span)
{
    if (!record->end || record->end < record->start) {
        activity->sums.lost++;
        return 0;
    }
    if (record->end <= activity->begun)
        return 0;
    span->start = record->start < activity->begun ? 0 : record->start - activity->begun;
    span->end = record->end - activity->begun;
    return 1;
}

static void record_count(struct stk_activity *activity, const struct cupti_record *record)
{
    int is_kernel = record->kind == CUPTI_KERNEL || record->kind == CUPTI_KERNEL_ALONE;
    int is_copy = record->kind == CUPTI_COPY || record->kind == CUPTI_CLEAR ||
                  record->kind == CUPTI_COPY_BETWEEN;
    if (!is_kernel && !is_copy)
        return;
    uint32_t device = is_kernel ? ((const struct cupti_kernel_record *)record)->device
                                : ((const struct cupti_copy_record *)record)->device;
    struct cover_span span;
    if (device != activity->device || !record_span(activity, record, &span))
        return;
    struct stk_activity_sums *sums = &activity->sums;
    if (cover_add(is_kernel ? &activity->kernels : &activity->copies, span, NULL))
        sums->lost++;
    sums->kernels += is_kernel ? 1 : 0;
    sums->copies += is_copy ? 1 : 0;
    sums->copied_bytes += is_copy && record->kind != CUPTI_CLEAR ? record->bytes : 0;
}

static void buffer_complete(void *context, uint32_t stream, uint8_t *buffer, size_t size,
                            size_t valid)
{
    (void)size;
    pthread_mutex_lock(&recorder.lock);
    struct stk_activity *activity = recorder.current;
    if (activity && buffer) { /* a late buffer of a recording that is over is only freed */
        struct cupti_record *record = NULL;
        while (valid && !activity->api->next_record(buffer, valid, &record))
            record_count(activity, record);
        size_t dropped = 0;
        if (!activity->api->get_dropped(context, stream, &dropped))
            activity->sums.lost += dropped;
    }
    pthread_mutex_unlock(&recorder.lock);
    memory_free(buffer);
}

static uint64_t clock_of_records(void)
{
    return (uint64_t)clock_now();
}

/* Before anything is recorded. CUPTI may still have the clock of PyTorch's profiler, which counts
 * ticks of the processor: the time that went by would be told by that one, kernels in nanoseconds.
 */
static void clock_set(struct stk_activity *activity)
{
    const struct cupti_api *api = activity->api;
    activity->has_clock = api->register_clock && !api->register_clock(clock_of_records);
}

static stk_status clock_ask(const struct stk_activity *activity, uint64_t *out,
                            struct stk_error *err)
{
    *out = clock_of_records();
    if (activity->has_clock)
        return STK_OK;
    return cupti_result(activity->api, activity->api->get_timestamp(out), "to tell the time", err);
}

static void kinds_disable(const struct cupti_api *api, int count)
{
    for (int i = 0; i < count; i++)
        (void)api->disable(recorded_kinds[i]);
}

static stk_status kinds_enable(const struct cupti_api *api, struct stk_error *err)
{
    stk_status status = cupti_result(api, api->register_callbacks(buffer_request, buffer_complete),
                                     "to take records", err);
    for (int i = 0; !status && i < RECORDED_KINDS; i++) {
        status =
            cupti_result(api, api->enable(recorded_kinds[i]), "to record kernels and copies", err);
        if (status)
            kinds_disable(api, i);
    }
    return status;
}

/* Makes the recording the current one. */
static stk_status recorder_take(struct stk_activity *activity, struct stk_error *err)
{
    stk_status status = STK_OK;
    pthread_mutex_lock(&recorder.lock);
    if (recorder.current) {
        status = fail(err, STK_BUSY, "a recording of the GPU's activity is under way");
        fail_remedy(err, "stop it first: there is one at a time in a process");
    } else {
        recorder.current = activity;
    }
    pthread_mutex_unlock(&recorder.lock);
    return status;
}

static void recorder_give(struct stk_activity *activity)
{
    pthread_mutex_lock(&recorder.lock);
    if (recorder.current == activity)
        recorder.current = NULL;
    pthread_mutex_unlock(&recorder.lock);
}

static void activity_free(struct stk_activity *activity)
{
    if (!activity)
        return;
    cover_reset(&activity->kernels);
    cover_reset(&activity->copies);
    memory_free(activity);
}

stk_status stk_activity_start(struct stk_activity **out, const struct stk_activity_options *options,
                              struct stk_error *err)
{
    *out = NULL;
    uint32_t count = gpu_count(err), device = options ? options->device : 0;
    if (!count)
        return STK_UNSUPPORTED;
    if (device >= count)
        return fail(err, STK_NOT_FOUND, "there is no GPU %u: this process may use %u", device,
                    count);
    const struct cupti_api *api;
    stk_status status = cupti_open(&api, err);
    return status ? status : activity_start(out, options, api, err);
}

stk_status activity_start(struct stk_activity **out, const struct stk_activity_options *options,
                          const struct cupti_api *api, struct stk_error *err)
{
    *out = NULL;
    uint64_t bin_ns = options && options->bin_ns ? options->bin_ns : BIN_DEFAULT;
    if (bin_ns < BIN_LEAST)
        return fail(err, STK_USAGE, "bins are of a millisecond at least");
    struct stk_activity *activity = memory_zero(1, sizeof *activity);
    if (!activity)
        return fail_memory(err, sizeof *activity);
    activity->device = options ? options->device : 0;
    activity->sums.bin_ns = bin_ns;
    activity->api = api;
    stk_status status = cover_init(&activity->kernels, bin_ns, err);
    if (!status)
        status = cover_init(&activity->copies, bin_ns, err);
    if (!status)
        status = recorder_take(activity, err);
    if (status)
        goto done;
    clock_set(activity);
    status = kinds_enable(activity->api, err);
    if (!status)
        status = clock_ask(activity, &activity->begun, err);
    if (status) {
        recorder_give(activity);
        goto done;
    }
    *out = activity;
    activity = NULL;
done:
    activity_free(activity);
    return status;
}

stk_status stk_activity_read(struct stk_activity *activity, struct stk_activity_sums *out,
                             struct stk_error *err)
{
    *out = (struct stk_activity_sums){0};
    const struct cupti_api *api = activity->api;
    uint64_t now = 0;
    stk_status status = clock_ask(activity, &now, err);
    if (!status)
        status = cupti_result(api, api->flush_all(0), "to hand out its records", err);
    if (status)
        return status;
    pthread_mutex_lock(&recorder.lock);
    struct stk_activity_sums *sums = &activity->sums;
    sums->wall_ns = now - activity->begun;
    sums->kernel_ns = cover_total(&activity->kernels);
    sums->copy_ns = cover_total(&activity->copies);
    sums->bins = (sums->wall_ns + sums->bin_ns - 1) / sums->bin_ns;
    *out = *sums;
    pthread_mutex_unlock(&recorder.lock);
    return STK_OK;
}

void stk_activity_bins(struct stk_activity *activity, uint64_t *kernel_ns, uint64_t *copy_ns,
                       uint64_t count)
{
    pthread_mutex_lock(&recorder.lock);
    cover_bins(&activity->kernels, kernel_ns, count);
    cover_bins(&activity->copies, copy_ns, count);
    pthread_mutex_unlock(&recorder.lock);
}

void stk_activity_stop(struct stk_activity *activity)
{
    if (!activity)
        return;
    kinds_disable(activity->api, RECORDED_KINDS);
    (void)activity->api->flush_all(1); /* forced: no buffer of ours stays with CUPTI */
    recorder_give(activity);
    activity_free(activity);
}
