#include "watch/trace_out.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/fail.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/text.h"
#include "watch/host_sums.h"
#include "watch/secret_mask.h"
#include "watch/trace_file.h"
#include "watch/trace_rows.h"
#include "watch/trace_stages.h"

#define MACHINE 4194305u /* a pid that Linux never gives: the machine's own counters */
#define MOST_BYTES (UINT64_C(64) << 20)
#define FLUSH_NS 1000000000
#define RATE_NS 500000000u /* samples are counted over this */
#define USE_NS 240000000u  /* and what processes use */

struct trace_out {
    struct trace_file *file;
    struct trace_rows rows;
    uint64_t begun;
    int64_t unix_offset; /* what makes a moment of ours one since 1970 */
    int64_t flushed;
    int no_rows; /* a row could not be made, and its events are missing */
};

/* --- events as text ----------------------------------------------------------------------- */

/* Written by hand: a loop of tiny kernels brings a hundred thousand a second. */
struct line {
    char data[1024];
    size_t len;
};

static void put(struct line *line, const char *text)
{
    size_t len = strlen(text);
    if (len > sizeof line->data - line->len)
        len = sizeof line->data - line->len;
    memcpy(line->data + line->len, text, len);
    line->len += len;
}

static void put_u64(struct line *line, uint64_t number)
{
    char digits[24];
    size_t at = sizeof digits;
    digits[--at] = '\0';
    do
        digits[--at] = (char)('0' + number % 10);
    while (number /= 10);
    put(line, digits + at);
}

/* Nanoseconds as microseconds, the unit of the format. */
static void put_micro(struct line *line, const char *name, uint64_t ns)
{
    char part[5] = {'.', (char)('0' + ns / 100 % 10), (char)('0' + ns / 10 % 10),
                    (char)('0' + ns % 10), '\0'};
    put(line, name);
    put_u64(line, ns / 1000);
    if (ns % 1000)
        put(line, part);
}

static uint64_t since(const struct trace_out *trace, uint64_t time)
{
    return time > trace->begun ? time - trace->begun : 0;
}

static void begin(struct line *line, const char *kind, uint32_t pid, uint32_t tid)
{
    line->len = 0;
    put(line, kind);
    put_u64(line, pid);
    put(line, ",\"tid\":");
    put_u64(line, tid);
}

/* `name` is quoted and escaped already; `args` is "" or the inside of an object. */
static void add_slice(struct trace_out *trace, const struct trace_row *row, const char *name,
                      uint64_t start, uint64_t end, const char *args)
{
    struct line line;
    if (!row || end < start)
        return;
    uint64_t from = since(trace, start);
    begin(&line, "{\"ph\":\"X\",\"pid\":", row->pid, row->tid);
    put_micro(&line, ",\"ts\":", from);
    put_micro(&line, ",\"dur\":", since(trace, end) - from);
    put(&line, ",\"name\":");
    put(&line, name);
    if (args[0]) {
        put(&line, ",\"args\":{");
        put(&line, args);
        put(&line, "}");
    }
    put(&line, "}");
    if (line.len < sizeof line.data)
        trace_file_add(trace->file, line.data, line.len, from);
}

static void add_counter(struct trace_out *trace, uint32_t pid, const char *name, uint64_t time,
                        double value)
{
    struct text text = {0};
    struct line line;
    begin(&line, "{\"ph\":\"C\",\"pid\":", pid, pid);
    put_micro(&line, ",\"ts\":", since(trace, time));
    put(&line, ",\"name\":\"");
    put(&line, name);
    put(&line, "\",\"args\":{\"value\":");
    json_add_double(&text, (double)(int64_t)(value * 1000 + 0.5) / 1000);
    put(&line, text.data ? text.data : "0");
    put(&line, "}}");
    text_free(&text);
    trace_file_add(trace->file, line.data, line.len, since(trace, time));
}

static void add_moment(struct trace_out *trace, uint32_t pid, uint32_t tid, const char *name,
                       uint64_t time)
{
    struct line line;
    begin(&line, "{\"ph\":\"i\",\"s\":\"t\",\"pid\":", pid, tid);
    put_micro(&line, ",\"ts\":", since(trace, time));
    put(&line, ",\"name\":\"");
    put(&line, name);
    put(&line, "\"}");
    trace_file_add(trace->file, line.data, line.len, since(trace, time));
}

