#include "watch/trace_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fail.h"
#include "base/memory.h"
#include "base/text.h"

#define BUFFER 65536u
#define LEAST_BYTES 65536u
#define KEPT 12u /* segments, of a sixteenth of the bound each; a quarter is the first part's */

/* While it grows it is an array; at the end the blanks become the name of that array. */
static const char head_open[] = "               [\n";
static const char head_done[] = "{\"traceEvents\":[\n";
_Static_assert(sizeof head_open == sizeof head_done, "the one is written over the other");

struct part {
    int fd;
    uint64_t bytes;  /* written, up to the end of an event */
    uint64_t before; /* the same one write earlier: where to cut when the disk is full */
    uint64_t events, first_time;
};

struct trace_file {
    char *path;
    uint64_t most;
    int plain; /* a plain file: it can be cut and written over */
    struct part main, segment;
    uint32_t segments; /* begun so far; the last of them is `segment` */
    struct {
        uint64_t events, first_time;
    } kept[KEPT];
    uint64_t events, dropped, main_end;
    char *buf;
    size_t len;
    uint64_t buffered; /* events */
    struct stk_error fault;
};

/* --- writing ------------------------------------------------------------------------------ */

static int write_whole(int fd, const char *data, size_t len)
{
    while (len) {
        ssize_t wrote = write(fd, data, len);
        if (wrote < 0 && errno == EINTR)
            continue;
        if (wrote <= 0)
            return 0;
        data += wrote;
        len -= (size_t)wrote;
    }
    return 1;
}

static struct part *current(struct trace_file *file)
{
    return file->segments ? &file->segment : &file->main;
}

static void cut_back(struct trace_file *file, struct part *part, uint64_t bytes)
{
    if (file->plain && ftruncate(part->fd, (off_t)bytes) == 0 &&
        lseek(part->fd, (off_t)bytes, SEEK_SET) >= 0)
        part->bytes = part->before = bytes;
}

static void keep_fault(struct trace_file *file, int number)
{
    if (file->fault.status)
        return;
    fail_errno(&file->fault, number, "the trace could not be written further");
    fail_at(&file->fault, file->path, STK_NOWHERE);
    if (number == ENOSPC || number == EFBIG || number == EDQUOT)
        fail_remedy(&file->fault, "what was written until then can be opened; the run itself was "
                                  "not disturbed");
}

void trace_file_flush(struct trace_file *file)
{
    struct part *part = current(file);
    if (!file->len || file->fault.status) {
        file->dropped += file->buffered;
        file->len = file->buffered = 0;
        return;
    }
    if (!write_whole(part->fd, file->buf, file->len)) {
        int number = errno;
        /* Cut at an event, and one write earlier, so that there is room for the end. */
        cut_back(file, part, part->before);
        keep_fault(file, number);
        file->dropped += file->buffered;
    } else {
        part->before = part->bytes;
        part->bytes += file->len;
        part->events += file->buffered;
    }
    file->len = file->buffered = 0;
}

static void segment_path(const struct trace_file *file, uint32_t number, struct text *out)
{
    text_format(out, "%s.part%04" PRIu32, file->path, number);
}

static void segment_remove(const struct trace_file *file, uint32_t number)
{
    struct text path = {0};
    segment_path(file, number, &path);
    if (!path.failed)
        unlink(path.data);
    text_free(&path);
}

