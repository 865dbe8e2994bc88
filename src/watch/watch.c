#include "stoker/watch.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/context.h"
#include "base/fail.h"
#include "base/memory.h"
#include "watch/child.h"
#include "watch/collect.h"
#include "watch/summary_json.h"
#include "watch/verdict.h"
#include "watch/watch_environment.h"
#include "work/cores.h"

#define TRACE_BYTES ((uint64_t)64 << 20)

struct stk_watch {
    struct stk_context *context;
    struct stk_watch_options options;
    char **command; /* a copy; NULL: this process */
    struct run_folder *folder;
    char **environment;
    struct attribution *attribution;
    struct trace_out *trace;
    struct collect *collect;
    struct child child;
    struct stk_watch_exit exit;
    char notice[512];      /* about the environment; "": none */
    char trace_fault[512]; /* "": none */
    uint64_t begun, until; /* until 0: to the end */
    uint64_t ended;        /* 0: not yet */
    int64_t started;
    int ran, stopped;
    struct summary *summary; /* once it was asked for */
    struct verdict *verdict;
    char *run, *words;
};

/* --- opening ---------------------------------------------------------------------------------- */

static void tell_idle(void *user, uint32_t pid, uint64_t start, uint64_t end, enum cause cause)
{
    struct stk_watch *watch = user;
    if (watch->trace)
        trace_out_idle(watch->trace, pid, start, end, cause);
}

/* A NULL-ended list in one block. */
static char **copy_words(const char *const *words)
{
    size_t count = 0, bytes = 0;
    for (; words[count]; count++)
        bytes += strlen(words[count]) + 1;
    char **block = memory_alloc((count + 1) * sizeof *block + bytes);
    if (!block)
        return NULL;
    char *text = (char *)(block + count + 1);
    for (size_t i = 0; i < count; i++) {
        block[i] = strcpy(text, words[i]);
        text += strlen(text) + 1;
    }
    block[count] = NULL;
    return block;
}

static stk_status write_options(struct stk_watch *watch, struct stk_error *err)
{
    struct text text = {0};
    stk_status status = environment_options(&text, &watch->options, watch->until, err);
    if (!status)
        status = run_folder_write(watch->folder, "options.json", text.data, text.len, err);
    if (!status && (watch->options.every_kernel || !watch->command))
        status = run_folder_write(watch->folder, "every-kernel", "", 0, err); /* for inject.c */
    text_free(&text);
    return status;
}

static stk_status open_trace(struct stk_watch *watch, struct stk_error *err)
{
    const struct stk_watch_options *options = &watch->options;
    return trace_out_open(&watch->trace, options->trace_path,
                          options->trace_bytes ? options->trace_bytes : TRACE_BYTES, watch->begun,
                          err);
}

/* Whether it can be written. A trace that is there is not touched before the command runs: it may
 * be one that cannot. */
static stk_status check_trace(const char *path, struct stk_error *err)
{
    struct stat found;
    if (!stat(path, &found) && S_ISFIFO(found.st_mode) && !access(path, R_OK | W_OK))
        return STK_OK; /* opened and closed again it would end its reader */
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd >= 0)
        (void)unlink(path);
    else if (errno == EEXIST)
        fd = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) {
        stk_status status = fail_errno(err, errno, "cannot write the trace");
        fail_at(err, path, STK_NOWHERE);
        return status;
    }
    close(fd);
    return STK_OK;
}

static stk_status open_outputs(struct stk_watch *watch, struct stk_error *err)
{
    const struct stk_watch_options *options = &watch->options;
    struct attribution_options about = {
        .begun = watch->begun, .cpus = cores_usable(), .idle = tell_idle, .user = watch};
    stk_status status = STK_OK;
    if (options->trace_path && watch->command)
        status = check_trace(options->trace_path, err);
    else if (options->trace_path)
        status = open_trace(watch, err);
    if (!status)
        status = attribution_new(&watch->attribution, &about, err);
    return status;
}

static stk_status start_collecting(struct stk_watch *watch, uint32_t root, struct stk_error *err)
{
    struct collect_options options = {
        .folder = run_folder_fd(watch->folder),
        .root = root,
        .begun = watch->begun,
        .until = watch->until,
        .visible = getenv("CUDA_VISIBLE_DEVICES"),
        .attribution = watch->attribution,
        .trace = watch->trace,
        .live = watch->options.live,
        .user = watch->options.user,
    };
    stk_status status = collect_new(&watch->collect, &options, err);
    if (!status)
        status = collect_start(watch->collect, err);
    return status;
}

