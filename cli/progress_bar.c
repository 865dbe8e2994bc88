#include "progress_bar.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "message.h"

#define BAR_WIDTH 30
#define LINE_CAP 256

static int terminal_columns(void)
{
    struct winsize size;

    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) || size.ws_col == 0)
        return 80;
    return size.ws_col;
}

static int add_bar(char *line, const struct stk_progress *progress)
{
    uint64_t done = progress->done < progress->total ? progress->done : progress->total;
    double share = (double)done / (double)progress->total;
    int full = (int)(share * BAR_WIDTH);
    char bar[BAR_WIDTH + 1];

    memset(bar, ' ', BAR_WIDTH);
    memset(bar, '=', (size_t)full);
    if (full < BAR_WIDTH)
        bar[full] = '>';
    bar[BAR_WIDTH] = 0;
    return snprintf(line, LINE_CAP, "%s [%s] %3d %%  %" PRIu64 " of %" PRIu64 " %s", progress->what,
                    bar, (int)(share * 100), done, progress->total, progress->unit);
}

void progress_bar_draw(const struct stk_progress *progress)
{
    char line[LINE_CAP], size[24];
    int len;

    if (!isatty(STDERR_FILENO))
        return;
    if (progress->total)
        len = add_bar(line, progress);
    else
        len = snprintf(line, sizeof(line), "%s  %" PRIu64 " %s", progress->what, progress->done,
                       progress->unit);
    if (progress->bytes && len < (int)sizeof(line))
        snprintf(line + len, sizeof(line) - (size_t)len, "  %s",
                 message_size(progress->bytes, size));
    /* Cut to the terminal: a line that wraps cannot be taken back by a carriage return. */
    fprintf(stderr, "\r%.*s\033[K", terminal_columns() - 1, line);
    fflush(stderr);
}

void progress_bar_clear(void)
{
    if (isatty(STDERR_FILENO)) {
        fputs("\r\033[K", stderr);
        fflush(stderr);
    }
}