/* --- rows --------------------------------------------------------------------------------- */

static void row_names(const struct trace_row *row, struct text *out)
{
    const char *what = row->kind == ROW_PROCESS ? "process" : "thread";
    text_format(out, "{\"ph\":\"M\",\"pid\":%u,\"tid\":%u,\"name\":\"%s_name\",\"args\":{\"name\":",
                row->pid, row->tid, what);
    json_add_string(out, row->label, strlen(row->label));
    text_format(out,
                "}},\n{\"ph\":\"M\",\"pid\":%u,\"tid\":%u,\"name\":\"%s_sort_index\",\"args\":{"
                "\"sort_index\":%d}}",
                row->pid, row->tid, what, row->order);
}

static void add_row(struct trace_out *trace, const struct trace_row *row)
{
    struct text text = {0};
    row_names(row, &text);
    if (!text.failed)
        trace_file_add(trace->file, text.data, text.len, 0);
    text_free(&text);
}

static void label_row(struct trace_row *row)
{
    static const struct {
        const char *format;
        int order;
    } labels[] = {[ROW_PROCESS] = {"process %1$u", 0},
                  [ROW_THREAD] = {"thread %1$u", 5},
                  [ROW_STEPS] = {"steps", 1},
                  [ROW_PHASES] = {"phases", 2},
                  [ROW_STREAM] = {"GPU %1$u, stream %2$u", 3},
                  [ROW_COPIES] = {"GPU %1$u, copies of stream %2$u", 4},
                  [ROW_SYNC] = {"synchronising", 6},
                  [ROW_IDLE] = {"what is waited for", 0},
                  [ROW_COST] = {"recording", 7},
                  [ROW_STAGE] = {"Stoker, loader %1$u, thread %2$u", 8}};
    snprintf(row->label, sizeof row->label, labels[row->kind].format,
             row->kind == ROW_PROCESS ? row->pid : row->a, row->b);
    row->order = labels[row->kind].order;
}

static struct trace_row *row_of(struct trace_out *trace, uint32_t pid, enum trace_row_kind kind,
                                uint32_t a, uint32_t b)
{
    int made;
    struct trace_row *row = trace_rows_get(&trace->rows, pid, kind, a, b, &made);
    trace->no_rows |= !row;
    if (!made || !row)
        return row;
    label_row(row);
    if (kind == ROW_THREAD && a == pid)
        snprintf(row->label, sizeof row->label, "main thread");
    add_row(trace, row);
    return row;
}

static void take_process(struct trace_out *trace, const struct watch_process *process)
{
    struct text name = {0};
    char label[160];
    struct trace_row *row = row_of(trace, process->pid, ROW_PROCESS, 0, 0);
    secret_mask_line(&name, process->name ? process->name : "");
    const char *shown = name.data ? name.data : "";
    if (process->role == PROCESS_WORKER)
        snprintf(label, sizeof label, "worker %d of %u: %s", process->worker, process->main, shown);
    else if (process->rank >= 0)
        snprintf(label, sizeof label, "rank %d: %s", process->rank, shown);
    else
        snprintf(label, sizeof label, "%s", shown[0] ? shown : "process");
    if (row && strcmp(row->label, label) != 0) {
        memcpy(row->label, label, sizeof label);
        row->order = process->role == PROCESS_WORKER ? 100 + process->worker : process->rank + 1;
        add_row(trace, row);
    }
    text_free(&name);
}

/* --- records ------------------------------------------------------------------------------ */

static void take_kernel(struct trace_out *trace, uint32_t pid, const struct record_kernel *kernel)
{
    add_slice(trace, row_of(trace, pid, ROW_STREAM, kernel->device, kernel->stream),
              trace_rows_name_of(&trace->rows, pid, kernel->name), kernel->start, kernel->end,
              kernel->graph ? "\"graph\":1" : "");
}