stk_status stk_watch_open(struct stk_watch **out, struct stk_context *context,
                          const struct stk_watch_options *options, struct stk_error *err)
{
    stk_status status = STK_OK;
    *out = NULL;
    if (options->command && !options->command[0])
        return fail(err, STK_USAGE, "there is no command to run");
    struct stk_watch *watch = memory_zero(1, sizeof *watch);
    if (!watch)
        return fail_memory(err, sizeof *watch);
    watch->context = context;
    watch->options = *options;
    watch->begun = (uint64_t)clock_now();
    watch->started = (int64_t)time(NULL);
    if (options->seconds > 0 && options->seconds < UINT32_MAX)
        watch->until = watch->begun + options->seconds * 1000000000u;
    if (options->command) {
        watch->command = copy_words(options->command);
        status = watch->command ? STK_OK : fail_memory(err, 0);
    }
    if (!status)
        status = run_folder_open(&watch->folder, run_files, err);
    if (!status)
        status = write_options(watch, err);
    watch->options.replay = NULL; /* the caller's, and no longer needed */
    if (!status)
        status = environment_make(&watch->environment, watch->folder, watch->notice,
                                  sizeof watch->notice, err);
    if (!status)
        status = open_outputs(watch, err);
    if (!status && !options->command)
        status = start_collecting(watch, (uint32_t)getpid(), err);
    if (status)
        goto done;
    *out = watch;
    watch = NULL;
done:
    stk_watch_close(watch);
    return status;
}

const char *stk_watch_folder(const struct stk_watch *watch)
{
    return run_folder_path(watch->folder);
}

/* --- running ---------------------------------------------------------------------------------- */

stk_status stk_watch_run(struct stk_watch *watch, struct stk_watch_exit *out, struct stk_error *err)
{
    struct stk_error fault;
    *out = (struct stk_watch_exit){0};
    if (!watch->command || watch->ran)
        return fail(err, STK_USAGE, "this watch has no command that was not run yet");
    watch->ran = 1;
    stk_status status =
        child_start(&watch->child, (const char *const *)watch->command, watch->environment, err);
    if (status)
        return status;
    /* The command runs now, whatever happens here. */
    if (watch->options.trace_path && open_trace(watch, &fault)) {
        snprintf(watch->trace_fault, sizeof watch->trace_fault, "There is no trace: %.400s.",
                 fault.what);
        context_notice(watch->context, "%s", watch->trace_fault);
    }
    if (start_collecting(watch, (uint32_t)watch->child.pid, &fault))
        snprintf(watch->notice, sizeof watch->notice, "The command was not watched: %.400s.",
                 fault.what);
    status = child_wait(&watch->child, &watch->exit, err);
    watch->ended = (uint64_t)clock_now();
    if (watch->collect)
        collect_stop(watch->collect);
    child_close(&watch->child); /* not before: the last look is at what it used in all */
    watch->stopped = 1;
    *out = watch->exit;
    return status;
}

/* --- the end ---------------------------------------------------------------------------------- */

static void add_sentence(char *list[SUMMARY_REASONS], const char *sentence)
{
    int at = 0;
    while (at < SUMMARY_REASONS - 1 && list[at])
        at++;
    if (at < SUMMARY_REASONS - 1 && sentence[0])
        list[at] = memory_text(sentence, strlen(sentence));
}

static void finish_trace(struct stk_watch *watch)
{
    struct stk_error err;
    if (!watch->trace)
        return;
    trace_out_stages(watch->trace, run_folder_fd(watch->folder));
    if (trace_out_finish(watch->trace, &err)) {
        snprintf(watch->trace_fault, sizeof watch->trace_fault,
                 "The trace is not complete: %.400s. What was written can be opened.", err.what);
        context_notice(watch->context, "%s", watch->trace_fault);
    }
    trace_out_close(watch->trace);
    watch->trace = NULL;
}

/* The words of this process's own command line. */
static char **own_command(void)
{
    char text[4096];
    const char *words[64];
    size_t len = proc_read("/proc/self/cmdline", text, sizeof text), count = 0;
    for (size_t at = 0; at < len && count < 63; at += strlen(text + at) + 1)
        words[count++] = text + at;
    words[count] = NULL;
    return copy_words(words);
}

/* The list and the words of a summary are blocks of their own. */
static char **summary_command(const struct stk_watch *watch)
{
    char **from = watch->command ? copy_words((const char *const *)watch->command) : own_command();
    size_t count = 0;
    while (from && from[count])
        count++;
    char **list = from ? memory_zero(count + 1, sizeof *list) : NULL;
    for (size_t i = 0; list && i < count; i++)
        list[i] = memory_text(from[i], strlen(from[i]));
    memory_free(from);
    return list;
}

