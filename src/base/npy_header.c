#include "base/npy_header.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/fail.h"
#include "base/parse.h"

#define HEADER_LIMIT 65536
#define NATIVE_ORDER (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? '<' : '>')

/* Codes after the byte-order mark. Bfloat16 has none in numpy: ml_dtypes writes two opaque bytes.
 */
static const struct {
    enum stk_dtype dtype;
    const char *code;
} codes[] = {
    {STK_BOOL, "b1"}, {STK_U8, "u1"},  {STK_I8, "i1"},  {STK_U16, "u2"}, {STK_I16, "i2"},
    {STK_U32, "u4"},  {STK_I32, "i4"}, {STK_U64, "u8"}, {STK_I64, "i8"}, {STK_F16, "f2"},
    {STK_BF16, "V2"}, {STK_F32, "f4"}, {STK_F64, "f8"}, {STK_C64, "c8"}, {STK_C128, "c16"},
};

/* A walk over the Python dict literal. base: the literal's offset in the file, for messages. */
struct literal {
    const char *at, *end, *start;
    uint64_t base;
    struct stk_error *err;
};

static stk_status bad(struct literal *in, stk_status status, const char *words)
{
    fail(in->err, status, "npy header: %s", words);
    fail_at(in->err, NULL, in->base + (uint64_t)(in->at - in->start));
    return status;
}

static void skip_space(struct literal *in)
{
    while (in->at < in->end && strchr(" \t\r\n", *in->at) && *in->at)
        in->at++;
}

static int take(struct literal *in, char wanted)
{
    skip_space(in);
    if (in->at == in->end || *in->at != wanted)
        return 0;
    in->at++;
    return 1;
}

/* A string in either kind of quotes, with the u or b before it that Python 2 wrote. No escapes: no
 * valid header has one. */
static int take_string(struct literal *in, const char **text, size_t *len)
{
    skip_space(in);
    const char *at = in->at;
    if (at < in->end && (*at == 'u' || *at == 'b'))
        at++;
    if (at == in->end || (*at != '\'' && *at != '"'))
        return 0;
    const char *close = memchr(at + 1, *at, (size_t)(in->end - at - 1));
    if (!close || memchr(at + 1, '\\', (size_t)(close - at - 1)))
        return 0;
    *text = at + 1;
    *len = (size_t)(close - at - 1);
    in->at = close + 1;
    return 1;
}

static int take_word(struct literal *in, const char *word)
{
    size_t len = strlen(word);
    skip_space(in);
    if ((size_t)(in->end - in->at) < len || memcmp(in->at, word, len) != 0)
        return 0;
    in->at += len;
    return 1;
}

static stk_status set_dtype(struct npy_header *out, struct literal *in, const char *text,
                            size_t len)
{
    char order = '=';
    if (len == 8 && memcmp(text, "bfloat16", 8) == 0) {
        out->shape.dtype = STK_BF16;
        return STK_OK;
    }
    if (len && strchr("<>=|", *text)) {
        order = *text++;
        len--;
    }
    if (len && *text == 'O')
        return bad(in, STK_UNSUPPORTED,
                   "the dtype is object: it holds pickles, which are never read");
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++) {
        if (strlen(codes[i].code) == len && memcmp(codes[i].code, text, len) == 0) {
            out->shape.dtype = codes[i].dtype;
            out->byteswap = (order == '<' || order == '>') && order != NATIVE_ORDER &&
                            stk_dtype_size(codes[i].dtype) > 1;
            return STK_OK;
        }
    }
    char words[96];
    snprintf(words, sizeof words, "the dtype \"%.*s\" has no twin in torch",
             len < 40 ? (int)len : 40, text);
    return bad(in, STK_UNSUPPORTED, words);
}

