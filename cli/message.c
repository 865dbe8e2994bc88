#include "message.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "exit_status.h"
#include "interrupt.h"
#include "progress_bar.h"

#define WORDS_CAP 4096

static char cleaned(char byte)
{
    return (unsigned char)byte < 0x20 || byte == 0x7F ? '?' : byte;
}

static void clean_lines(char *words)
{
    for (; *words; words++)
        *words = *words == '\n' ? '\n' : cleaned(*words);
}

void message_word(const char *text, size_t len, int width)
{
    for (size_t i = 0; i < len; i++)
        putchar(cleaned(text[i]));
    if (len < (size_t)width)
        printf("%*s", width - (int)len, "");
}

void message_words(const struct stk_error *err, char *out, size_t cap)
{
    stk_error_format(err, out, cap);
    clean_lines(out);
}

int message_error(const struct stk_error *err)
{
    char words[WORDS_CAP];

    progress_bar_clear();
    if (interrupt_pending())
        return EXIT_SIGNALLED + interrupt_pending();
    message_words(err, words, sizeof(words));
    fprintf(stderr, "stoker: %s\n", words);
    return err->status == STK_USAGE && !err->object[0] ? EXIT_USAGE : EXIT_FAILED;
}

static void say(const char *format, va_list list)
{
    char words[WORDS_CAP];

    vsnprintf(words, sizeof(words), format, list);
    clean_lines(words);
    progress_bar_clear();
    fprintf(stderr, "stoker: %s\n", words);
}

int message_failed(const char *format, ...)
{
    va_list list;

    va_start(list, format);
    say(format, list);
    va_end(list);
    return EXIT_FAILED;
}

int message_usage(const char *command, const char *format, ...)
{
    va_list list;

    va_start(list, format);
    say(format, list);
    va_end(list);
    if (command)
        fprintf(stderr, "  stoker %s --help shows how it is used\n", command);
    else
        fputs("  stoker help lists the commands\n", stderr);
    return EXIT_USAGE;
}

void message_note(const char *text)
{
    progress_bar_clear();
    fprintf(stderr, "stoker: note: %s\n", text);
}

const char *message_size(uint64_t bytes, char out[24])
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    double value = (double)bytes;
    unsigned unit = 0;

    while (value >= 1000 && unit + 1 < sizeof(units) / sizeof(units[0])) {
        value /= 1024;
        unit++;
    }
    if (unit == 0)
        snprintf(out, 24, "%" PRIu64 " B", bytes);
    else
        snprintf(out, 24, "%.*f %s", value < 10 ? 2 : value < 100 ? 1 : 0, value, units[unit]);
    return out;
}

/* A pipe or socket whose other end is gone. */
static int reader_is_gone(void)
{
    struct pollfd out = {.fd = STDOUT_FILENO, .events = POLLOUT};

    return poll(&out, 1, 0) == 1 && (out.revents & (POLLERR | POLLHUP));
}

int message_flush(int status)
{
    errno = 0;
    if (!fflush(stdout) && !ferror(stdout))
        return status;
    int number = errno;
    clearerr(stdout);
    if (interrupt_pending())
        return EXIT_SIGNALLED + interrupt_pending();
    if (number == EPIPE || reader_is_gone())
        return EXIT_PIPE_CLOSED;
    if (number == 0) /* an earlier write failed, and its errno is lost */
        return message_failed("writing to standard output failed\n  is the disk full?");
    return message_failed("writing to standard output failed: %s", strerror(number));
}

int message_stopped(void)
{
    return ferror(stdout) || interrupt_pending();
}
