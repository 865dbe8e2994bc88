/* `stoker run`: runs a training script and tells what its GPU waited for. */
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "stoker/report.h"
#include "stoker/watch.h"

#include "exit_status.h"
#include "interrupt.h"
#include "live_line.h"
#include "message.h"
#include "options.h"
#include "output_file.h"

#define PATIENCE 30 /* seconds that a report may take to be drawn after Ctrl-C */

enum { EXIT_CANNOT_RUN = 126, EXIT_NO_COMMAND = 127 }; /* as shells have it */

struct run_arguments {
    struct arguments base;
    const char *report, *trace, *json;
    uint64_t seconds;
    int what_if, live, every_kernel;
};

/* What a run came to. */
struct outcome {
    struct stk_watch *watch;
    const char *run, *words; /* the watch's */
    int is_drawn;            /* the report is there */
};

/* --- before anything runs --------------------------------------------------------------------- */

/* A standard stream that was closed stays closed for the command. Here something is put in its
 * place, for else a file of ours takes its number, and words meant for a person go into it. */
static void hold_streams(void)
{
    int fd;

    do
        fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd >= 0)
        close(fd);
}

/* A trace is begun anew and cut as it grows: not in a file that the command prints into. */
static int is_open_file(const char *path)
{
    struct stat found;

    return output_file_is_stream(path) && !stat(path, &found) && S_ISREG(found.st_mode);
}

/* An output that cannot be written must not be found out after hours. */
static int check_outputs(struct stk_context *context, struct run_arguments *arguments)
{
    struct stk_error err;

    if (arguments->json && !strcmp(arguments->json, "-"))
        arguments->json = "/dev/stdout";
    /* First, for a standard stream that is closed is seen to be so until it is held. */
    if (arguments->json && output_file_check(arguments->json))
        return EXIT_FAILED;
    hold_streams();
    if (arguments->trace && is_open_file(arguments->trace))
        return message_failed("the trace would go over what is in %s, which is open already\n"
                              "  name a file of its own for it",
                              arguments->trace);
    if (arguments->report && stk_report_ready(context, arguments->report, &err))
        return message_error(&err);
    return 0;
}

/* --- one run ---------------------------------------------------------------------------------- */

static int fail_to_start(const struct stk_error *err)
{
    (void)message_error(err);
    if (err->status == STK_NOT_FOUND)
        return EXIT_NO_COMMAND;
    return err->status == STK_DENIED ? EXIT_CANNOT_RUN : EXIT_FAILED;
}

/* Before a second run: what the first one came to, in short. All of it comes at the end. */
static void announce(const char *words)
{
    const char *end = strstr(words, "\n\n");

    fprintf(stderr, "%.*s\n", end ? (int)(end - words) : INT_MAX, words);
    message_note("the command runs again now, with a few batches of its loaders shown again from "
                 "memory: what it does besides (checkpoints, logs, files), it does again");
}

/* Runs the command; again where there is a first run. 0, or an exit status: it did not run. *watch
 * is the caller's. */
static int watch_once(struct stk_context *context, const struct run_arguments *arguments,
                      const struct outcome *first, struct stk_watch **watch,
                      struct stk_watch_exit *ended)
{
    uint64_t next_line = 0;
    struct stk_error err;
    struct stk_watch_options options = {
        .command = (const char *const *)arguments->base.words,
        .trace_path = first ? NULL : arguments->trace,
        .seconds = arguments->seconds,
        .every_kernel = arguments->every_kernel,
        .replay = first ? first->run : NULL,
        .live = arguments->live ? live_line_draw : NULL,
        .user = &next_line,
    };

    if (stk_watch_open(watch, context, &options, &err))
        return message_error(&err);
    if (first)
        announce(first->words);
    interrupt_suspend();
    stk_status status = stk_watch_run(*watch, ended, &err);
    interrupt_resume();
    if (arguments->live)
        live_line_clear();
    return status ? fail_to_start(&err) : 0;
}