static void take_copy(struct trace_out *trace, uint32_t pid, const struct record_copy *copy)
{
    char args[96];
    const char *name = copy->way == COPY_TO_DEVICE   ? "\"copy to device\""
                       : copy->way == COPY_TO_HOST   ? "\"copy to host\""
                       : copy->way == COPY_ON_DEVICE ? "\"copy on device\""
                       : copy->way == COPY_CLEAR     ? "\"clear\""
                                                     : "\"copy\"";
    const char *memory = copy->from == COPY_PAGEABLE || copy->to == COPY_PAGEABLE ? "pageable"
                         : copy->from == COPY_PINNED || copy->to == COPY_PINNED   ? "pinned"
                                                                                  : "other";
    snprintf(args, sizeof args, "\"bytes\":%llu,\"memory\":\"%s\"", (unsigned long long)copy->bytes,
             memory);
    add_slice(trace, row_of(trace, pid, ROW_COPIES, copy->device, copy->stream), name, copy->start,
              copy->end, args);
}

static const char *span_name(const struct trace_out *trace, uint32_t pid,
                             const struct record_span *span)
{
    static const char *const names[] = {
        [SPAN_ITER] = "\"make the iterator\"",
        [SPAN_NEXT] = "\"wait for a batch\"",
        [SPAN_FETCH] = "\"fetch\"",
        [SPAN_COLLATE] = "\"collate\"",
        [SPAN_SEND] = "\"hand over\"",
        [SPAN_IDLE] = "\"nothing to do\"",
        [SPAN_PIN] = "\"pin\"",
        [SPAN_CHECKPOINT] = "\"checkpoint\"",
        [SPAN_VALIDATION] = "\"validation\"",
        [SPAN_COLLECTIVE] = "\"collective\"",
        [SPAN_BACKWARD] = "\"backward\"",
        [SPAN_OPTIMIZER] = "\"optimizer\"",
        [SPAN_PROFILER] = "\"the script's profiler\"",
        [SPAN_FORWARD] = "\"forward\"",
        [SPAN_COMPILE] = "\"torch.compile\"",
    };
    if (span->what == SPAN_STAGE)
        return trace_rows_name_of(&trace->rows, pid, (uint32_t)span->a);
    const char *name = span->what < sizeof names / sizeof names[0] ? names[span->what] : NULL;
    return name ? name : "\"span\"";
}

static void take_span(struct trace_out *trace, uint32_t pid, const struct record_span *span)
{
    char args[64] = "";
    int phase =
        span->what == SPAN_VALIDATION || span->what == SPAN_PROFILER || span->what == SPAN_COMPILE;
    struct trace_row *row = phase ? row_of(trace, pid, ROW_PHASES, span->what, 0)
                                  : row_of(trace, pid, ROW_THREAD, span->thread, 0);
    if (row && span->what == SPAN_PIN && strcmp(row->label, "pin thread") != 0) {
        snprintf(row->label, sizeof row->label, "pin thread");
        add_row(trace, row);
    }
    if (span->what == SPAN_NEXT || span->what == SPAN_FETCH)
        snprintf(args, sizeof args, "\"batch\":%llu", (unsigned long long)span->b);
    add_slice(trace, row, span_name(trace, pid, span), span->start, span->end, args);
}

static void take_step(struct trace_out *trace, uint32_t pid, const struct record_mark *mark)
{
    char name[48];
    struct trace_row *row = row_of(trace, pid, ROW_STEPS, (uint32_t)mark->a, 0);
    if (!row)
        return;
    snprintf(name, sizeof name, "\"step %llu\"", (unsigned long long)++row->count);
    if (row->end)
        add_slice(trace, row, name, row->end, mark->time, "");
    row->end = mark->time;
}

static void take_batch(struct trace_out *trace, uint32_t pid, const struct record_mark *mark)
{
    struct trace_row *row = row_of(trace, pid, ROW_PROCESS, 0, 0);
    if (!row)
        return;
    row->count += mark->b;
    if (!row->start) {
        row->start = mark->time;
        row->count = 0;
    } else if (mark->time > row->start + RATE_NS) {
        add_counter(trace, pid, "samples/s", mark->time,
                    (double)row->count * 1e9 / (double)(mark->time - row->start));
        row->start = mark->time;
        row->count = 0;
    }
}

