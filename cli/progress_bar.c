#include "progress_bar.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "message.h"

#define BAR_MOST 30
#define BAR_LEAST 8
#define LINE_CAP 256
#define RATE_AFTER 0.5 /* seconds of a job before its speed means anything */

/* The job whose line is on the terminal. A rate needs a beginning, and the hook that draws has no
 * place of its own to keep it: its user pointer belongs to whoever made the context. */
static struct {
    char what[32];
    uint64_t first, last; /* done: when it began, and when it was last drawn */
    double begun;
} job;

static double now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static int terminal_columns(void)
{
    struct winsize size;

    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) || size.ws_col == 0)
        return 80;
    return size.ws_col;
}

/* Done a second since the job began; 0 while that is too short a time to tell. */
static double job_rate(const struct stk_progress *progress)
{
    double time = now();

    if (strncmp(job.what, progress->what, sizeof(job.what) - 1) || progress->done < job.last) {
        snprintf(job.what, sizeof(job.what), "%s", progress->what);
        job.first = progress->done;
        job.begun = time;
    }
    job.last = progress->done;
    return time - job.begun < RATE_AFTER
               ? 0
               : (double)(progress->done - job.first) / (time - job.begun);
}

static int add_rate(char *line, size_t cap, double rate, const char *unit)
{
    if (rate >= 1e6)
        return snprintf(line, cap, "  %.2f M %s/s", rate / 1e6, unit);
    if (rate >= 1e4)
        return snprintf(line, cap, "  %.0f k %s/s", rate / 1e3, unit);
    return snprintf(line, cap, rate >= 10 ? "  %.0f %s/s" : "  %.1f %s/s", rate, unit);
}

static int add_left(char *line, size_t cap, double seconds)
{
    uint64_t left = seconds < 1e9 ? (uint64_t)(seconds + 0.999) : 0;

    if (seconds >= 1e9)
        return 0;
    if (left >= 3600)
        return snprintf(line, cap, "  %" PRIu64 " h %02" PRIu64 " min left", left / 3600,
                        left / 60 % 60);
    if (left >= 60)
        return snprintf(line, cap, "  %" PRIu64 " min %02" PRIu64 " s left", left / 60, left % 60);
    return snprintf(line, cap, "  %" PRIu64 " s left", left);
}

/* What stands behind the bar, the most wanted first: a narrow terminal cuts the rest. */
static void make_tail(char *tail, const struct stk_progress *progress)
{
    double rate = job_rate(progress);
    uint64_t total = progress->total;
    uint64_t done = total && progress->done > total ? total : progress->done;
    char size[24];
    int len = 0;

    if (total)
        len += snprintf(tail, LINE_CAP, "%3d %%", (int)((double)done / (double)total * 100));
    if (total && rate > 0)
        len += add_left(tail + len, LINE_CAP - (size_t)len, (double)(total - done) / rate);
    if (rate > 0)
        len += add_rate(tail + len, LINE_CAP - (size_t)len, rate, progress->unit);
    len += snprintf(tail + len, LINE_CAP - (size_t)len, "  %" PRIu64, done);
    if (total)
        len += snprintf(tail + len, LINE_CAP - (size_t)len, " of %" PRIu64, total);
    len += snprintf(tail + len, LINE_CAP - (size_t)len, " %s", progress->unit);
    if (progress->bytes)
        snprintf(tail + len, LINE_CAP - (size_t)len, "  %s", message_size(progress->bytes, size));
}

/* " [====>     ] " in the room that is left; nothing when that is too little. */
static void make_bar(char *bar, const struct stk_progress *progress, int room)
{
    int width = room - 4 < BAR_MOST ? room - 4 : BAR_MOST;
    uint64_t done = progress->done < progress->total ? progress->done : progress->total;

    bar[0] = 0;
    if (progress->total == 0 || width < BAR_LEAST) {
        strcpy(bar, progress->total ? " " : "");
        return;
    }
    int full = (int)((double)done / (double)progress->total * width);
    char steps[BAR_MOST + 1];
    memset(steps, ' ', (size_t)width);
    memset(steps, '=', (size_t)full);
    if (full < width)
        steps[full] = '>';
    steps[width] = 0;
    sprintf(bar, " [%s] ", steps);
}

void progress_bar_draw(const struct stk_progress *progress)
{
    char tail[LINE_CAP], bar[BAR_MOST + 8];
    int columns = terminal_columns() - 1;

    if (!isatty(STDERR_FILENO))
        return;
    make_tail(tail, progress);
    make_bar(bar, progress, columns - (int)strlen(progress->what) - (int)strlen(tail));
    char line[3 * LINE_CAP];
    snprintf(line, sizeof(line), "%s%s%s", progress->what, bar, tail);
    /* Cut to the terminal: a line that wraps cannot be taken back by a carriage return. */
    fprintf(stderr, "\r%.*s\033[K", columns, line);
    fflush(stderr);
}

void progress_bar_clear(void)
{
    if (isatty(STDERR_FILENO)) {
        fputs("\r\033[K", stderr);
        fflush(stderr);
    }
}
