#include "codec/jpeg_tail.h"

#include <stdlib.h>

#define SIZES (JPEG_DC_MOST + 1)
#define FILLER_RUN 7 /* of the longest filler: 7 of them find room in a block */

/* Markers, ITU T.81 table B.1. */
#define SOF0 0xc0
#define SOF1 0xc1
#define RST0 0xd0
#define SOI 0xd8
#define EOI 0xd9
#define SOS 0xda

/* ---- bits ---------------------------------------------------------------------------------- */

struct writer {
    struct jpeg_tail *tail;
    uint64_t word;  /* its lowest bits are those still to be written */
    uint32_t count; /* of them: less than 8 between two calls */
    int is_full;
};

static void write_byte(struct writer *writer, uint8_t byte)
{
    struct jpeg_tail *tail = writer->tail;
    if (tail->len + 2 > JPEG_TAIL_ROOM) {
        writer->is_full = 1;
        return;
    }
    tail->bytes[tail->len++] = byte;
    if (byte == 0xff)
        tail->bytes[tail->len++] = 0;
}

static void write_bits(struct writer *writer, uint32_t bits, uint32_t count)
{
    writer->word = writer->word << count | bits;
    writer->count += count;
    while (writer->count >= 8) {
        writer->count -= 8;
        write_byte(writer, (uint8_t)(writer->word >> writer->count));
    }
}

/* ---- blocks -------------------------------------------------------------------------------- */

struct code {
    uint32_t bits, len; /* 0: there is none */
};

/* What is to be written of a component. */
struct coder {
    struct code sizes[SIZES]; /* of differences of DC */
    struct code end;          /* of a block */
    struct code nothing;      /* a whole block: no difference, and its end */
    int64_t left;             /* to come to the sum that is wanted */
};

static struct code find_code(const struct jpeg_table *table, uint8_t symbol)
{
    struct code code = {0, 0};
    code.len = jpeg_table_code(table, symbol, &code.bits);
    return code;
}

static int coder_init(struct coder *coder, const struct jpeg_table *dc, const struct jpeg_table *ac,
                      int32_t sum)
{
    for (uint8_t size = 0; size < SIZES; size++)
        coder->sizes[size] = find_code(dc, size);
    coder->end = find_code(ac, 0);
    coder->nothing.bits = coder->sizes[0].bits << coder->end.len | coder->end.bits;
    coder->nothing.len = coder->sizes[0].len + coder->end.len;
    coder->left = sum;
    return coder->sizes[0].len > 0 && coder->end.len > 0;
}

static uint32_t size_of(uint64_t value)
{
    return value ? 64 - (uint32_t)__builtin_clzll(value) : 0;
}

/* The next of some differences that add up to what is left. An optimised table has codes for the
 * sizes that the picture needs, and no more. 0: it has none at all. */
static int next_difference(const struct coder *coder, uint32_t *size, int64_t *difference)
{
    uint64_t left = (uint64_t)llabs(coder->left), amount = left;
    uint32_t fits = size_of(left), at = fits;
    while (at < SIZES && !coder->sizes[at].len)
        at++;
    if (at < SIZES && at > fits) { /* too far, and then back */
        amount += (uint64_t)1 << (at - 1);
    } else if (at >= SIZES) { /* all are too small: some of the way */
        for (at = SIZES - 1; at > 0 && !coder->sizes[at].len;)
            at--;
        amount = ((uint64_t)1 << at) - 1;
    }
    if (at == 0)
        return 0;
    *size = at;
    *difference = coder->left < 0 ? -(int64_t)amount : (int64_t)amount;
    return 1;
}

static int write_dc(struct writer *writer, struct coder *coder)
{
    uint32_t size = 0;
    int64_t difference = 0;
    if (coder->left != 0 && !next_difference(coder, &size, &difference))
        return 0;
    coder->left -= difference;
    write_bits(writer, coder->sizes[size].bits, coder->sizes[size].len);
    int64_t extra = difference < 0 ? difference + ((int64_t)1 << size) - 1 : difference;
    write_bits(writer, (uint32_t)extra, size);
    return 1;
}

