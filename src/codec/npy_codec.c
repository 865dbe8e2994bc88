#include "base/fail.h"
#include "base/npy_header.h"
#include "base/shape.h"
#include "base/transpose.h"
#include "codec/codec.h"

#include <string.h>

static stk_status npy_probe(const struct stk_bytes *head, uint64_t length,
                            struct codec_shape *shape, struct stk_error *err)
{
    struct npy_header header;
    stk_status status = npy_header_parse(&header, head, length, err);
    *shape = (struct codec_shape){0};
    if (!status)
        *shape = (struct codec_shape){.tensor = header.shape,
                                      .head = header.length,
                                      .plain = !header.fortran && !header.byteswap};
    return status;
}

/* Parses the header and holds it against what the place was made for. */
static stk_status npy_expect(struct npy_header *header, const struct stk_bytes *head,
                             uint64_t total, const struct stk_tensor *to, struct stk_error *err)
{
    stk_status status = npy_header_parse(header, head, total, err);
    if (status || shape_same(&header->shape, to))
        return status;
    char found[128], expected[128];
    shape_text(&header->shape, found, sizeof found);
    shape_text(to, expected, sizeof expected);
    return fail(err, STK_SHAPE, "the array is %s where %s is expected", found, expected);
}

static void npy_swap(const struct npy_header *header, struct stk_tensor *to)
{
    if (header->byteswap)
        transpose_swap(to->data, stk_tensor_size(to) / stk_dtype_size(to->dtype), to->dtype);
}

static stk_status npy_finish(const struct stk_bytes *head, struct stk_tensor *to, void *scratch,
                             struct stk_error *err)
{
    struct npy_header header;
    uint64_t size = stk_tensor_size(to);
    stk_status status = npy_expect(&header, head, head->len + size, to, err);
    if (status)
        return status;
    if (header.length != head->len)
        return fail(err, STK_SHAPE, "the header is %u bytes where %zu are expected", header.length,
                    head->len);
    if (header.fortran && !scratch)
        return fail_memory(err, size);
    if (header.fortran && size) {
        memcpy(scratch, to->data, size);
        transpose_fortran(to->data, scratch, to);
    }
    npy_swap(&header, to);
    return STK_OK;
}

static stk_status npy_decode(const struct stk_bytes *bytes, struct stk_tensor *to,
                             struct stk_error *err)
{
    struct npy_header header;
    stk_status status = npy_expect(&header, bytes, bytes->len, to, err);
    if (status)
        return status;
    uint64_t size = stk_tensor_size(to);
    if (header.fortran && size)
        transpose_fortran(to->data, bytes->data + header.length, to);
    else if (size)
        memcpy(to->data, bytes->data + header.length, size);
    npy_swap(&header, to);
    return STK_OK;
}

static const char *const suffixes[] = {"npy", NULL};

const struct codec_ops npy_codec = {
    .name = "npy",
    .kind = STK_KIND_TENSOR,
    .suffixes = suffixes,
    .probe = npy_probe,
    .finish = npy_finish,
    .decode = npy_decode,
};
