/* tar_maker.h -- tars made byte by byte, right and wrong ones.
 * Owns: its buffer, until tar_free.   Threads: one.   Errors: cmocka's assertions.
 * Not here: any test. */
#ifndef TESTS_TAR_MAKER_H
#define TESTS_TAR_MAKER_H

#include <zlib.h>

#include "format_fixture.h"

struct tar {
    uint8_t *data;
    size_t len;
};

static inline uint8_t *tar_grow(struct tar *tar, size_t more)
{
    tar->data = realloc(tar->data, tar->len + more);
    assert_non_null(tar->data);
    memset(tar->data + tar->len, 0, more);
    tar->len += more;
    return tar->data + tar->len - more;
}

static inline void tar_free(struct tar *tar)
{
    free(tar->data);
    *tar = (struct tar){0};
}

static inline void tar_octal(uint8_t *to, int digits, uint64_t value)
{
    for (to[digits] = 0; digits-- > 0; value >>= 3)
        to[digits] = (uint8_t)('0' + (value & 7));
}

/* Puts the right checksum into a header. */
static inline void tar_sign(uint8_t *header)
{
    unsigned sum = 0;
    memset(header + 148, ' ', 8);
    for (int i = 0; i < 512; i++)
        sum += header[i];
    tar_octal(header + 148, 6, sum);
}

/* A ustar header; the caller may change it and sign it again. */
static inline uint8_t *tar_header(struct tar *tar, const char *name, char type, uint64_t size)
{
    uint8_t *header = tar_grow(tar, 512);
    memcpy(header, name, strnlen(name, 100));
    memcpy(header + 100, "0000644\0000001000\0000001000", 23);
    tar_octal(header + 124, 11, size);
    memcpy(header + 136, "00000000000", 11);
    header[156] = (uint8_t)type;
    memcpy(header + 257, "ustar\00000", 8);
    tar_sign(header);
    return header;
}

static inline void tar_body(struct tar *tar, const void *data, size_t len)
{
    uint8_t *to = tar_grow(tar, (len + 511) / 512 * 512);
    if (len > 0)
        memcpy(to, data, len);
}

static inline void tar_member(struct tar *tar, const char *name, const char *text)
{
    tar_header(tar, name, '0', strlen(text));
    tar_body(tar, text, strlen(text));
}

static inline void tar_extended(struct tar *tar, char type, const char *text, size_t len)
{
    tar_header(tar, "././@header", type, len);
    tar_body(tar, text, len);
}

static inline void tar_pax(struct tar *tar, const char *records)
{
    tar_extended(tar, 'x', records, strlen(records));
}

static inline void tar_end(struct tar *tar)
{
    tar_grow(tar, 1024);
}

/* Lists the tar as NAME and lets go of it. */
static inline void tar_list(struct fixture *fixture, struct tar *tar, const char *name)
{
    fixture_file(fixture, name, tar->data, tar->len);
    tar_free(tar);
}

/* Lists the tar through gzip and lets go of it. */
static inline void tar_list_gzip(struct fixture *fixture, struct tar *tar, const char *name)
{
    z_stream stream = {0};
    assert_int_equal(deflateInit2(&stream, 9, Z_DEFLATED, 31, 9, Z_DEFAULT_STRATEGY), Z_OK);
    uLong cap = deflateBound(&stream, tar->len);
    uint8_t *out = malloc(cap);
    stream.next_in = tar->data;
    stream.avail_in = (uInt)tar->len;
    stream.next_out = out;
    stream.avail_out = (uInt)cap;
    assert_int_equal(deflate(&stream, Z_FINISH), Z_STREAM_END);
    fixture_file(fixture, name, out, stream.total_out);
    deflateEnd(&stream);
    free(out);
    tar_free(tar);
}

#endif