/* --- what is written -------------------------------------------------------------------------- */

enum due {
    DUE_ALL,
    DUE_FILES,  /* which are written again when more is known */
    DUE_STREAMS /* which are written once */
};

static int is_due(const char *path, enum due due)
{
    return path && (due == DUE_ALL || output_file_is_stream(path) == (due == DUE_STREAMS));
}

static int write_run(const char *path, const char *run)
{
    struct output_file file;
    int status = output_file_begin(&file, path);

    if (status)
        return status;
    fputs(run, file.stream);
    return output_file_commit(&file);
}

/* From the run file, or from one of ours where the user's cannot be read. */
static int draw(struct stk_context *context, const char *report, const char *json,
                const struct outcome *outcome)
{
    char inside[PATH_MAX];
    struct stk_error err;

    if (!json || output_file_is_stream(json)) {
        snprintf(inside, sizeof(inside), "%s/run.json", stk_watch_folder(outcome->watch));
        json = inside;
        if (write_run(json, outcome->run))
            return EXIT_FAILED;
    }
    return stk_report_make(context, &json, 1, report, &err) ? message_error(&err) : EXIT_DONE;
}

static void write_outputs(struct stk_context *context, const struct run_arguments *arguments,
                          struct outcome *outcome, enum due due)
{
    const char *json = arguments->json;

    if (is_due(json, due) && write_run(json, outcome->run))
        json = NULL;
    if (is_due(arguments->report, due))
        outcome->is_drawn = !draw(context, arguments->report, json, outcome);
}

/* --- the second run --------------------------------------------------------------------------- */

/* The run file of a second run in which input is free; NULL: there was none, and words say why. */
static const char *replay(struct stk_context *context, const struct run_arguments *arguments,
                          const struct outcome *first, struct stk_watch **watch,
                          struct stk_watch_exit *ended)
{
    const char *run = NULL, *words;
    struct stk_error err;

    if (watch_once(context, arguments, first, watch, ended))
        return NULL;
    if (ended->signal || ended->status) {
        message_note("the second run did not end well, so what input costs is not measured");
        return NULL;
    }
    if (stk_watch_finish(*watch, NULL, &run, &words, &err)) {
        (void)message_error(&err);
        return NULL;
    }
    return run;
}

/* Runs the command again, and judges anew: what is due then. What is known is written before, for
 * the second run may take hours. */
static enum due measure(struct stk_context *context, const struct run_arguments *arguments,
                        struct outcome *outcome, struct stk_watch_exit *ended)
{
    struct stk_watch *second = NULL;
    struct stk_watch_exit again = {0};
    struct stk_error err;
    enum due due = DUE_STREAMS;

    interrupt_patience(PATIENCE);
    write_outputs(context, arguments, outcome, DUE_FILES);
    if (interrupt_pending())
        return due;
    const char *other = replay(context, arguments, outcome, &second, &again);
    if (other && stk_watch_finish(outcome->watch, other, &outcome->run, &outcome->words, &err))
        (void)message_error(&err);
    else if (other)
        due = DUE_ALL;
    if (again.signal)
        *ended = again; /* Ctrl-C ends us, too */
    /* The first run's words stand where the second could not be used. */
    if (!outcome->run &&
        stk_watch_finish(outcome->watch, NULL, &outcome->run, &outcome->words, &err))
        (void)message_error(&err);
    stk_watch_close(second);
    return due;
}

/* --- the end ---------------------------------------------------------------------------------- */

/* As the command ended, so do we: a shell sees the same. */
static int end_alike(const struct stk_watch_exit *ended)
{
    const struct rlimit none = {0, 0};
    sigset_t only;

    if (!ended->signal)
        return ended->status;
    fflush(NULL);
    (void)setrlimit(RLIMIT_CORE, &none); /* the core is the command's */
    (void)signal(ended->signal, SIG_DFL);
    sigemptyset(&only);
    sigaddset(&only, ended->signal);
    (void)sigprocmask(SIG_UNBLOCK, &only, NULL);
    (void)raise(ended->signal);
    return EXIT_SIGNALLED + ended->signal;
}

