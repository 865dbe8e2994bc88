/* `stoker run`: runs a training script and tells what its GPU waited for. */
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "stoker/report.h"
#include "stoker/watch.h"

#include "exit_status.h"
#include "interrupt.h"
#include "live_line.h"
#include "message.h"
#include "options.h"
#include "output_file.h"

enum { EXIT_CANNOT_RUN = 126, EXIT_NO_COMMAND = 127 }; /* as shells have it */

struct run_arguments {
    struct arguments base;
    const char *report, *trace, *json;
    uint64_t seconds;
    int what_if, live, every_kernel;
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

/* Runs the command. 0, or an exit status: it did not run. *watch is the caller's. */
static int watch_once(struct stk_context *context, const struct run_arguments *arguments,
                      const char *replay, struct stk_watch **watch, struct stk_watch_exit *ended)
{
    uint64_t next_line = 0;
    struct stk_error err;
    struct stk_watch_options options = {
        .command = (const char *const *)arguments->base.words,
        .trace_path = replay ? NULL : arguments->trace,
        .seconds = arguments->seconds,
        .every_kernel = arguments->every_kernel,
        .replay = replay,
        .live = arguments->live ? live_line_draw : NULL,
        .user = &next_line,
    };

    if (stk_watch_open(watch, context, &options, &err))
        return message_error(&err);
    interrupt_suspend();
    stk_status status = stk_watch_run(*watch, ended, &err);
    interrupt_resume();
    if (arguments->live)
        live_line_clear();
    return status ? fail_to_start(&err) : 0;
}

/* --- the second run --------------------------------------------------------------------------- */

/* The run file of a second run in which input is free; NULL: there was none, and words say why. */
static const char *what_if(struct stk_context *context, const struct run_arguments *arguments,
                           const char *first, struct stk_watch **watch,
                           struct stk_watch_exit *ended)
{
    const char *run = NULL, *words;
    struct stk_error err;

    message_note("the command runs again now, with a few batches of its loaders shown again from "
                 "memory: what it does besides (checkpoints, logs, files), it does again");
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

/* --- the end ---------------------------------------------------------------------------------- */

static int write_run(const char *path, const char *run)
{
    struct output_file file;
    int status = output_file_begin(&file, path);

    if (status)
        return status;
    fputs(run, file.stream);
    return output_file_commit(&file);
}

static int write_outputs(struct stk_context *context, const struct run_arguments *arguments,
                         const struct stk_watch *watch, const char *run)
{
    char inside[PATH_MAX];
    const char *path = arguments->json;
    struct stk_error err;
    int status = EXIT_DONE;

    if (arguments->json)
        status = write_run(arguments->json, run);
    if (!arguments->report)
        return status;
    if (!path || status || output_file_is_stream(path)) {
        snprintf(inside, sizeof(inside), "%s/run.json", stk_watch_folder(watch));
        path = inside;
        if (write_run(path, run))
            return EXIT_FAILED;
    }
    if (stk_report_make(context, &path, 1, arguments->report, &err))
        return message_error(&err);
    fprintf(stderr, "The report: %s\n", arguments->report);
    return status;
}

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
    const char *run, *words;
    struct stk_watch *second = NULL;
    struct stk_error err;

    if (stk_watch_finish(watch, NULL, &run, &words, &err)) {
        (void)message_error(&err);
        return;
    }
    if (arguments->what_if && (ended->signal || ended->status)) {
        message_note("the command did not end well, so it is not run a second time");
    } else if (arguments->what_if) {
        struct stk_watch_exit again = {0};
        const char *other = what_if(context, arguments, run, &second, &again);
        if (other && stk_watch_finish(watch, other, &run, &words, &err))
            (void)message_error(&err);
        if (again.signal)
            *ended = again; /* Ctrl-C ends us, too */
        /* The first run's words stand where the second could not be used. */
        if (!run && stk_watch_finish(watch, NULL, &run, &words, &err))
            (void)message_error(&err);
    }
    if (run) {
        fputs(words, stderr);
        (void)write_outputs(context, arguments, watch, run);
    }
    stk_watch_close(second);
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
