#include "base/fail.h"
#include "base/transpose.h"
#include "codec/codec.h"

#include <string.h>

/* Elements with nothing before them. What they are is known from elsewhere (the index): a probe can
 * only say how many bytes there are. */

static stk_status raw_probe(const struct stk_bytes *head, uint64_t length,
                            struct codec_shape *shape, struct stk_error *err)
{
    (void)head;
    if (length > INT64_MAX)
        return fail(err, STK_LIMIT, "a value of %llu bytes", (unsigned long long)length);
    *shape = (struct codec_shape){
        .tensor = {.dtype = STK_U8, .rank = 1, .shape = {(int64_t)length}},
    };
    return STK_OK;
}

static stk_status raw_finish(const struct stk_bytes *head, struct stk_tensor *to, void *scratch,
                             struct stk_error *err)
{
    (void)to;
    (void)scratch;
    if (head->len)
        return fail(err, STK_SHAPE, "a raw value has no header");
    return STK_OK;
}

static stk_status raw_decode(const struct stk_bytes *bytes, struct stk_tensor *to,
                             struct stk_error *err)
{
    uint64_t size = stk_tensor_size(to);
    if (bytes->len != size)
        return fail(err, STK_SHAPE, "a raw value of %zu bytes where %llu are expected", bytes->len,
                    (unsigned long long)size);
    if (size)
        memcpy(to->data, bytes->data, size);
    return STK_OK;
}

static void raw_swap(struct stk_tensor *to)
{
    transpose_swap(to->data, stk_tensor_size(to) / stk_dtype_size(to->dtype), to->dtype);
}

static stk_status raw_swapped_finish(const struct stk_bytes *head, struct stk_tensor *to,
                                     void *scratch, struct stk_error *err)
{
    stk_status status = raw_finish(head, to, scratch, err);
    if (!status)
        raw_swap(to);
    return status;
}

static stk_status raw_swapped_decode(const struct stk_bytes *bytes, struct stk_tensor *to,
                                     struct stk_error *err)
{
    stk_status status = raw_decode(bytes, to, err);
    if (!status)
        raw_swap(to);
    return status;
}

static const char *const suffixes[] = {NULL};

const struct codec_ops raw_codec = {
    .name = "raw",
    .kind = STK_KIND_TENSOR,
    .suffixes = suffixes,
    .probe = raw_probe,
    .finish = raw_finish,
    .decode = raw_decode,
};

const struct codec_ops raw_swapped_codec = {
    .name = "raw_swapped",
    .kind = STK_KIND_TENSOR,
    .suffixes = suffixes,
    .probe = raw_probe,
    .finish = raw_swapped_finish,
    .decode = raw_swapped_decode,
};