static void tell(struct stk_context *context, const struct run_arguments *arguments,
                 struct stk_watch *watch, struct stk_watch_exit *ended)
{
    struct outcome outcome = {.watch = watch};
    enum due due = DUE_ALL;
    struct stk_error err;

    if (stk_watch_finish(watch, NULL, &outcome.run, &outcome.words, &err))
        (void)message_error(&err);
    else if (arguments->what_if && (ended->signal || ended->status))
        message_note("the command did not end well, so it is not run a second time");
    else if (arguments->what_if)
        due = measure(context, arguments, &outcome, ended);
    if (!outcome.run)
        return;
    fputs(outcome.words, stderr);
    write_outputs(context, arguments, &outcome, due);
    if (outcome.is_drawn)
        fprintf(stderr, "The report: %s\n", arguments->report);
}

static int run(const struct command *command, struct stk_context *context, int argc, char **argv)
{
    struct run_arguments arguments = {0};
    struct stk_watch *watch = NULL;
    struct stk_watch_exit ended = {0};
    int status;

    if (options_read(command, &arguments.base, argc, argv, &status))
        return status;
    arguments.base.words[arguments.base.word_count] = NULL;
    status = check_outputs(context, &arguments);
    if (status)
        return status;
    if (arguments.what_if)
        message_note("--what-if runs the command twice: what it does besides training "
                     "(checkpoints, logs, files), it does twice");
    status = watch_once(context, &arguments, NULL, &watch, &ended);
    if (!status)
        tell(context, &arguments, watch, &ended);
    stk_watch_close(watch);
    return status ? status : end_alike(&ended);
}

#define AT(member) offsetof(struct run_arguments, member)

static const struct option options[] = {
    {"report", 0, OPTION_TEXT, AT(report), "R.html",
     "draw a report: one page that needs no network; R.md: Markdown with pictures"},
    {"trace", 0, OPTION_TEXT, AT(trace), "T.json",
     "write a trace for Perfetto and chrome://tracing"},
    {"what-if", 0, OPTION_FLAG, AT(what_if), NULL,
     "run the command a second time with batches from memory, and measure what input costs; what "
     "the script writes, it writes again"},
    {"live", 0, OPTION_FLAG, AT(live), NULL, "show a line of how it goes while it runs"},
    {"seconds", 0, OPTION_U64, AT(seconds), "S",
     "watch the first S seconds; the command goes on to its end"},
    {"every-kernel", 0, OPTION_FLAG, AT(every_kernel), NULL,
     "record the GPU all the time, however many kernels are launched: slows the script down"},
    {"json", 0, OPTION_TEXT, AT(json), "FILE",
     "write the run file, which `stoker report` draws; -: to standard output, after all that the "
     "command printed"},
    {0},
};

const struct command cmd_run = {
    .name = "run",
    .summary =
        "Runs a training script and tells what its GPU waited for, and what to do about it.\n"
        "The script is not changed and runs as it would alone: same arguments, streams, signals\n"
        "and exit status. What was found goes to standard error when it has ended. Without a GPU\n"
        "the compute step stands in for it.",
    .usage = "[options] -- COMMAND...",
    .examples = "  stoker run -- python train.py --epochs 3\n"
                "  stoker run --report run.html -- python train.py\n"
                "  stoker run --what-if --json run.json -- torchrun --nproc-per-node 2 train.py\n"
                "  stoker run --seconds 120 --trace trace.json -- python train.py\n",
    .options = options,
    .min_words = 1,
    .max_words = INT32_MAX,
    .word = "COMMAND",
    .runs = 1,
    .run = run,
};
