#include "watch/take_record.h"

#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "base/memory.h"

/* What one record is taken with. */
struct taking {
    struct attribution *attribution;
    struct process_line *line;
    struct stk_error *err;
};

/* --- ranks -------------------------------------------------------------------------------------*/

static void busy_told(void *user, uint64_t start, uint64_t end)
{
    struct attribution *attribution = user;
    stk_status status = series_spread(&attribution->series, SERIES_COMPUTE, start, end,
                                      (double)(end - start) / 1e9, NULL);
    if (!attribution->told_status)
        attribution->told_status = status;
}

struct rank_line *attribution_rank(struct attribution *attribution, struct process_line *line)
{
    if (line->rank)
        return line->rank;
    line->rank = memory_zero(1, sizeof *line->rank);
    if (!line->rank)
        return NULL;
    line->rank->loader_now = UINT32_MAX;
    line->rank->loop_thread = line->facts.pid;
    line->rank->compute.origin = attribution->options.begun;
    line->rank->compute.busy = busy_told;
    line->rank->compute.user = attribution;
    return line->rank;
}

static struct rank_line *rank_make(struct taking *taking)
{
    return attribution_rank(taking->attribution, taking->line);
}

static stk_status picture_add(struct taking *taking, enum excerpt_kind kind, uint32_t number,
                              const struct stretch *stretch, const char *name)
{
    const struct process_line *line = taking->line;
    struct excerpt_lane lane = {.kind = kind, .pid = line->facts.main, .number = number};
    struct excerpt_slice slice = {.start = stretch->start, .end = stretch->end};
    snprintf(slice.name, sizeof slice.name, "%s", name ? name : "kernel");
    return excerpt_add(&taking->attribution->excerpt, &lane, &slice, taking->err);
}

/* --- of the injected library -------------------------------------------------------------------*/

static stk_status kernel_take(struct taking *taking, const struct record_kernel *kernel)
{
    struct rank_line *rank = rank_make(taking);
    if (!rank)
        return fail_memory(taking->err, sizeof *rank);
    if (kernel->end <= kernel->start || !kernel->start)
        return STK_OK;
    rank->kernels++;
    rank->graph_kernels += kernel->graph != 0;
    if (!rank->device_known) {
        rank->device = kernel->device;
        rank->device_known = 1;
    }
    const struct kernel_name *name = kernel_names_find(&taking->line->kernels, kernel->name);
    struct stretch stretch = {kernel->start, kernel->end};
    stk_status status = STK_OK;
    if (!taking->line->hooked)
        excerpt_reach(&taking->attribution->excerpt, kernel->start, kernel->end);
    status = picture_add(taking, LANE_STREAM, EXCERPT_STREAM(kernel->device, kernel->stream),
                         &stretch, name->text);
    if (status)
        return status;
    if (!name->talks)
        return busy_line_add(&rank->compute, kernel->start, kernel->end, taking->err);
    status = time_list_add(&rank->talks, &stretch, sizeof stretch, taking->err);
    if (!status)
        status =
            series_spread(&taking->attribution->series, SERIES_COMMUNICATION, kernel->start,
                          kernel->end, (double)(kernel->end - kernel->start) / 1e9, taking->err);
    return status;
}

static stk_status copy_take(struct taking *taking, const struct record_copy *copy)
{
    struct rank_line *rank = rank_make(taking);
    if (!rank)
        return fail_memory(taking->err, sizeof *rank);
    if (copy->end <= copy->start || !copy->start)
        return STK_OK;
    int clears = copy->way == COPY_CLEAR;
    rank->copy_count += !clears;
    rank->copied_bytes += clears ? 0 : copy->bytes;
    if (copy->from == COPY_PAGEABLE || copy->to == COPY_PAGEABLE)
        rank->pageable_bytes += copy->bytes;
    struct device_copy item = {copy->start, copy->end, copy->bytes};
    struct stretch stretch = {copy->start, copy->end};
    stk_status status = time_list_add(&rank->copies, &stretch, sizeof stretch, taking->err);
    if (!status && copy->way == COPY_TO_DEVICE)
        status = time_list_add(&rank->copies_in, &item, sizeof item, taking->err);
    if (!status)
        status = series_spread(&taking->attribution->series, SERIES_COPY, copy->start, copy->end,
                               (double)(copy->end - copy->start) / 1e9, taking->err);
    if (!status)
        status = picture_add(taking, LANE_COPIES, 0, &stretch,
                             copy->way == COPY_TO_DEVICE ? "to the device"
                             : copy->way == COPY_TO_HOST ? "to the host"
                             : clears                    ? "clear"
                                                         : "on the device");
    return status;
}