/* Closes the segment that is full, forgets the oldest where there are enough, opens the next. */
static void segment_next(struct trace_file *file, uint64_t time)
{
    struct text path = {0};
    if (file->segments) {
        file->kept[(file->segments - 1) % KEPT].events = file->segment.events;
        close(file->segment.fd);
    } else {
        file->main_end = time;
    }
    if (file->segments >= KEPT) {
        file->dropped += file->kept[file->segments % KEPT].events;
        segment_remove(file, file->segments - KEPT);
    }
    segment_path(file, file->segments, &path);
    file->segment = (struct part){.fd = -1, .first_time = time};
    if (!path.failed)
        file->segment.fd = open(path.data, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    int number = path.failed ? ENOMEM : errno;
    file->kept[file->segments % KEPT].events = 0;
    file->kept[file->segments % KEPT].first_time = time;
    file->segments++;
    if (file->segment.fd < 0)
        keep_fault(file, number);
    text_free(&path);
}

static void add_bytes(struct trace_file *file, const char *data, size_t len)
{
    memcpy(file->buf + file->len, data, len);
    file->len += len;
}

void trace_file_add(struct trace_file *file, const char *event, size_t len, uint64_t time)
{
    uint64_t limit = file->segments ? file->most / 16 : file->most / 4 - file->most / 16;
    if (!file->plain) /* nothing is put beside a device or a pipe */
        limit = UINT64_MAX;
    file->events++;
    if (file->fault.status || len + 4 > BUFFER) {
        file->dropped++;
        return;
    }
    if (file->len + len + 4 > BUFFER)
        trace_file_flush(file);
    if (current(file)->bytes + file->len + len + 4 > limit) {
        trace_file_flush(file);
        if (!file->fault.status)
            segment_next(file, time);
    }
    /* A segment can be opened by itself: it begins as an array, and is joined by a comma. */
    int begins = file->segments && !file->segment.bytes && !file->len;
    add_bytes(file, begins ? "[\n" : ",\n", 2);
    add_bytes(file, event, len);
    file->buffered++;
}

/* --- opening ------------------------------------------------------------------------------ */

stk_status trace_file_open(struct trace_file **out, const char *path, uint64_t most,
                           const char *first, struct stk_error *err)
{
    struct stat found;
    stk_status status = STK_OK;
    *out = NULL;
    struct trace_file *file = memory_zero(1, sizeof *file);
    if (file) {
        file->main.fd = file->segment.fd = -1;
        file->path = memory_text(path, strlen(path));
        file->buf = memory_alloc(BUFFER);
    }
    if (!file || !file->path || !file->buf) {
        status = fail_memory(err, sizeof *file + BUFFER);
        goto done;
    }
    file->most = most < LEAST_BYTES ? LEAST_BYTES : most;
    file->main.fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (file->main.fd < 0 || fstat(file->main.fd, &found) != 0) {
        status = fail_errno(err, errno, "cannot write the trace");
        fail_at(err, path, STK_NOWHERE);
        goto done;
    }
    file->plain = S_ISREG(found.st_mode);
    add_bytes(file, head_open, sizeof head_open - 1);
    add_bytes(file, first, strlen(first));
    file->buffered = file->events = 1;
    trace_file_flush(file);
    file->main.before = file->main.bytes;
    *out = file;
    file = NULL;
done:
    trace_file_close(file);
    return status;
}

void trace_file_kept(const struct trace_file *file, struct trace_file_kept *out)
{
    *out = (struct trace_file_kept){.events = file->events, .dropped = file->dropped};
    if (!file->dropped || !file->segments)
        return;
    out->dropped_from = file->main_end;
    out->dropped_to = file->kept[file->segments > KEPT ? file->segments % KEPT : 0].first_time;
}

/* --- the end ------------------------------------------------------------------------------ */

/* Appends a segment without its bracket, and removes it. */
static int join(struct trace_file *file, uint32_t number)
{
    struct text path = {0};
    int whole = 0;
    ssize_t got = 0;
    segment_path(file, number, &path);
    int fd = path.failed ? -1 : open(path.data, O_RDONLY | O_CLOEXEC);
    uint64_t begin = file->main.bytes, bytes = 0;
    if (fd >= 0) {
        whole = 1;
        while (whole && (got = read(fd, file->buf, BUFFER)) > 0) {
            if (!bytes)
                file->buf[0] = ',';
            whole = write_whole(file->main.fd, file->buf, (size_t)got);
            bytes += (uint64_t)got;
        }
        close(fd);
    }
    if (!whole || got < 0) {
        int error = errno;
        cut_back(file, &file->main, begin);
        keep_fault(file, error);
        whole = 0;
    } else {
        file->main.before = begin;
        file->main.bytes += bytes;
    }
    segment_remove(file, number);
    text_free(&path);
    return whole;
}

static void join_all(struct trace_file *file)
{
    uint32_t first = file->segments > KEPT ? file->segments - KEPT : 0;
    int whole = 1;
    if (file->segment.fd >= 0)
        close(file->segment.fd);
    file->segment.fd = -1;
    if (file->segments)
        file->kept[(file->segments - 1) % KEPT].events = file->segment.events;
    for (uint32_t i = first; i < file->segments; i++) {
        if (whole && file->kept[i % KEPT].events)
            whole = join(file, i);
        else
            segment_remove(file, i);
        if (!whole)
            file->dropped += file->kept[i % KEPT].events;
    }
    file->segments = 0;
}

static int write_end(struct trace_file *file, const char *events, const char *data)
{
    struct text end = {0};
    text_format(&end, "%s\n],\"displayTimeUnit\":\"ms\",\"otherData\":%s}\n", events, data);
    int whole = !end.failed && write_whole(file->main.fd, end.data, end.len);
    if (end.failed)
        errno = ENOMEM;
    text_free(&end);
    return whole;
}

stk_status trace_file_finish(struct trace_file *file, const char *events, const char *data,
                             struct stk_error *err)
{
    trace_file_flush(file);
    join_all(file);
    if (!write_end(file, events, data)) {
        int number = errno;
        cut_back(file, &file->main, file->main.before);
        keep_fault(file, number);
        if (!write_end(file, "", data))
            cut_back(file, &file->main, file->main.bytes);
        else
            number = 0;
        if (number) /* it stays the array that it was, not closed */
            goto done;
    }
    ssize_t head = file->plain ? pwrite(file->main.fd, head_done, sizeof head_done - 1, 0) : 0;
    if (head < 0)
        keep_fault(file, errno);
done:
    if (file->fault.status && err)
        *err = file->fault;
    return file->fault.status;
}

void trace_file_close(struct trace_file *file)
{
    if (!file)
        return;
    for (uint32_t i = file->segments > KEPT ? file->segments - KEPT : 0; i < file->segments; i++)
        segment_remove(file, i);
    if (file->segment.fd >= 0)
        close(file->segment.fd);
    if (file->main.fd >= 0)
        close(file->main.fd);
    memory_free(file->path);
    memory_free(file->buf);
    memory_free(file);
}
