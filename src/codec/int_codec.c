#include "base/fail.h"
#include "base/parse.h"
#include "codec/codec.h"

/* Whole numbers in ASCII, as WebDataset writes labels; white space around them is allowed. */

static int is_space(uint8_t byte)
{
    return byte == ' ' || (byte >= '\t' && byte <= '\r');
}

static stk_status int_probe(const struct stk_bytes *head, uint64_t length,
                            struct codec_shape *shape, struct stk_error *err)
{
    (void)head;
    (void)length;
    (void)err;
    *shape = (struct codec_shape){.tensor = {.dtype = STK_I64}};
    return STK_OK;
}

static stk_status int_decode(const struct stk_bytes *bytes, struct stk_tensor *to,
                             struct stk_error *err)
{
    const uint8_t *data = bytes->data;
    size_t len = bytes->len;
    if (to->dtype != STK_I64 || to->rank != 0)
        return fail(err, STK_SHAPE, "a number is a single int64");
    while (len && is_space(data[len - 1]))
        len--;
    while (len && is_space(*data)) {
        data++;
        len--;
    }
    if (!parse_i64((const char *)data, len, to->data)) {
        stk_status status = fail(err, STK_CORRUPT, "not a whole number of 64 bits");
        fail_remedy(err, "read the field as text or bytes: name it \"FIELD=text\"");
        return status;
    }
    return STK_OK;
}

static const char *const suffixes[] = {"class", "cls", "cls2", "count", "id", "index", "inx", NULL};

const struct codec_ops int_codec = {
    .name = "int",
    .kind = STK_KIND_INT,
    .suffixes = suffixes,
    .probe = int_probe,
    .decode = int_decode,
};
