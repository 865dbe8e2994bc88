#include "format/tar_header.h"

#include <string.h>

#include "base/fail.h"
#include "base/parse.h"

/* Where things are in a header (POSIX.1-1988 ustar; V7 ends before the magic). */
enum {
    NAME_AT = 0,
    NAME_LEN = 100,
    SIZE_AT = 124,
    SIZE_LEN = 12,
    SUM_AT = 148,
    SUM_LEN = 8,
    TYPE_AT = 156,
    MAGIC_AT = 257,
    PREFIX_AT = 345,
    PREFIX_LEN = 155
};

int tar_block_is_zero(const uint8_t block[TAR_BLOCK])
{
    return block[0] == 0 && !memcmp(block, block + 1, TAR_BLOCK - 1);
}

/* Octal digits, with spaces before them and a space or NUL behind; none at all is 0. Or base 256: a
 * first byte of 0x80, then the number in big-endian order (0xff would begin a negative one). */
static int number_parse(const uint8_t *field, size_t len, uint64_t *out)
{
    uint64_t value = 0;
    size_t i = 0;
    if (field[0] & 0x80) {
        if (field[0] != 0x80)
            return 0;
        for (i = 1; i < len; i++) {
            if (value >> 55)
                return 0;
            value = value << 8 | field[i];
        }
        *out = value;
        return 1;
    }
    while (i < len && field[i] == ' ')
        i++;
    for (; i < len && field[i] >= '0' && field[i] <= '7'; i++)
        value = value << 3 | (uint64_t)(field[i] - '0'); /* 12 digits: 36 bits */
    while (i < len && field[i] == ' ')
        i++;
    if (i < len && field[i] != 0)
        return 0;
    *out = value;
    return 1;
}

int tar_block_is_header(const uint8_t block[TAR_BLOCK])
{
    uint64_t stored;
    if (!number_parse(block + SUM_AT, SUM_LEN, &stored))
        return 0;
    uint32_t sum = SUM_LEN * ' '; /* the sum's own field counts as spaces */
    for (size_t i = 0; i < TAR_BLOCK; i++)
        sum += block[i];
    for (size_t i = SUM_AT; i < SUM_AT + SUM_LEN; i++)
        sum -= block[i];
    if (sum == stored)
        return 1;
    uint32_t high = 0; /* bytes that a signed sum counts 256 less */
    for (size_t i = 0; i < TAR_BLOCK; i++)
        high += block[i] >> 7;
    for (size_t i = SUM_AT; i < SUM_AT + SUM_LEN; i++)
        high -= block[i] >> 7;
    return (int64_t)sum - 256 * (int64_t)high == (int64_t)stored;
}

static enum tar_kind kind_of(uint8_t type, int is_folder_name)
{
    switch (type) {
    case 0: /* V7 writes a folder as a file whose name ends with a slash */
        return is_folder_name ? TAR_OTHER : TAR_FILE;
    case '0':
    case '7':
        return TAR_FILE;
    case '1':
    case '2':
    case '3':
    case '4':
    case '5':
    case '6':
        return TAR_OTHER;
    case 'S':
        return TAR_SPARSE;
    case 'x':
    case 'X': /* Solaris */
        return TAR_PAX;
    case 'g':
        return TAR_PAX_ALL;
    case 'L':
        return TAR_LONG_NAME;
    case 'K':
        return TAR_LONG_LINK;
    default:
        return TAR_SKIP;
    }
}

stk_status tar_header_parse(struct tar_header *out, const uint8_t block[TAR_BLOCK],
                            struct stk_error *err)
{
    size_t prefix = 0;
    /* GNU's magic is "ustar  ": it keeps times where POSIX has the prefix. */
    if (!memcmp(block + MAGIC_AT, "ustar", 6) && block[PREFIX_AT]) {
        prefix = strnlen((const char *)block + PREFIX_AT, PREFIX_LEN);
        memcpy(out->name, block + PREFIX_AT, prefix);
        out->name[prefix++] = '/';
    }
    size_t len = strnlen((const char *)block + NAME_AT, NAME_LEN);
    memcpy(out->name + prefix, block + NAME_AT, len);
    out->name_len = prefix + len;
    out->kind = kind_of(block[TYPE_AT], len > 0 && block[NAME_AT + len - 1] == '/');
    out->size = 0;
    if (out->kind == TAR_OTHER)
        return STK_OK; /* whatever their size says, nothing follows them */
    if (!number_parse(block + SIZE_AT, SIZE_LEN, &out->size))
        return fail(err, STK_CORRUPT, "a tar header's size is not a number, or is negative");
    if (out->size > TAR_MAX_SIZE)
        return fail(err, STK_CORRUPT, "a tar header's size is absurd");
    return STK_OK;
}

/* --- pax records ----------------------------------------------------------------------------- */

static int key_is(const char *key, size_t len, const char *name)
{
    return len == strlen(name) && !memcmp(key, name, len);
}

static stk_status record_take(struct tar_records *records, const char *record, size_t key_len,
                              const char *value, size_t value_len, struct stk_error *err)
{
    static const char sparse[] = "GNU.sparse.";
    if (key_is(record, key_len, "path")) {
        records->path.len = 0;
        records->has_path = value_len > 0;
        text_add(&records->path, value, value_len);
        if (records->path.failed)
            return fail_memory(err, value_len);
    } else if (key_is(record, key_len, "size")) {
        records->has_size = value_len > 0;
        if (value_len > 0 &&
            (!parse_u64(value, value_len, &records->size) || records->size > TAR_MAX_SIZE))
            return fail(err, STK_CORRUPT, "the size in a pax header is no number, or is absurd");
    } else if (key_len >= sizeof(sparse) - 1 && !memcmp(record, sparse, sizeof(sparse) - 1)) {
        records->sparse = 1;
    }
    return STK_OK;
}

/* One record at data; *used is its length, never 0 on STK_OK. */
static stk_status record_parse(struct tar_records *records, const char *data, size_t len,
                               size_t *used, struct stk_error *err)
{
    size_t digits = 0;
    uint64_t length = 0;
    while (digits < len && data[digits] >= '0' && data[digits] <= '9')
        digits++;
    if (!parse_u64(data, digits, &length))
        return fail(err, STK_CORRUPT, "a pax record does not begin with its length");
    if (length > len || length < digits + 3)
        return fail(err, STK_CORRUPT, "a pax record's length does not fit its header");
    if (data[digits] != ' ' || data[length - 1] != '\n')
        return fail(err, STK_CORRUPT, "a pax record lacks its space or its newline");
    const char *key = data + digits + 1, *end = data + length - 1;
    const char *equals = memchr(key, '=', (size_t)(end - key));
    if (!equals || equals == key)
        return fail(err, STK_CORRUPT, "a pax record lacks its key or its '='");
    *used = length;
    return record_take(records, key, (size_t)(equals - key), equals + 1, (size_t)(end - equals - 1),
                       err);
}

stk_status tar_records_parse(struct tar_records *records, const char *data, size_t len,
                             struct stk_error *err)
{
    while (len > 0 && data[len - 1] == 0) /* some writers pad with NUL */
        len--;
    for (size_t at = 0; at < len;) {
        size_t used = 0;
        stk_status status = record_parse(records, data + at, len - at, &used, err);
        if (status)
            return status;
        at += used;
    }
    return STK_OK;
}

void tar_records_reset(struct tar_records *records)
{
    records->path.len = 0;
    records->size = 0;
    records->has_path = records->has_size = records->sparse = 0;
}

void tar_records_free(struct tar_records *records)
{
    text_free(&records->path);
}