static stk_status stretch_take(struct taking *taking, struct time_list *list, uint64_t start,
                               uint64_t end)
{
    struct stretch item = {start, end};
    return end > start ? time_list_add(list, &item, sizeof item, taking->err) : STK_OK;
}

/* It records again, or ends: a yield or a rest is over. */
static stk_status away_end(struct taking *taking, struct rank_line *rank, uint64_t time)
{
    uint64_t yielded = rank->yielded_at, rested = rank->rested_at;
    rank->yielded_at = rank->rested_at = 0;
    stk_status status = STK_OK;
    if (yielded)
        status = stretch_take(taking, &rank->yields, yielded, time);
    if (!status && rested)
        status = stretch_take(taking, &rank->rests, rested, time);
    return status;
}

static stk_status gpu_take(struct taking *taking, const struct record_gpu *gpu)
{
    struct rank_line *rank = rank_make(taking);
    if (!rank)
        return fail_memory(taking->err, sizeof *rank);
    struct attribution *attribution = taking->attribution;
    stk_status status = away_end(taking, rank, gpu->time);
    if (gpu->state == GPU_YIELDS)
        rank->yielded_at = gpu->time;
    if (gpu->state == GPU_RESTS)
        rank->rested_at = gpu->time;
    if (gpu->state == GPU_RECORDS)
        rank->recorded = 1;
    if (gpu->state == GPU_ABSENT) {
        if (rank->kernels)
            attribution_say(attribution->unreliable,
                            "The GPU's records ended before the run did: %.*s", (int)gpu->len,
                            gpu->text);
        else
            attribution_say(attribution->notices, "The GPU's kernels were not recorded: %.*s",
                            (int)gpu->len, gpu->text);
        rank->absent_at = gpu->time;
    }
    return status;
}

static void lost_take(struct attribution *attribution, const struct record_lost *lost)
{
    if (lost->why > 0 && lost->why < LOST_KINDS)
        attribution->lost[lost->why] += lost->count ? lost->count : 1;
}

/* --- of the hook
 * --------------------------------------------------------------------------------*/

static stk_status point_take(struct taking *taking, const struct loop_point *point)
{
    struct rank_line *rank = rank_make(taking);
    if (!rank)
        return fail_memory(taking->err, sizeof *rank);
    return time_list_add(&rank->points, point, sizeof *point, taking->err);
}

static stk_status span_draw(struct taking *taking, const struct record_span *span)
{
    static const char *const words[SPAN_KINDS] = {[SPAN_ITER] = "loader starts",
                                                  [SPAN_NEXT] = "next()",
                                                  [SPAN_FETCH] = "fetch",
                                                  [SPAN_COLLATE] = "collate",
                                                  [SPAN_SEND] = "send",
                                                  [SPAN_CHECKPOINT] = "checkpoint",
                                                  [SPAN_BACKWARD] = "backward",
                                                  [SPAN_OPTIMIZER] = "optimizer",
                                                  [SPAN_FORWARD] = "forward",
                                                  [SPAN_COMPILE] = "compiling",
                                                  [SPAN_COLLECTIVE] = "collective"};
    struct stretch stretch = {span->start, span->end};
    if (span->what >= SPAN_KINDS || !words[span->what])
        return STK_OK;
    const struct process_line *line = taking->line;
    if (line->facts.role == PROCESS_WORKER)
        return line->facts.worker < 8
                   ? picture_add(taking, LANE_WORKER, (uint32_t)line->facts.worker, &stretch,
                                 words[span->what])
                   : STK_OK;
    /* In the loop, fetch and collate lie in next(). */
    if (span->what == SPAN_FETCH || span->what == SPAN_COLLATE)
        return STK_OK;
    return picture_add(taking, LANE_MAIN, 0, &stretch, words[span->what]);
}