static void take_mark(struct trace_out *trace, uint32_t pid, const struct record_mark *mark)
{
    if (mark->what == MARK_STEP)
        take_step(trace, pid, mark);
    else if (mark->what == MARK_BATCH)
        take_batch(trace, pid, mark);
    else if (mark->what == MARK_EPOCH)
        add_moment(trace, pid, mark->thread, "epoch begins", mark->time);
    else if (mark->what == MARK_EPOCH_END)
        add_moment(trace, pid, mark->thread, "epoch ends", mark->time);
    else if (mark->what == MARK_END)
        add_moment(trace, pid, mark->thread, "the script is over", mark->time);
}

static void take_record(struct trace_out *trace, uint32_t pid, const struct record *record)
{
    const struct record_text *name = (const void *)record;
    const struct record_sync *sync = (const void *)record;
    const struct record_cost *cost = (const void *)record;
    const struct record_queue *queue = (const void *)record;
    switch (record->type) {
    case RECORD_NAME:
        trace_rows_name(&trace->rows, pid, name->id, name->text, name->len);
        break;
    case RECORD_KERNEL:
        take_kernel(trace, pid, (const void *)record);
        break;
    case RECORD_COPY:
        take_copy(trace, pid, (const void *)record);
        break;
    case RECORD_SYNC:
        add_slice(trace, row_of(trace, pid, ROW_SYNC, 0, 0), "\"wait for the device\"", sync->start,
                  sync->end, "");
        break;
    case RECORD_COST:
        add_slice(trace, row_of(trace, pid, ROW_COST, 0, 0), "\"recording\"", cost->start,
                  cost->end, "");
        break;
    case RECORD_SPAN:
        take_span(trace, pid, (const void *)record);
        break;
    case RECORD_MARK:
        take_mark(trace, pid, (const void *)record);
        break;
    case RECORD_QUEUE:
        if (queue->ready >= 0)
            add_counter(trace, pid, "batches ready", queue->time, queue->ready);
        break;
    default:
        break;
    }
}

/* --- counters ----------------------------------------------------------------------------- */

static double each_second(uint64_t count, uint64_t ns)
{
    return ns ? (double)count * 1e9 / (double)ns : 0;
}

static void add_use(struct trace_out *trace, uint32_t pid, const struct watch_use *use,
                    uint64_t time, uint64_t ns)
{
    add_counter(trace, pid, "memory, MB", time, (double)use->rss_bytes / 1e6);
    add_counter(trace, pid, "CPUs", time,
                each_second(use->cpu_user_ns + use->cpu_system_ns, ns) / 1e9);
    add_counter(trace, pid, "read, MB/s", time, each_second(use->read_calls_bytes, ns) / 1e6);
    add_counter(trace, pid, "written, MB/s", time, each_second(use->write_calls_bytes, ns) / 1e6);
    add_counter(trace, pid, "waiting for a CPU, threads", time,
                each_second(use->run_delay_ns, ns) / 1e9);
    add_counter(trace, pid, "major faults/s", time, each_second(use->major_faults, ns));
    if (use->told & USE_BLOCK)
        add_counter(trace, pid, "waiting for a disk, threads", time,
                    each_second(use->block_ns, ns) / 1e9);
}

/* Processes are looked at more often than is worth the room here. */
static void take_use(struct trace_out *trace, const struct watch_event *event)
{
    struct trace_row *row = row_of(trace, event->pid, ROW_PROCESS, 0, 0);
    if (!row)
        return;
    if (!row->use_from)
        row->use_from = event->start;
    host_sums_use(&row->use, event->use);
    if (event->end < row->use_from + USE_NS)
        return;
    add_use(trace, event->pid, &row->use, event->end, event->end - row->use_from);
    row->use = (struct watch_use){0};
    row->use_from = event->end;
}

