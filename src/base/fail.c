#include "base/fail.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const struct {
    int number;
    stk_status status;
    const char *remedy;
} errnos[] = {
    {ENOENT, STK_NOT_FOUND, "check the path: it does not exist"},
    {ENOTDIR, STK_NOT_FOUND, "check the path: a part of it is not a folder"},
    {ELOOP, STK_NOT_FOUND, "check the path: its symbolic links go in a circle"},
    {ENAMETOOLONG, STK_NOT_FOUND, "use a shorter path"},
    {ENODEV, STK_NOT_FOUND, ""},
    {ENXIO, STK_NOT_FOUND, ""},
    {EACCES, STK_DENIED, "give this user permission to it and to the folders above it"},
    {EPERM, STK_DENIED, "the system forbids it to this user"},
    {EROFS, STK_DENIED, "the file system is read-only: choose another folder"},
    {ENOMEM, STK_MEMORY, "free memory, or lower the memory budget"},
    {EMFILE, STK_RESOURCE, "raise the limit of open files of this process: ulimit -n 65536"},
    {ENFILE, STK_RESOURCE, "the system has no free file handle: raise fs.file-max"},
    {EAGAIN, STK_RESOURCE, "the system is out of threads or locks: raise ulimit -u, or use fewer"},
    {ENOLCK, STK_RESOURCE, "the system is out of file locks"},
    {ENOSPC, STK_IO, "the disk is full: free space, or choose another folder"},
    {EDQUOT, STK_IO, "the disk quota is used up: free space, or choose another folder"},
    {EFBIG, STK_IO, "the file is larger than the file system or ulimit -f allows"},
    {EIO, STK_IO, "the disk or the network file system failed: look at the system log"},
    {ESTALE, STK_STALE, "the file was replaced on its server: open the dataset again"},
    {EOPNOTSUPP, STK_UNSUPPORTED, ""},
    {ENOSYS, STK_UNSUPPORTED, "this kernel lacks the call, or a sandbox forbids it"},
    {ECANCELED, STK_CANCELLED, ""},
    {EISDIR, STK_USAGE, "it is a folder, and a file is wanted"},
    {EINVAL, STK_IO, ""},
};

/* A cut may split a UTF-8 sequence: drop the part of it that is left at the end. */
static void trim_utf8(char *text)
{
    size_t len = strlen(text), start = len;
    while (start && len - start < 3 && ((unsigned char)text[start - 1] & 0xc0) == 0x80)
        start--;
    if (!start)
        return;
    unsigned char lead = (unsigned char)text[start - 1];
    size_t wants = lead >= 0xf0 ? 3 : lead >= 0xe0 ? 2 : lead >= 0xc0 ? 1 : 0;
    if (wants > len - start)
        text[start - 1] = '\0';
}

static void write_words(char *out, size_t cap, const char *format, va_list args)
{
    int wrote = vsnprintf(out, cap, format, args);
    if (wrote < 0)
        out[0] = '\0';
    else if ((size_t)wrote >= cap)
        trim_utf8(out);
}

static void start(struct stk_error *err, stk_status status)
{
    err->status = status;
    err->offset = err->sample = STK_NOWHERE;
    err->what[0] = err->object[0] = err->key[0] = err->field[0] = err->remedy[0] = '\0';
}

stk_status fail(struct stk_error *err, stk_status status, const char *format, ...)
{
    if (!err)
        return status;
    va_list args;
    start(err, status);
    va_start(args, format);
    write_words(err->what, sizeof err->what, format, args);
    va_end(args);
    return status;
}

/* Appends ": strerror(number)"; the words before it give way when both do not fit. */
static void add_errno(struct stk_error *err, int number)
{
    char buf[96], tail[112];
    snprintf(tail, sizeof tail, ": %s", strerror_r(number, buf, sizeof buf));
    size_t len = strlen(err->what), tail_len = strlen(tail);
    if (len + tail_len >= sizeof err->what) {
        err->what[sizeof err->what - 1 - tail_len] = '\0';
        trim_utf8(err->what);
        len = strlen(err->what);
    }
    memcpy(err->what + len, tail, tail_len + 1);
}

stk_status fail_errno(struct stk_error *err, int number, const char *format, ...)
{
    stk_status status = STK_IO;
    const char *remedy = "";
    for (size_t i = 0; i < sizeof errnos / sizeof errnos[0]; i++) {
        if (errnos[i].number == number) {
            status = errnos[i].status;
            remedy = errnos[i].remedy;
        }
    }
    if (!err)
        return status;
    va_list args;
    start(err, status);
    va_start(args, format);
    write_words(err->what, sizeof err->what, format, args);
    va_end(args);
    add_errno(err, number);
    fail_remedy(err, "%s", remedy);
    return status;
}

stk_status fail_memory(struct stk_error *err, uint64_t bytes)
{
    if (bytes)
        fail(err, STK_MEMORY, "out of memory (%" PRIu64 " bytes)", bytes);
    else
        fail(err, STK_MEMORY, "out of memory");
    fail_remedy(err, "free memory, or lower the memory budget");
    return STK_MEMORY;
}

void fail_at(struct stk_error *err, const char *object, uint64_t offset)
{
    if (!err)
        return;
    err->offset = offset;
    if (!object)
        object = "";
    size_t len = strlen(object);
    if (len < sizeof err->object) {
        memcpy(err->object, object, len + 1);
        return;
    }
    /* The tail tells more than the head: it holds the file's name. */
    const char *tail = object + len - (sizeof err->object - 1 - 3);
    while (((unsigned char)*tail & 0xc0) == 0x80)
        tail++;
    snprintf(err->object, sizeof err->object, "...%s", tail);
}

void fail_sample(struct stk_error *err, uint64_t sample, const char *key, size_t key_len)
{
    if (!err)
        return;
    err->sample = sample;
    size_t len = key_len < sizeof err->key - 1 ? key_len : sizeof err->key - 1;
    if (len)
        memcpy(err->key, key, len);
    err->key[len] = '\0';
    if (len < key_len)
        trim_utf8(err->key);
}

void fail_field(struct stk_error *err, const char *field)
{
    if (!err)
        return;
    if ((size_t)snprintf(err->field, sizeof err->field, "%s", field ? field : "") >=
        sizeof err->field)
        trim_utf8(err->field);
}

void fail_remedy(struct stk_error *err, const char *format, ...)
{
    if (!err)
        return;
    va_list args;
    va_start(args, format);
    write_words(err->remedy, sizeof err->remedy, format, args);
    va_end(args);
}
