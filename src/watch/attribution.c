#include "watch/attribution.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "base/memory.h"
#include "watch/attribution_state.h"
#include "watch/take_record.h"

#define KEPT_BYTES ((size_t)6 << 20) /* unsettled: more is settled early */
#define LOADERS_MOST 128u
#define ENDED_KEPT 256u /* processes that have ended and are still named */

stk_status attribution_new(struct attribution **out, const struct attribution_options *options,
                           struct stk_error *err)
{
    *out = NULL;
    struct attribution *attribution = memory_zero(1, sizeof *attribution);
    if (!attribution)
        return fail_memory(err, sizeof *attribution);
    attribution->options = *options;
    attribution->now.busy = attribution->now.samples_s = -1;
    attribution->now.waits = "";
    series_bins_init(&attribution->series, options->begun);
    for (int i = 0; i < DEVICES_MOST; i++) {
        series_bins_init(&attribution->devices[i].series, options->begun);
        attribution->devices[i].busy = -1;
    }
    stk_status status = call_tree_init(&attribution->tree, err);
    if (status) {
        attribution_free(attribution);
        return status;
    }
    *out = attribution;
    return STK_OK;
}

static void process_free(struct process_line *line)
{
    process_line_reset(line);
    kernel_names_reset(&line->kernels);
    memory_free(line);
}

void attribution_free(struct attribution *attribution)
{
    if (!attribution)
        return;
    for (size_t i = 0; i < attribution->process_count; i++)
        process_free(attribution->processes[i]);
    for (size_t i = 0; i < attribution->loader_count; i++)
        loader_facts_reset(&attribution->loaders[i]);
    for (int i = 0; i < SUMMARY_REASONS; i++) {
        memory_free(attribution->unreliable[i]);
        memory_free(attribution->notices[i]);
    }
    memory_free(attribution->processes);
    memory_free(attribution->loaders);
    memory_free(attribution->workers);
    call_tree_reset(&attribution->tree);
    series_bins_reset(&attribution->series);
    for (int i = 0; i < DEVICES_MOST; i++)
        series_bins_reset(&attribution->devices[i].series);
    excerpt_reset(&attribution->excerpt);
    time_list_reset(&attribution->machine);
    memory_free(attribution);
}

/* --- tables ------------------------------------------------------------------------------------*/

/* NULL: it is not of the run, as far as is known. */
static struct process_line *process_find(struct attribution *attribution, uint32_t pid)
{
    if (attribution->last_found && attribution->last_found->facts.pid == pid)
        return attribution->last_found;
    for (size_t i = attribution->process_count; i-- > 0;)
        if (attribution->processes[i]->facts.pid == pid)
            return attribution->last_found = attribution->processes[i];
    return NULL;
}

struct process_line *attribution_process(struct attribution *attribution, uint32_t pid)
{
    struct process_line *known = process_find(attribution, pid);
    if (known)
        return known;
    if (attribution->process_count == attribution->process_cap) {
        size_t cap = attribution->process_cap ? attribution->process_cap * 2 : 16;
        void *grown = memory_grow(attribution->processes, cap * sizeof *attribution->processes);
        if (!grown)
            return NULL;
        attribution->processes = grown;
        attribution->process_cap = cap;
    }
    struct process_line *line = memory_zero(1, sizeof *line);
    if (!line)
        return NULL;
    line->facts = (struct watch_process){
        .pid = pid, .main = pid, .worker = -1, .rank = -1, .world = 1, .name = line->name};
    attribution->processes[attribution->process_count++] = line;
    return attribution->last_found = line;
}

struct loader_facts *attribution_loader(struct attribution *attribution, uint32_t main, uint32_t id)
{
    for (size_t i = 0; i < attribution->loader_count; i++)
        if (attribution->loaders[i].main == main && attribution->loaders[i].summary.id == id)
            return &attribution->loaders[i];
    if (attribution->loader_count == LOADERS_MOST) /* a loader made anew each epoch, for long */
        return &attribution->loaders[LOADERS_MOST - 1];
    if (attribution->loader_count == attribution->loader_cap) {
        size_t cap = attribution->loader_cap ? attribution->loader_cap * 2 : 4;
        void *grown = memory_grow(attribution->loaders, cap * sizeof *attribution->loaders);
        if (!grown)
            return NULL;
        attribution->loaders = grown;
        attribution->loader_cap = cap;
    }
    struct loader_facts *facts = &attribution->loaders[attribution->loader_count++];
    *facts = (struct loader_facts){.main = main};
    struct summary_loader *loader = &facts->summary;
    loader->id = id;
    loader->batch_size = loader->workers = loader->prefetch_factor = -1;
    loader->pin_memory = loader->persistent_workers = loader->in_order = -1;
    loader->samples = loader->batches = -1;
    return facts;
}