static void fill_facts(struct summary *summary, const struct collect_facts *facts)
{
    summary->records = facts->records;
    summary->lost = facts->lost;
    snprintf(summary->gpu_name, sizeof summary->gpu_name, "%s", facts->gpu_name);
    snprintf(summary->driver, sizeof summary->driver, "%s", facts->driver);
    snprintf(summary->cupti, sizeof summary->cupti, "%s", facts->cupti);
    snprintf(summary->python, sizeof summary->python, "%.15s", facts->python);
    snprintf(summary->torch, sizeof summary->torch, "%.31s", facts->torch);
    summary->watcher_cpu_ns = facts->cpu_ns;
    for (int i = 0; facts->notices[i]; i++)
        add_sentence(summary->notices, facts->notices[i]);
    if (facts->fault) {
        char words[600];
        snprintf(words, sizeof words, "Watching ended before the run did: %.500s.", facts->fault);
        add_sentence(summary->unreliable, words);
    }
}

/* What belongs to the run as a whole. */
static void fill_run(struct stk_watch *watch, struct summary *summary)
{
    struct collect_facts facts = {0};
    struct utsname about;
    char text[4096];
    summary->command = summary_command(watch);
    summary->exit_status = watch->exit.status;
    summary->exit_signal = watch->exit.signal;
    summary->started = watch->started;
    summary->wall_ns = watch->ended - watch->begun;
    summary->cpus = cores_usable();
    summary->memory_bytes = machine_memory();
    if (!uname(&about))
        snprintf(summary->kernel, sizeof summary->kernel, "%.20s %.70s", about.sysname,
                 about.release);
    /* Not getrusage's: that one begins with the peak of the program that started us. */
    size_t len = proc_read("/proc/self/status", text, sizeof text);
    summary->watcher_rss = machine_parse_memory(text, len, "VmHWM:");
    add_sentence(summary->notices, watch->notice);
    add_sentence(summary->notices, watch->trace_fault);
    if (watch->collect) {
        collect_facts(watch->collect, &facts);
        fill_facts(summary, &facts);
    }
    if (watch->until && watch->ended > watch->until) {
        char words[160];
        snprintf(words, sizeof words, "Only the first %u seconds of the run were watched.",
                 (unsigned)watch->options.seconds);
        add_sentence(summary->notices, words);
    }
}

static stk_status make_summary(struct stk_watch *watch, struct stk_error *err)
{
    if (!watch->stopped) {
        watch->ended = (uint64_t)clock_now();
        if (watch->collect)
            collect_stop(watch->collect);
        watch->stopped = 1;
    }
    watch->summary = memory_zero(1, sizeof *watch->summary);
    watch->verdict = memory_zero(1, sizeof *watch->verdict);
    if (!watch->summary || !watch->verdict)
        return fail_memory(err, sizeof *watch->summary + sizeof *watch->verdict);
    stk_status status = attribution_finish(watch->attribution, watch->summary, err);
    finish_trace(watch); /* the last idle pieces are settled now */
    if (!status)
        fill_run(watch, watch->summary);
    return status;
}

static stk_status add_what_if(struct summary *summary, const char *json, struct stk_error *err)
{
    struct summary_what_if found = {0};
    stk_status status = summary_json_read_what_if(json, summary, &found, err);
    if (status)
        return status;
    if (!summary->what_if)
        summary->what_if = memory_zero(1, sizeof *summary->what_if);
    if (!summary->what_if)
        return fail_memory(err, sizeof *summary->what_if);
    *summary->what_if = found;
    return STK_OK;
}

stk_status stk_watch_finish(struct stk_watch *watch, const char *what_if, const char **run,
                            const char **words, struct stk_error *err)
{
    stk_status status = STK_OK;
    *run = *words = NULL;
    if (!watch->summary)
        status = make_summary(watch, err);
    if (!status && what_if)
        status = add_what_if(watch->summary, what_if, err);
    if (status)
        return status;
    memory_free(watch->run);
    memory_free(watch->words);
    watch->run = watch->words = NULL;
    verdict_find(watch->verdict, watch->summary);
    status = summary_json_write(watch->summary, watch->verdict, &watch->run, err);
    if (status)
        return status;
    watch->words = verdict_text(watch->verdict, watch->summary);
    if (!watch->words)
        return fail_memory(err, 0);
    *run = watch->run;
    *words = watch->words;
    return STK_OK;
}

void stk_watch_close(struct stk_watch *watch)
{
    if (!watch)
        return;
    collect_free(watch->collect); /* first: its thread uses the others */
    trace_out_close(watch->trace);
    attribution_free(watch->attribution);
    run_folder_close(watch->folder);
    if (watch->summary)
        summary_free(watch->summary);
    memory_free(watch->summary);
    memory_free(watch->verdict);
    memory_free(watch->environment);
    memory_free(watch->command);
    memory_free(watch->run);
    memory_free(watch->words);
    memory_free(watch);
}