/* Coefficients, before the end of the last block, by which the row ends `bits` bits into a byte: so
 * the bytes that follow it can stay as they are. A code of odd length comes to every place. */
static int write_fillers(struct writer *writer, const struct jpeg_table *ac, uint32_t end_len,
                         uint32_t bits)
{
    uint32_t missing = (bits - end_len - writer->count) & 7;
    for (uint32_t symbol = 1; missing > 0 && symbol < (FILLER_RUN + 1) << 4; symbol++) {
        struct code code = find_code(ac, (uint8_t)symbol);
        uint32_t size = symbol & 15, len = code.len + size;
        if (!size || !code.len || len % 2 == 0)
            continue;
        for (uint32_t count = missing * len & 7; count > 0;
             count--) { /* an odd one's square is 1 */
            write_bits(writer, code.bits, code.len);
            write_bits(writer, 0, size);
        }
        missing = 0;
    }
    return missing == 0;
}

/* All blocks of the row but the end of the last one. */
static int write_row(struct writer *writer, const struct jpeg_scan *scan, struct coder *coders)
{
    for (uint32_t mcu = 0; mcu < scan->mcus && !writer->is_full; mcu++)
        for (uint32_t b = 0; b < scan->blocks; b++) {
            struct coder *coder = &coders[scan->components[b]];
            int is_last = mcu + 1 == scan->mcus && b + 1 == scan->blocks;
            if (coder->left == 0 && !is_last) {
                write_bits(writer, coder->nothing.bits, coder->nothing.len);
                continue;
            }
            if (!write_dc(writer, coder))
                return 0;
            if (!is_last)
                write_bits(writer, coder->end.bits, coder->end.len);
        }
    return !writer->is_full;
}

int jpeg_tail_make(struct jpeg_tail *tail, const struct jpeg_skim *skim,
                   const struct jpeg_scan *scan, const struct jpeg_place *place)
{
    struct coder coders[JPEG_COMPONENTS] = {0};
    struct writer writer = {.tail = tail};
    uint32_t last = scan->components[scan->blocks - 1];
    uint8_t byte = scan->bytes.data[place->at];
    tail->len = 0;
    for (uint32_t b = 0; b < scan->blocks; b++) {
        uint32_t c = scan->components[b];
        if (!coder_init(&coders[c], jpeg_skim_table(skim, JPEG_DC, c),
                        jpeg_skim_table(skim, JPEG_AC, c), place->dc[c]))
            return 0;
    }
    const struct code *end = &coders[last].end;
    if (!write_row(&writer, scan, coders) ||
        !write_fillers(&writer, jpeg_skim_table(skim, JPEG_AC, last), end->len, place->bits))
        return 0;
    write_bits(&writer, end->bits, end->len);
    for (uint32_t c = 0; c < JPEG_COMPONENTS; c++)
        if (coders[c].left != 0)
            return 0;
    tail->rest = place->at;
    if (place->bits > 0) { /* a byte of both */
        write_bits(&writer, byte & (0xffu >> place->bits), 8 - place->bits);
        tail->rest += byte == 0xff ? 2 : 1;
    }
    return !writer.is_full;
}

/* ---- the header ---------------------------------------------------------------------------- */

int jpeg_height_find(const struct stk_bytes *bytes, size_t scan_at, size_t *height_at)
{
    const uint8_t *data = bytes->data;
    size_t at = 2;
    *height_at = 0;
    if (scan_at > bytes->len || scan_at < 4 || data[0] != 0xff || data[1] != SOI)
        return 0;
    while (scan_at - at >= 4) {
        uint8_t marker = data[at + 1];
        size_t len = (size_t)data[at + 2] << 8 | data[at + 3];
        if (data[at] != 0xff || marker < SOF0 || marker == 0xff ||
            (marker >= RST0 && marker <= EOI) || len < 2 || len > scan_at - at - 2)
            return 0; /* no segment, or one that stands alone */
        if (marker == SOF0 || marker == SOF1) {
            if (*height_at || len < 8)
                return 0;
            *height_at = at + 5;
        }
        at += 2 + len;
        if (marker == SOS)
            return *height_at > 0 && at == scan_at;
    }
    return 0;
}