static void take_machine(struct trace_out *trace, const struct watch_event *event)
{
    const struct watch_machine *machine = event->machine;
    add_counter(trace, MACHINE, "CPUs in use", event->end,
                each_second(machine->cpu_busy_ns, event->end - event->start) / 1e9);
    add_counter(trace, MACHINE, "CPUs of this run", event->end,
                each_second(machine->own_cpu_ns, event->end - event->start) / 1e9);
    const struct {
        const char *name;
        unsigned told;
        uint64_t bytes;
    } counters[] = {{"disk read, MB/s", MACHINE_DISKS, machine->disk_read_bytes},
                    {"disk written, MB/s", MACHINE_DISKS, machine->disk_written_bytes},
                    {"network in, MB/s", MACHINE_NETWORK, machine->network_in_bytes},
                    {"network out, MB/s", MACHINE_NETWORK, machine->network_out_bytes}};
    for (size_t i = 0; i < sizeof counters / sizeof counters[0]; i++)
        if (machine->told & counters[i].told)
            add_counter(trace, MACHINE, counters[i].name, event->end,
                        each_second(counters[i].bytes, machine->io_ns) / 1e6);
}

static void take_device(struct trace_out *trace, const struct watch_event *event)
{
    const struct watch_device *device = event->device;
    uint64_t in = device->pcie_in_bytes_s, out = device->pcie_out_bytes_s;
    const struct {
        const char *words;
        double value;
    } counters[] = {{"PCIe in, MB/s", in == STK_DEVICE_UNKNOWN ? -1 : (double)in / 1e6},
                    {"PCIe out, MB/s", out == STK_DEVICE_UNKNOWN ? -1 : (double)out / 1e6},
                    {"memory, MB", (double)device->memory_used_bytes / 1e6},
                    {"power, W", device->power_mw / 1e3},
                    {"clock, MHz", device->clock_mhz},
                    {"NVML, %", device->busy_percent}};
    for (size_t i = 0; i < sizeof counters / sizeof counters[0]; i++) {
        char name[48];
        if (counters[i].value < 0)
            continue;
        snprintf(name, sizeof name, "GPU %u %s", device->device, counters[i].words);
        add_counter(trace, MACHINE, name, event->end, counters[i].value);
    }
}

void trace_out_take(struct trace_out *trace, const struct watch_event *event)
{
    switch (event->type) {
    case EVENT_PROCESS:
        take_process(trace, event->process);
        break;
    case EVENT_RECORD:
        take_record(trace, event->pid, event->record);
        break;
    case EVENT_USE:
        take_use(trace, event);
        break;
    case EVENT_MACHINE:
        take_machine(trace, event);
        break;
    case EVENT_DEVICE:
        take_device(trace, event);
        break;
    default:
        break;
    }
    int64_t now = clock_coarse();
    if (now - trace->flushed > FLUSH_NS) {
        trace_file_flush(trace->file);
        trace->flushed = now;
    }
}

/* --- gaps --------------------------------------------------------------------------------- */

static void add_idle(struct trace_out *trace, struct trace_row *row)
{
    char name[96];
    snprintf(name, sizeof name, "\"%s\"", cause_words(row->cause)); /* no quotes in the words */
    if (row->end > row->start)
        add_slice(trace, row, name, row->start, row->end, "");
    row->start = row->end = 0;
}

void trace_out_idle(struct trace_out *trace, uint32_t pid, uint64_t start, uint64_t end,
                    enum cause cause)
{
    struct trace_row *row = row_of(trace, pid, ROW_IDLE, 0, 0);
    if (!row)
        return;
    if (row->end != start || row->cause != cause)
        add_idle(trace, row);
    if (row->end != start || !row->end)
        row->start = start;
    row->end = end;
    row->cause = cause;
}

/* --- Stoker's own stages ------------------------------------------------------------------ */

static void stage_row_name(struct trace_out *trace, struct trace_row *row, const struct json *event)
{
    const char *name = "";
    json_get_text(json_member(event, "args"), "name", &name);
    snprintf(row->label, sizeof row->label, "Stoker, loader %u: %.100s", row->a, name);
    add_row(trace, row);
}