stk_status attribution_told(const struct attribution *attribution, struct stk_error *err)
{
    return attribution->told_status ? fail_memory(err, 0) : STK_OK;
}

void attribution_say(char **sentences, const char *format, ...)
{
    char text[SPEECH];
    va_list arguments;
    va_start(arguments, format);
    int len = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (len <= 0)
        return;
    for (int i = 0; i < SUMMARY_REASONS - 1; i++) {
        if (!sentences[i]) {
            sentences[i] = memory_text(text, strlen(text)); /* without memory it is not said */
            return;
        }
        if (!strcmp(sentences[i], text))
            return;
    }
}

/* --- what is no record -------------------------------------------------------------------------*/

static stk_status process_take(struct attribution *attribution, const struct watch_process *facts,
                               struct stk_error *err)
{
    struct process_line *line = attribution_process(attribution, facts->pid);
    if (!line)
        return fail_memory(err, sizeof *line);
    char name[sizeof line->name];
    snprintf(name, sizeof name, "%s", facts->name ? facts->name : "");
    line->facts = *facts;
    memcpy(line->name, name, sizeof name);
    line->facts.name = line->name;
    line->ended = 0;
    return STK_OK;
}

static stk_status thread_take(struct attribution *attribution, const struct watch_event *event,
                              struct stk_error *err)
{
    struct process_line *line = attribution_process(attribution, event->pid);
    if (!line)
        return fail_memory(err, sizeof *line);
    const struct watch_thread *thread = event->thread;
    host_sums_thread(&attribution->host, event->pid, thread);
    uint32_t loop =
        line->rank && line->rank->loop_thread_sure ? line->rank->loop_thread : event->pid;
    if (thread->thread != loop || event->end <= event->start)
        return STK_OK;
    struct host_look look = {event->start, event->end, thread->cpu_ns, thread->run_delay_ns,
                             thread->block_ns};
    return time_list_add(&line->looks, &look, sizeof look, err);
}

static stk_status use_take(struct attribution *attribution, const struct watch_event *event,
                           struct stk_error *err)
{
    struct process_line *line = attribution_process(attribution, event->pid);
    if (!line)
        return fail_memory(err, sizeof *line);
    const struct watch_use *use = event->use;
    uint64_t cpu = use->cpu_user_ns + use->cpu_system_ns;
    attribution->machine_sums.rss += use->rss_bytes - line->use.rss_bytes;
    host_sums_use(&line->use, use);
    if (event->end <= event->start)
        return STK_OK;
    struct series_bins *series = &attribution->series;
    struct host_look look = {event->start, event->end, cpu, use->run_delay_ns, 0};
    stk_status status = time_list_add(&line->uses, &look, sizeof look, err);
    if (!status)
        status =
            series_spread(series, SERIES_CPU, event->start, event->end, (double)cpu / 1e9, err);
    if (!status)
        status = series_spread(series, SERIES_READ, event->start, event->end,
                               (double)use->read_bytes, err);
    if (!status)
        status = series_spread(series, SERIES_WRITTEN, event->start, event->end,
                               (double)use->written_bytes, err);
    return status;
}

static stk_status machine_take(struct attribution *attribution, const struct watch_event *event,
                               struct stk_error *err)
{
    const struct watch_machine *machine = event->machine;
    if (event->end <= event->start)
        return STK_OK;
    struct machine_look look = {event->start, event->end, machine->cpu_busy_ns,
                                machine->own_cpu_ns};
    host_sums_machine(&attribution->host, machine);
    attribution->machine_sums.length += event->end - event->start;
    attribution->machine_sums.busy += machine->cpu_busy_ns;
    attribution->machine_sums.own += machine->own_cpu_ns;
    attribution->now.memory_bytes = attribution->machine_sums.rss;
    struct series_bins *series = &attribution->series;
    double network = (double)machine->network_in_bytes + (double)machine->network_out_bytes;
    stk_status status = time_list_add(&attribution->machine, &look, sizeof look, err);
    if (!status)
        status = series_spread(series, SERIES_MACHINE_CPU, event->start, event->end,
                               (double)machine->cpu_busy_ns / 1e9, err);
    if (!status)
        status = series_spread(series, SERIES_IOWAIT, event->start, event->end,
                               (double)machine->cpu_iowait_ns / 1e9, err);
    if (!status && machine->told & MACHINE_NETWORK)
        status = series_spread(series, SERIES_NETWORK, event->end - machine->io_ns, event->end,
                               network, err);
    if (!status)
        status = series_value(series, SERIES_RSS, event->end, (double)attribution->machine_sums.rss,
                              err);
    return status;
}

