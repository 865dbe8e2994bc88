#include <limits.h>
#include <zlib.h>

#include "base/fail.h"
#include "base/memory.h"

#include "filter/filter_ops.h"

static void *zlib_alloc(void *user, unsigned count, unsigned size)
{
    (void)user;
    return memory_zero(count, size);
}

static void zlib_free(void *user, void *block)
{
    (void)user;
    memory_free(block);
}

static void *zlib_open(int window)
{
    z_stream *stream = memory_zero(1, sizeof *stream);
    if (!stream)
        return NULL;
    stream->zalloc = zlib_alloc;
    stream->zfree = zlib_free;
    if (inflateInit2(stream, window) != Z_OK) {
        memory_free(stream);
        return NULL;
    }
    return stream;
}

static void *gzip_open(void)
{
    return zlib_open(16 + MAX_WBITS); /* 16: a gzip header and trailer, checked */
}

static void *deflate_open(void)
{
    return zlib_open(-MAX_WBITS); /* negative: no header at all */
}

static void zlib_close(void *state)
{
    if (!state)
        return;
    inflateEnd(state);
    memory_free(state);
}

static unsigned clamp(size_t len)
{
    return len < UINT_MAX ? (unsigned)len : UINT_MAX;
}

uint32_t filter_crc32(uint32_t crc, const uint8_t *data, size_t len)
{
    return (uint32_t)crc32_z(crc, data, len);
}

static stk_status zlib_step(void *state, struct filter_run *run, int *unit_over,
                            struct stk_error *err)
{
    z_stream *stream = state;
    unsigned in_len = clamp(run->in_len - run->used), cap = clamp(run->cap - run->made);
    stream->next_in = (Bytef *)(run->in + run->used); /* zlib does not write to it */
    stream->avail_in = in_len;
    stream->next_out = run->out + run->made;
    stream->avail_out = cap;
    int result = inflate(stream, Z_NO_FLUSH);
    run->used += in_len - stream->avail_in;
    run->made += cap - stream->avail_out;
    switch (result) {
    case Z_STREAM_END:
        *unit_over = 1;
        return inflateReset(stream) == Z_OK ? STK_OK : fail_memory(err, 0);
    case Z_OK:
    case Z_BUF_ERROR: /* no progress is possible: the caller sees that nothing moved */
        return STK_OK;
    case Z_MEM_ERROR:
        return fail_memory(err, 0);
    default:
        return fail(err, STK_CORRUPT, "deflate: %s",
                    stream->msg ? stream->msg : "the compressed bytes are broken");
    }
}

const struct filter_ops gzip_filter = {
    .open = gzip_open,
    .close = zlib_close,
    .step = zlib_step,
    .zeros_between = 1,
};

const struct filter_ops deflate_filter = {
    .open = deflate_open,
    .close = zlib_close,
    .step = zlib_step,
    .one_unit = 1,
};