static stk_status take_descr(struct npy_header *out, struct literal *in)
{
    const char *text;
    size_t len;
    skip_space(in);
    if (in->at < in->end && *in->at == '[')
        return bad(in, STK_UNSUPPORTED, "the dtype is structured: save its fields as arrays apart");
    if (!take_string(in, &text, &len))
        return bad(in, STK_CORRUPT, "descr is not a string");
    return set_dtype(out, in, text, len);
}

static stk_status take_fortran(struct npy_header *out, struct literal *in)
{
    if (take_word(in, "True"))
        out->fortran = 1;
    else if (!take_word(in, "False"))
        return bad(in, STK_CORRUPT, "fortran_order is neither True nor False");
    return STK_OK;
}

static stk_status take_dimension(struct npy_header *out, struct literal *in)
{
    uint64_t value;
    skip_space(in);
    const char *digits = in->at;
    if (in->at < in->end && *in->at == '-')
        return bad(in, STK_CORRUPT, "the shape has a negative dimension");
    while (in->at < in->end && *in->at >= '0' && *in->at <= '9')
        in->at++;
    if (in->at == digits)
        return bad(in, STK_CORRUPT, "the shape has a dimension that is not a number");
    if (!parse_u64(digits, (size_t)(in->at - digits), &value) || value > INT64_MAX)
        return bad(in, STK_CORRUPT, "the shape has a dimension of 2^63 or more");
    if (in->at < in->end && *in->at == 'L') /* a long of Python 2 */
        in->at++;
    if (out->shape.rank == STK_MAX_RANK)
        return bad(in, STK_UNSUPPORTED, "the shape has more than 8 dimensions");
    out->shape.shape[out->shape.rank++] = (int64_t)value;
    return STK_OK;
}

static stk_status take_shape(struct npy_header *out, struct literal *in)
{
    int comma = 1;
    if (!take(in, '('))
        return bad(in, STK_CORRUPT, "the shape is not a tuple");
    while (!take(in, ')')) {
        if (!comma)
            return bad(in, STK_CORRUPT, "the shape lacks a comma or its end");
        stk_status status = take_dimension(out, in);
        if (status)
            return status;
        comma = take(in, ',');
    }
    if (out->shape.rank == 1 && !comma)
        return bad(in, STK_CORRUPT, "the shape is a number, not a tuple");
    return STK_OK;
}

typedef stk_status (*take_value)(struct npy_header *out, struct literal *in);

static const struct {
    const char *name;
    take_value take;
} members[] = {{"descr", take_descr}, {"fortran_order", take_fortran}, {"shape", take_shape}};

/* Index in members, or 3. */
static unsigned member_number(const char *name, size_t len)
{
    unsigned i = 0;
    while (i < 3 && (strlen(members[i].name) != len || memcmp(members[i].name, name, len) != 0))
        i++;
    return i;
}

static stk_status take_dict(struct npy_header *out, struct literal *in)
{
    unsigned seen = 0;
    int comma = 1;
    if (!take(in, '{'))
        return bad(in, STK_CORRUPT, "not a dict");
    while (!take(in, '}')) {
        const char *name;
        size_t len;
        if (!comma || !take_string(in, &name, &len) || !take(in, ':'))
            return bad(in, STK_CORRUPT, "the dict is broken");
        unsigned number = member_number(name, len);
        if (number == 3 || seen & 1u << number)
            return bad(in, STK_CORRUPT, "the dict has an unknown or a repeated member");
        stk_status status = members[number].take(out, in);
        if (status)
            return status;
        seen |= 1u << number;
        comma = take(in, ',');
    }
    if (seen != 7)
        return bad(in, STK_CORRUPT, "the dict lacks descr, fortran_order or shape");
    skip_space(in);
    return in->at == in->end ? STK_OK : bad(in, STK_CORRUPT, "something follows the dict");
}