static void users_take(struct attribution *attribution, const struct watch_device *device,
                       uint64_t time)
{
    for (size_t i = 0; i < device->pid_count; i++) {
        struct process_line *line = process_find(attribution, device->pids[i]);
        if (!line)
            continue;
        line->devices |= 1u << device->device;
        if (!line->device_from || time < line->device_from)
            line->device_from = time;
        line->device_to = time > line->device_to ? time : line->device_to;
    }
}

static stk_status pcie_take(struct series_bins *series, const struct watch_event *event,
                            struct stk_error *err)
{
    const struct watch_device *device = event->device;
    stk_status status = STK_OK;
    if (device->pcie_in_bytes_s != STK_DEVICE_UNKNOWN)
        status =
            series_value(series, SERIES_PCIE_IN, event->end, (double)device->pcie_in_bytes_s, err);
    if (!status && device->pcie_out_bytes_s != STK_DEVICE_UNKNOWN)
        status = series_value(series, SERIES_PCIE_OUT, event->end, (double)device->pcie_out_bytes_s,
                              err);
    return status;
}

static stk_status device_take(struct attribution *attribution, const struct watch_event *event,
                              struct stk_error *err)
{
    const struct watch_device *device = event->device;
    if (device->device >= DEVICES_MOST)
        return STK_OK;
    struct series_bins *series = &attribution->devices[device->device].series;
    host_sums_device(&attribution->host, device);
    users_take(attribution, device, event->end);
    attribution->devices[device->device].busy =
        device->busy_untold ? -1 : device->busy_percent / 100.0;
    attribution->throttle |= device->throttle;
    attribution->now.gpu_memory_bytes = device->memory_used_bytes;
    const struct {
        enum summary_series which;
        double value;
    } values[] = {{SERIES_GPU_MEMORY, (double)device->memory_used_bytes},
                  {SERIES_GPU_POWER, device->power_mw / 1000.0},
                  {SERIES_GPU_CLOCK, device->clock_mhz}};
    stk_status status = pcie_take(series, event, err);
    for (size_t i = 0; !status && i < sizeof values / sizeof values[0]; i++)
        status = series_value(series, values[i].which, event->end, values[i].value, err);
    if (!status && !device->busy_untold)
        status =
            series_value(series, SERIES_GPU_NVML, event->end, device->busy_percent / 100.0, err);
    return status;
}

stk_status attribution_take(struct attribution *attribution, const struct watch_event *event,
                            struct stk_error *err)
{
    if (event->end > attribution->latest)
        attribution->latest = event->end;
    struct process_line *line;
    switch (event->type) {
    case EVENT_PROCESS:
        return process_take(attribution, event->process, err);
    case EVENT_PROCESS_END:
        line = attribution_process(attribution, event->pid);
        if (line) {
            line->ended = 1;
            attribution->machine_sums.rss -= line->use.rss_bytes;
            line->use.rss_bytes = 0;
        }
        return line ? STK_OK : fail_memory(err, sizeof *line);
    case EVENT_RECORD:
        attribution->records++;
        return take_record(attribution, event, err);
    case EVENT_THREAD:
        return thread_take(attribution, event, err);
    case EVENT_USE:
        return use_take(attribution, event, err);
    case EVENT_MACHINE:
        return machine_take(attribution, event, err);
    case EVENT_DEVICE:
        return device_take(attribution, event, err);
    }
    assert(!"a type that there is not");
    return STK_OK;
}

/* --- settling ----------------------------------------------------------------------------------*/

static size_t kept_bytes(const struct attribution *attribution)
{
    size_t bytes = attribution->machine.count * attribution->machine.size;
    for (size_t i = 0; i < attribution->process_count; i++)
        bytes += process_line_bytes(attribution->processes[i]);
    return bytes;
}

/* Workers that are started anew each epoch would fill the list of processes. */
static void ended_forget(struct attribution *attribution)
{
    size_t ended = 0, kept = 0;
    for (size_t i = 0; i < attribution->process_count; i++)
        ended += attribution->processes[i]->ended != 0;
    for (size_t i = 0; i < attribution->process_count; i++) {
        struct process_line *line = attribution->processes[i];
        if (ended > ENDED_KEPT && line->ended && !line->rank && !process_line_bytes(line)) {
            ended--;
            attribution->ended_workers++;
            attribution->last_found = NULL;
            process_free(line);
        } else {
            attribution->processes[kept++] = line;
        }
    }
    attribution->process_count = kept;
}

