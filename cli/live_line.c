#include "live_line.h"

#include <stdio.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "message.h"

#define LINE_CAP 256
#define APART 10 /* seconds, where there is no terminal */

static void make_line(char line[LINE_CAP], const struct stk_watch_now *now)
{
    unsigned seconds = now->seconds > 0 ? (unsigned)now->seconds : 0;
    char size[24];
    int len = snprintf(line, LINE_CAP, "%u:%02u", seconds / 60, seconds % 60);

    if (now->busy >= 0)
        len += snprintf(line + len, LINE_CAP - (size_t)len, "  busy %.0f %%", 100 * now->busy);
    if (now->waits[0])
        len += snprintf(line + len, LINE_CAP - (size_t)len, "  waits for %.80s", now->waits);
    if (now->samples_s >= 0)
        len += snprintf(line + len, LINE_CAP - (size_t)len,
                        now->samples_s >= 100 ? "  %.0f samples/s" : "  %.1f samples/s",
                        now->samples_s);
    len += snprintf(line + len, LINE_CAP - (size_t)len, "  memory %s",
                    message_size(now->memory_bytes, size));
    if (now->gpu_memory_bytes)
        snprintf(line + len, LINE_CAP - (size_t)len, ", GPU %s",
                 message_size(now->gpu_memory_bytes, size));
}

void live_line_draw(void *user, const struct stk_watch_now *now)
{
    char line[LINE_CAP];
    uint64_t *next = user;
    struct winsize size;

    make_line(line, now);
    if (!isatty(STDERR_FILENO)) {
        if (now->seconds < (double)*next)
            return;
        *next = (uint64_t)now->seconds + APART;
        fprintf(stderr, "stoker: %s\n", line);
        return;
    }
    int columns = ioctl(STDERR_FILENO, TIOCGWINSZ, &size) || !size.ws_col ? 80 : size.ws_col;
    /* The cursor goes back to the left: what the command prints begins there. */
    fprintf(stderr, "\r%.*s\033[K\r", columns - 1, line);
    fflush(stderr);
}

void live_line_clear(void)
{
    if (isatty(STDERR_FILENO)) {
        fputs("\r\033[K", stderr);
        fflush(stderr);
    }
}