static int span_is_loaders(uint32_t what)
{
    return what >= SPAN_ITER && what <= SPAN_PIN;
}

static stk_status loop_span_take(struct taking *taking, const struct record_span *span)
{
    struct loop_point point = {.start = span->start,
                               .end = span->end,
                               .loader = (uint32_t)span->a,
                               .flags = span->head.flags,
                               .value = span->b};
    point.what = span->what == SPAN_ITER   ? POINT_ITER
                 : span->what == SPAN_NEXT ? POINT_NEXT
                                           : POINT_AFTER;
    struct rank_line *rank = rank_make(taking);
    if (!rank)
        return fail_memory(taking->err, sizeof *rank);
    if (point.what == POINT_AFTER)
        return point_take(taking, &point);
    rank->loop_seen = 1;
    excerpt_reach(&taking->attribution->excerpt, span->start, taking->attribution->latest);
    return point_take(taking, &point);
}

static stk_status span_take(struct taking *taking, const struct record_span *span)
{
    struct process_line *line = taking->line;
    if (span->end < span->start)
        return STK_OK;
    stk_status status = STK_OK;
    int worker = line->facts.role == PROCESS_WORKER;
    if (!worker &&
        (span->what == SPAN_ITER || span->what == SPAN_NEXT ||
         (line->rank && (span->what == SPAN_CHECKPOINT || span->what == SPAN_VALIDATION))))
        status = loop_span_take(taking, span);
    if (!status && span_is_loaders(span->what)) {
        struct loader_facts *facts =
            attribution_loader(taking->attribution, line->facts.main, (uint32_t)span->a);
        if (!facts)
            return fail_memory(taking->err, sizeof *facts);
        loader_facts_span(facts, span);
    }
    if (!status)
        status = process_line_span(line, span, taking->err);
    if (!status && span->what == SPAN_NEXT && !worker)
        status = series_spread(&taking->attribution->series, SERIES_WAITING, span->start, span->end,
                               (double)(span->end - span->start) / 1e9, taking->err);
    return status ? status : span_draw(taking, span);
}

/* Spans are of torch or of a loader; so are marks, but for those of the hook itself. */
static int tells_of_loop(const struct record *record)
{
    if (record->type != RECORD_MARK)
        return record->type == RECORD_SPAN;
    uint32_t what = ((const struct record_mark *)(const void *)record)->what;
    return what != MARK_END && what != MARK_SAMPLED && what != MARK_MODULE;
}

static stk_status mark_take(struct taking *taking, const struct record_mark *mark)
{
    static const int whats[] = {[MARK_STEP] = POINT_STEP,
                                [MARK_EPOCH] = POINT_EPOCH,
                                [MARK_EPOCH_END] = POINT_EPOCH_END,
                                [MARK_BATCH] = POINT_BATCH};
    if (mark->what == MARK_SAMPLED) {
        taking->attribution->sampled_hz = (double)mark->b / 1000;
        return STK_OK;
    }
    if (mark->what == MARK_CUDA) {
        taking->line->device_from =
            taking->line->device_from ? taking->line->device_from : mark->time;
        return STK_OK;
    }
    taking->line->has_model |= mark->what == MARK_MODULE;
    if (mark->what < MARK_STEP || mark->what > MARK_BATCH ||
        taking->line->facts.role == PROCESS_WORKER)
        return STK_OK;
    struct loop_point point = {.start = mark->time,
                               .end = mark->time,
                               .what = (enum point_what)whats[mark->what],
                               .loader = (uint32_t)mark->a,
                               .value = mark->what == MARK_STEP ? mark->a : mark->b};
    stk_status status = point_take(taking, &point);
    if (!status && mark->what == MARK_STEP && !taking->line->rank->loop_thread_sure) {
        taking->line->rank->loop_thread = mark->thread;
        taking->line->rank->loop_thread_sure = 1;
    }
    return status;
}