/* Where a rank can be settled to: the last time that its loop came round, but not all of it, for
 * what follows may say more about it. */
static uint64_t settle_limit(const struct process_line *line, uint64_t begin, uint64_t upto)
{
    const struct rank_line *rank = line->rank;
    uint64_t from = rank->judged_to > begin ? rank->judged_to : begin;
    if (!begin || upto <= from)
        return 0;
    uint64_t limit = from + (upto - from) / 8 * 5;
    uint64_t last = line->hooked && rank->last_point ? rank->last_point : rank->compute.frontier;
    limit = last < limit ? last : limit;
    if (rank->yielded_at && rank->yielded_at < limit)
        limit = rank->yielded_at;
    if (!rank->kernels) { /* at the end of a next(): nothing is cut in two */
        const struct time_list *nexts = &line->spans[SPAN_NEXT];
        size_t at = time_list_after(nexts, limit);
        limit = at ? time_list_stretch(nexts, at - 1)->end : limit;
    }
    return limit > from ? limit : 0;
}

/* Forgets samples and looks before a moment where no loop needs them. */
static void early_drop(struct attribution *attribution, uint64_t before)
{
    for (size_t i = 0; i < attribution->process_count; i++) {
        struct process_line *line = attribution->processes[i];
        time_list_drop(&line->samples, before);
        time_list_drop(&line->others, before);
        time_list_drop(&line->looks, before);
        time_list_drop(&line->uses, before);
    }
    time_list_drop(&attribution->machine, before);
}

static void lists_sort(struct attribution *attribution)
{
    for (size_t i = 0; i < attribution->process_count; i++)
        process_line_sort(attribution->processes[i]);
    time_list_untangle(&attribution->machine);
}

/* The earliest moment that some rank still has to settle. */
static uint64_t unsettled_from(const struct attribution *attribution, uint64_t upto)
{
    uint64_t from = upto;
    for (size_t i = 0; i < attribution->process_count; i++) {
        const struct process_line *line = attribution->processes[i];
        if (!line->rank)
            continue;
        uint64_t begin = loop_points_begin(attribution, line);
        uint64_t needed = !begin ? upto : line->rank->needed_from ? line->rank->needed_from : begin;
        from = needed < from ? needed : from;
    }
    return from;
}

static stk_status settle_early(struct attribution *attribution, uint64_t upto,
                               struct stk_error *err)
{
    stk_status status = STK_OK;
    for (size_t i = 0; !status && i < attribution->process_count; i++) {
        struct process_line *line = attribution->processes[i];
        if (!line->rank || line->facts.role == PROCESS_WORKER)
            continue;
        uint64_t limit = settle_limit(line, loop_points_begin(attribution, line), upto);
        if (limit)
            status = judge_rank(attribution, line, limit, 0, err);
    }
    uint64_t from = unsettled_from(attribution, upto);
    for (size_t i = 0; i < attribution->process_count; i++)
        process_line_drop(attribution->processes[i], from);
    time_list_drop(&attribution->machine, from);
    ended_forget(attribution);
    /* No loop comes round and memory is short: some of what is known is given up. */
    if (!status && kept_bytes(attribution) > KEPT_BYTES / 4 * 5)
        early_drop(attribution, from + (upto - from) / 2);
    return status;
}

stk_status attribution_settle(struct attribution *attribution, uint64_t upto, struct stk_error *err)
{
    stk_status status = STK_OK;
    for (size_t i = 0; !status && i < attribution->process_count; i++) {
        struct process_line *line = attribution->processes[i];
        if (!line->rank)
            continue;
        status = loop_points_follow(attribution, line, upto, err);
        if (!status)
            status = busy_line_fold(&line->rank->compute, err);
    }
    if (!status)
        status = attribution_told(attribution, err);
    if (status)
        return status;
    attribution->settled = upto > attribution->settled ? upto : attribution->settled;
    lists_sort(attribution);
    status = judge_now(attribution, upto, err);
    if (!status && kept_bytes(attribution) > KEPT_BYTES)
        status = settle_early(attribution, upto, err);
    return status;
}

void attribution_now(const struct attribution *attribution, struct stk_watch_now *out)
{
    *out = attribution->now;
    uint64_t begun = attribution->options.begun;
    out->seconds = attribution->latest > begun ? (double)(attribution->latest - begun) / 1e9 : 0;
}