static void take_stage(void *user, const struct stage_event *stage)
{
    struct trace_out *trace = user;
    const struct json *event = stage->event;
    const char *kind = "", *name = "";
    double start = 0, length = 0, value = 0;
    uint64_t thread = 0;
    json_get_text(event, "ph", &kind);
    json_get_text(event, "name", &name);
    json_get_u64(event, "tid", &thread);
    json_double(json_member(event, "ts"), &start);
    json_double(json_member(event, "dur"), &length);
    uint64_t from = stage->begun + (uint64_t)(start * 1000);
    if (kind[0] == 'C') {
        if (strpbrk(name, "\"\\\n\t")) /* none of our counters is called so */
            return;
        json_double(json_member(json_member(event, "args"), "value"), &value);
        add_counter(trace, stage->pid, name, from, value);
        return;
    }
    if (kind[0] == 'M' && strcmp(name, "thread_name") != 0)
        return;
    struct trace_row *row = row_of(trace, stage->pid, ROW_STAGE, stage->number, (uint32_t)thread);
    struct text quoted = {0};
    json_add_string(&quoted, name, strlen(name));
    if (row && kind[0] == 'M')
        stage_row_name(trace, row, event);
    else if (kind[0] == 'X' && !quoted.failed)
        add_slice(trace, row, quoted.data, from, from + (uint64_t)(length * 1000), "");
    text_free(&quoted);
}

void trace_out_stages(struct trace_out *trace, int folder)
{
    trace_stages_read(folder, take_stage, trace);
}

/* --- opening and the end ------------------------------------------------------------------ */

static int64_t unix_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

stk_status trace_out_open(struct trace_out **out, const char *path, uint64_t most_bytes,
                          uint64_t begun, struct stk_error *err)
{
    char first[160];
    *out = NULL;
    struct trace_out *trace = memory_zero(1, sizeof *trace);
    if (!trace)
        return fail_memory(err, sizeof *trace);
    trace->begun = begun;
    trace->unix_offset = unix_now() - clock_now();
    snprintf(first, sizeof first,
             "{\"ph\":\"M\",\"pid\":%u,\"tid\":0,\"name\":\"process_name\",\"args\":{\"name\":"
             "\"machine\"}}",
             MACHINE);
    stk_status status =
        trace_file_open(&trace->file, path, most_bytes ? most_bytes : MOST_BYTES, first, err);
    if (status) {
        trace_out_close(trace);
        return status;
    }
    *out = trace;
    return STK_OK;
}

/* What is left out, and how times are to be read. */
static void add_data(const struct trace_out *trace, struct text *out)
{
    struct trace_file_kept kept;
    trace_file_kept(trace->file, &kept);
    text_format(out,
                "{\"stoker_trace\":1,\"clock\":\"CLOCK_MONOTONIC\",\"begun_ns\":%llu,"
                "\"unix_offset_ns\":%lld,\"events\":%llu,\"dropped\":%llu",
                (unsigned long long)trace->begun, (long long)trace->unix_offset,
                (unsigned long long)kept.events, (unsigned long long)kept.dropped);
    if (kept.dropped)
        text_format(out, ",\"dropped_from_s\":%llu.%03u,\"dropped_to_s\":%llu.%03u",
                    (unsigned long long)(kept.dropped_from / 1000000000),
                    (unsigned)(kept.dropped_from / 1000000 % 1000),
                    (unsigned long long)(kept.dropped_to / 1000000000),
                    (unsigned)(kept.dropped_to / 1000000 % 1000));
    if (trace->no_rows)
        text_format(out, ",\"rows\":\"there were more rows than fit\"");
    text_format(out, "}");
}

stk_status trace_out_finish(struct trace_out *trace, struct stk_error *err)
{
    struct text names = {0}, data = {0};
    struct trace_row *row;
    size_t at = 0;
    stk_status status;
    while ((row = trace_rows_each(&trace->rows, &at))) {
        if (row->kind == ROW_IDLE)
            add_idle(trace, row);
        text_format(&names, ",\n"); /* once more: the first time may have been dropped */
        row_names(row, &names);
    }
    add_data(trace, &data);
    if (names.failed || data.failed)
        status = fail_memory(err, names.len);
    else
        status = trace_file_finish(trace->file, names.data ? names.data : "", data.data, err);
    text_free(&names);
    text_free(&data);
    return status;
}

void trace_out_close(struct trace_out *trace)
{
    if (!trace)
        return;
    trace_file_close(trace->file);
    trace_rows_reset(&trace->rows);
    memory_free(trace);
}