static stk_status queue_take(struct taking *taking, const struct record_queue *queue)
{
    struct rank_line *rank = rank_make(taking);
    if (!rank)
        return fail_memory(taking->err, sizeof *rank);
    if (queue->early <= 0) /* only those say anything here */
        return STK_OK;
    struct host_queue item = {queue->time,  queue->time,  queue->loader,
                              queue->ready, queue->early, queue->unpinned};
    return time_list_add(&rank->queues, &item, sizeof item, taking->err);
}

/* Texts: a loader, its files, a sentence. */
static stk_status text_take(struct taking *taking, const struct record_text *text)
{
    struct attribution *attribution = taking->attribution;
    if (text->head.type == RECORD_NOTICE) {
        attribution_say(text->id == 1 ? attribution->unreliable : attribution->notices, "%.*s",
                        (int)(text->len < SPEECH ? text->len : SPEECH), text->text);
        return STK_OK;
    }
    struct loader_facts *facts =
        attribution_loader(attribution, taking->line->facts.main, text->id);
    if (!facts)
        return fail_memory(taking->err, sizeof *facts);
    if (text->head.type == RECORD_LOADER)
        loader_facts_describe(facts, text->text, text->len);
    else
        loader_facts_files(facts, text->text, text->len);
    return STK_OK;
}

static stk_status sample_take(struct taking *taking, const struct record_sample *sample)
{
    struct process_line *line = taking->line;
    if (sample->kind == SAMPLE_MAIN) {
        uint64_t cpu = sample->cpu == CPU_UNKNOWN ? 0 : sample->cpu;
        int worker = line->facts.role == PROCESS_WORKER;
        /* What comes before the loop is no part of the picture. */
        if (worker || (line->rank && line->rank->loop_seen))
            call_tree_count(&taking->attribution->tree, worker ? CALL_WORKER : CALL_MAIN,
                            call_tree_find(&line->frames, sample->frame).node, sample->weight,
                            cpu < sample->weight ? cpu : sample->weight);
    }
    return process_line_sample(line, sample, taking->err);
}

stk_status take_record(struct attribution *attribution, const struct watch_event *event,
                       struct stk_error *err)
{
    const struct record *record = event->record;
    struct taking taking = {attribution, attribution_process(attribution, event->pid), err};
    if (!taking.line)
        return fail_memory(err, sizeof *taking.line);
    taking.line->hooked |= record->type >= RECORD_PROCESS && record->type != RECORD_NOTICE;
    taking.line->loop_told |= tells_of_loop(record);
    switch (record->type) {
    case RECORD_NAME:
        return kernel_names_add(&taking.line->kernels, (const void *)record, err);
    case RECORD_KERNEL:
        return kernel_take(&taking, (const void *)record);
    case RECORD_COPY:
        return copy_take(&taking, (const void *)record);
    case RECORD_SYNC:
    case RECORD_COST: {
        const struct record_sync *sync = (const void *)record; /* both begin alike */
        if (!rank_make(&taking))
            return fail_memory(err, sizeof *taking.line->rank);
        return stretch_take(&taking,
                            record->type == RECORD_SYNC ? &taking.line->rank->syncs
                                                        : &taking.line->rank->costs,
                            sync->start, sync->end);
    }
    case RECORD_GPU:
        return gpu_take(&taking, (const void *)record);
    case RECORD_LOST:
        lost_take(attribution, (const void *)record);
        return STK_OK;
    case RECORD_FRAME:
        return call_tree_frame(&attribution->tree, &taking.line->frames, (const void *)record, err);
    case RECORD_SAMPLE:
        return sample_take(&taking, (const void *)record);
    case RECORD_SPAN:
        return span_take(&taking, (const void *)record);
    case RECORD_MARK:
        return mark_take(&taking, (const void *)record);
    case RECORD_QUEUE:
        return queue_take(&taking, (const void *)record);
    case RECORD_LOADER:
    case RECORD_FILES:
    case RECORD_NOTICE:
        return text_take(&taking, (const void *)record);
    default:
        return STK_OK;
    }
}
