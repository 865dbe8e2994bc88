/* watch_story.h -- tells attribution a made-up run: short functions that make one event each.
 * Owns: the attribution and its summary.   Threads: one.   Errors: a failed assertion.
 * Not here: what is expected of it. */
#ifndef TESTS_WATCH_STORY_H
#define TESTS_WATCH_STORY_H

#include "base/testing.h"

#include "base/random.h"
#include "watch/attribution.h"

#define MS UINT64_C(1000000)
#define US UINT64_C(1000)
#define BEGUN (100 * MS)
#define MAIN 100u
#define WORKER 200u /* + its number */
#define LOADER 1u

struct story {
    struct attribution *attribution;
    struct summary summary;
    uint64_t told[CAUSE_COUNT]; /* by the callback */
};

TESTING void story_told(void *user, uint32_t pid, uint64_t start, uint64_t end, enum cause cause)
{
    struct story *story = user;
    (void)pid;
    story->told[cause] += end - start;
}

TESTING struct story *story_begin(void)
{
    struct story *story = calloc(1, sizeof *story);
    struct attribution_options options = {
        .begun = BEGUN, .cpus = 4, .idle = story_told, .user = story};
    assert_int_equal(attribution_new(&story->attribution, &options, NULL), STK_OK);
    return story;
}

TESTING void story_take(struct story *story, const struct watch_event *event)
{
    assert_int_equal(attribution_take(story->attribution, event, NULL), STK_OK);
}

TESTING void story_process(struct story *story, uint32_t pid, enum process_role role,
                           int32_t worker)
{
    struct watch_process process = {.pid = pid,
                                    .parent = 1,
                                    .role = role,
                                    .main = role == PROCESS_MAIN ? pid : MAIN,
                                    .worker = worker,
                                    .rank = -1,
                                    .world = 1,
                                    .name = "python train.py"};
    story_take(story,
               &(struct watch_event){.type = EVENT_PROCESS, .pid = pid, .process = &process});
}

TESTING void story_record(struct story *story, uint32_t pid, uint64_t start, uint64_t end,
                          const void *record)
{
    story_take(story,
               &(struct watch_event){
                   .type = EVENT_RECORD, .pid = pid, .start = start, .end = end, .record = record});
}

TESTING void story_kernel(struct story *story, uint64_t start, uint64_t end, uint32_t name)
{
    struct record_kernel kernel = {.head = {RECORD_KERNEL, 0, sizeof kernel},
                                   .start = BEGUN + start,
                                   .end = BEGUN + end,
                                   .stream = 7,
                                   .name = name};
    story_record(story, MAIN, kernel.start, kernel.end, &kernel);
}

TESTING void story_copy(struct story *story, uint64_t start, uint64_t end, uint64_t bytes,
                        enum copy_way way)
{
    struct record_copy copy = {.head = {RECORD_COPY, 0, sizeof copy},
                               .start = BEGUN + start,
                               .end = BEGUN + end,
                               .bytes = bytes,
                               .way = (uint8_t)way,
                               .from = COPY_PAGEABLE};
    story_record(story, MAIN, copy.start, copy.end, &copy);
}

TESTING void story_sync(struct story *story, uint64_t start, uint64_t end)
{
    struct record_sync sync = {.head = {RECORD_SYNC, 0, sizeof sync},
                               .start = BEGUN + start,
                               .end = BEGUN + end,
                               .what = SYNC_STREAM};
    story_record(story, MAIN, sync.start, sync.end, &sync);
}

TESTING void story_gpu(struct story *story, enum gpu_state what, uint64_t time, const char *text)
{
    size_t len = strlen(text), size = (sizeof(struct record_gpu) + len + 7) / 8 * 8;
    struct record_gpu *gpu = calloc(1, size);
    gpu->head = (struct record){RECORD_GPU, 0, (uint32_t)size};
    gpu->time = BEGUN + time;
    gpu->state = what;
    gpu->len = (uint32_t)len;
    memcpy(gpu->text, text, len);
    story_record(story, MAIN, gpu->time, gpu->time, gpu);
    free(gpu);
}

/* cpu: RAN(share of it that the thread ran); 0: not told. */
#define RAN(share) (1 + (unsigned)((share)*SPAN_CPU_WHOLE))
struct told_span {
    uint32_t pid, what;
    uint64_t start, end;
    uint64_t batch;
    unsigned cpu;
    uint32_t loader; /* 0: LOADER */
    uint32_t flags;
    uint32_t thread; /* 0: the main one */
};
TESTING void story_span(struct story *story, const struct told_span *told)
{
    struct record_span span = {.head = {RECORD_SPAN, (uint16_t)told->flags, sizeof span},
                               .start = BEGUN + told->start,
                               .end = BEGUN + told->end,
                               .thread = told->thread ? told->thread : told->pid,
                               .what = told->what,
                               .a = told->loader ? told->loader : LOADER,
                               .b = told->batch};
    span.head.flags |= (uint16_t)(told->cpu << SPAN_CPU_SHIFT);
    story_record(story, told->pid, span.start, span.end, &span);
}
#define SPAN(story, ...) story_span(story, &(struct told_span){__VA_ARGS__})

TESTING void story_mark(struct story *story, enum mark_what what, uint64_t time, uint64_t a,
                        uint64_t b)
{
    struct record_mark mark = {.head = {RECORD_MARK, 0, sizeof mark},
                               .time = BEGUN + time,
                               .thread = MAIN,
                               .what = what,
                               .a = a,
                               .b = b};
    story_record(story, MAIN, mark.time, mark.time, &mark);
}