/* Reads magic, version and length: sets out->length and *before, the bytes before the dict. */
static stk_status parse_prefix(struct npy_header *out, const struct stk_bytes *head, uint64_t total,
                               uint32_t *before, struct stk_error *err)
{
    static const char magic[] = "\x93NUMPY";
    const uint8_t *data = head->data;
    size_t known = head->len < 6 ? head->len : 6;
    *before = 10;
    if (!known || memcmp(data, magic, known) != 0)
        return fail(err, STK_CORRUPT, "not an npy file: the magic bytes are missing");
    if (head->len > 6 && data[6] > 1)
        *before = 12;
    out->length = *before;
    if (head->len < *before)
        return fail(err, STK_TRUNCATED, "npy header: it ends after %zu bytes", head->len);
    if (data[6] < 1 || data[6] > 3 || data[7] != 0)
        return fail(err, STK_UNSUPPORTED, "npy header: format version %u.%u", data[6], data[7]);
    uint32_t len = data[8] | (uint32_t)data[9] << 8;
    if (*before == 12)
        len |= (uint32_t)data[10] << 16 | (uint32_t)data[11] << 24;
    if (len > HEADER_LIMIT)
        return fail(err, STK_LIMIT, "npy header: its length is %" PRIu32 " bytes, the cap is %d",
                    len, HEADER_LIMIT);
    out->length = *before + len;
    if (out->length > head->len || out->length > total)
        return fail(err, STK_TRUNCATED, "npy header: %" PRIu32 " bytes long, %zu are there",
                    out->length, head->len);
    return STK_OK;
}

stk_status npy_header_parse(struct npy_header *out, const struct stk_bytes *head, uint64_t total,
                            struct stk_error *err)
{
    uint32_t before = 0;
    *out = (struct npy_header){0};
    stk_status status = parse_prefix(out, head, total, &before, err);
    if (status)
        return status;
    const char *text = (const char *)head->data;
    struct literal in = {text + before, text + out->length, text + before, before, err};
    status = take_dict(out, &in);
    if (status)
        return status;
    uint64_t size = stk_tensor_size(&out->shape);
    if (size == UINT64_MAX)
        return fail(err, STK_CORRUPT, "npy header: the shape's product overflows");
    if (!checked_inside(out->length, size, total)) {
        fail(err, STK_TRUNCATED, "the array wants %" PRIu64 " bytes, %" PRIu64 " are there", size,
             total - out->length);
        fail_at(err, NULL, total);
        return STK_TRUNCATED;
    }
    return STK_OK;
}

static const char *dtype_code(enum stk_dtype dtype)
{
    size_t i = 0;
    while (codes[i].dtype != dtype)
        i++;
    return codes[i].code;
}

void npy_header_write(const struct stk_tensor *shape, char *out, size_t cap, size_t *len)
{
    char order = stk_dtype_size(shape->dtype) == 1 ? '|' : NATIVE_ORDER;
    size_t used = 10;
    used += (size_t)snprintf(out + used, cap - used,
                             "{'descr': '%c%s', 'fortran_order': False, 'shape': (", order,
                             dtype_code(shape->dtype));
    size_t growth = 0;
    for (int32_t i = 0; i < shape->rank; i++) {
        size_t digits = (size_t)snprintf(out + used, cap - used, "%" PRId64, shape->shape[i]);
        used += digits;
        if (i == 0)
            growth =
                21 - digits; /* numpy leaves room for the first dimension to grow to 21 digits */
        used += (size_t)snprintf(out + used, cap - used, "%s",
                                 i + 1 < shape->rank ? ", "
                                 : shape->rank == 1  ? ","
                                                     : "");
    }
    used += (size_t)snprintf(out + used, cap - used, "), }");
    size_t whole = (used + growth + 1 + 63) / 64 * 64;
    memset(out + used, ' ', whole - used);
    out[whole - 1] = '\n';
    memcpy(out, "\x93NUMPY\x01\x00", 8);
    out[8] = (char)((whole - 10) & 0xff);
    out[9] = (char)((whole - 10) >> 8);
    *len = whole;
}