TESTING void story_text(struct story *story, uint32_t pid, enum record_type type, uint32_t id,
                        const char *text)
{
    size_t len = strlen(text), size = (sizeof(struct record_text) + len + 7) / 8 * 8;
    struct record_text *record = calloc(1, size);
    record->head = (struct record){(uint16_t)type, 0, (uint32_t)size};
    record->id = id;
    record->len = (uint32_t)len;
    memcpy(record->text, text, len);
    story_record(story, pid, BEGUN, BEGUN, record);
    free(record);
}

struct told_frame {
    uint32_t id, parent, flags;
    const char *function, *file;
    uint32_t line;
};
TESTING void story_tell_frame(struct story *story, uint32_t pid, const struct told_frame *told)
{
    size_t a = strlen(told->function), b = strlen(told->file);
    size_t size = (sizeof(struct record_frame) + a + b + 7) / 8 * 8;
    struct record_frame *frame = calloc(1, size);
    frame->head = (struct record){RECORD_FRAME, (uint16_t)told->flags, (uint32_t)size};
    frame->id = told->id;
    frame->parent = told->parent;
    frame->line = told->line;
    frame->function_len = (uint16_t)a;
    frame->file_len = (uint16_t)b;
    memcpy(frame->text, told->function, a);
    memcpy(frame->text + a, told->file, b);
    story_record(story, pid, BEGUN, BEGUN, frame);
    free(frame);
}

TESTING void story_frame(struct story *story, uint32_t pid, uint32_t id, uint32_t parent,
                         const char *function, const char *file, uint32_t line)
{
    story_tell_frame(
        story, pid,
        &(struct told_frame){
            .id = id, .parent = parent, .function = function, .file = file, .line = line});
}

/* A thread was in a frame for a stretch of time; cpu: the share that it ran. */
TESTING void story_sample(struct story *story, uint32_t pid, uint64_t start, uint64_t end,
                          uint32_t frame, double cpu)
{
    struct record_sample sample = {.head = {RECORD_SAMPLE, 0, sizeof sample},
                                   .time = BEGUN + end,
                                   .weight = end - start,
                                   .cpu = (uint64_t)((double)(end - start) * cpu),
                                   .thread = pid,
                                   .kind = SAMPLE_MAIN,
                                   .frame = frame};
    story_record(story, pid, sample.time, sample.time, &sample);
}

TESTING void story_thread(struct story *story, uint32_t pid, uint64_t start, uint64_t end,
                          double cpu, double delay)
{
    struct watch_thread thread = {.thread = pid,
                                  .cpu_ns = (uint64_t)((double)(end - start) * cpu),
                                  .run_delay_ns = (uint64_t)((double)(end - start) * delay)};
    story_take(story, &(struct watch_event){.type = EVENT_THREAD,
                                            .pid = pid,
                                            .start = BEGUN + start,
                                            .end = BEGUN + end,
                                            .thread = &thread});
}

/* All threads of a process. */
TESTING void story_use(struct story *story, uint32_t pid, uint64_t start, uint64_t end, double cpu)
{
    struct watch_use use = {.cpu_user_ns = (uint64_t)((double)(end - start) * cpu)};
    story_take(story, &(struct watch_event){.type = EVENT_USE,
                                            .pid = pid,
                                            .start = BEGUN + start,
                                            .end = BEGUN + end,
                                            .use = &use});
}

/* CPUs in use: by the watched processes, by others. */
TESTING void story_machine(struct story *story, uint64_t start, uint64_t end, double own,
                           double foreign)
{
    struct watch_machine machine = {.cpus = 4,
                                    .cpu_busy_ns =
                                        (uint64_t)((double)(end - start) * (own + foreign)),
                                    .own_cpu_ns = (uint64_t)((double)(end - start) * own)};
    story_take(story, &(struct watch_event){.type = EVENT_MACHINE,
                                            .start = BEGUN + start,
                                            .end = BEGUN + end,
                                            .machine = &machine});
}

TESTING void story_settle(struct story *story, uint64_t upto)
{
    assert_int_equal(attribution_settle(story->attribution, BEGUN + upto, NULL), STK_OK);
}

/* What NVML says of a device; pid 0: nobody uses it. */
TESTING void story_device(struct story *story, uint64_t time, uint32_t device, uint32_t busy,
                          uint32_t pid)
{
    struct watch_device about = {
        .device = device, .busy_percent = busy, .pids = &pid, .pid_count = pid != 0};
    story_take(story, &(struct watch_event){.type = EVENT_DEVICE,
                                            .start = BEGUN + time,
                                            .end = BEGUN + time,
                                            .device = &about});
}

/* The only rank; its sums must be right whatever happened. */
TESTING const struct summary_rank *story_end(struct story *story)
{
    assert_int_equal(attribution_finish(story->attribution, &story->summary, NULL), STK_OK);
    assert_int_equal(story->summary.rank_count, 1);
    const struct summary_rank *rank = &story->summary.ranks[0];
    uint64_t sum = 0;
    for (int i = 0; i < CAUSE_COUNT; i++)
        sum += rank->causes[i].ns;
    assert_int_equal(sum, rank->idle_ns);
    assert_int_equal(rank->end - rank->start, rank->idle_ns + rank->compute_ns + rank->excluded_ns);
    return rank;
}

TESTING void story_free(struct story *story)
{
    attribution_free(story->attribution);
    summary_free(&story->summary);
    free(story);
}

#endif
