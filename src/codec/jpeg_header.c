#include "codec/jpeg_header.h"

#include <string.h>

#include "base/fail.h"
#include "codec/exif.h"

/* Markers, ITU T.81 table B.1. */
#define SOI 0xd8
#define EOI 0xd9
#define SOS 0xda
#define SOF0 0xc0
#define DHT 0xc4
#define DAC 0xcc
#define SOF15 0xcf
#define DQT 0xdb
#define DRI 0xdd
#define APP0 0xe0
#define APP1 0xe1
#define APP14 0xee
#define APP15 0xef
#define COM 0xfe
#define JFIF_LEAST 14 /* bytes of a whole JFIF header */
#define TABLES 4      /* of a kind: their numbers are 0 to 3 */
#define LENGTHS 16    /* of Huffman codes, in bits */
#define DC_MOST 15    /* the largest symbol of a table for DC */
#define QUANTA 64     /* in a table of quantisation */
#define END_WITHIN 64 /* of the last bytes: some writers leave a little behind the end */

/* What the segments said so far. */
struct look {
    struct jpeg_header *header;
    int framed;                /* SOF0 was there */
    uint32_t quantized, coded; /* a bit for each table: of DQT; of DHT, for DC and then for AC */
    uint32_t wanted;           /* ... of DQT, by the frame */
    int jfif, adobe;           /* APP0 "JFIF"; APP14's transform, -1: none */
    uint8_t ids[3];
};

static stk_status refuse(struct stk_error *err, const char *why)
{
    return fail(err, STK_UNSUPPORTED, "the device's decoder does not take the image: %s", why);
}

static uint32_t two_bytes(const uint8_t *at)
{
    return (uint32_t)at[0] << 8 | at[1];
}

/* Of a frame: number, sampling and table of quantisation. */
static stk_status look_components(struct look *look, const uint8_t *data, struct stk_error *err)
{
    struct jpeg_header *header = look->header;
    int several = header->components > 1; /* what a single one says of its sampling means nothing */
    header->across = several ? data[1] >> 4 : 1;
    header->down = several ? data[1] & 15 : 1;
    int plain = header->down == 1 ? header->across == 1 || header->across == 2
                                  : header->down == 2 && header->across == 2;
    for (int32_t i = 0; i < header->components; i++, data += 3) {
        look->ids[i] = data[0];
        plain &= i == 0 || data[1] == 0x11;
        if (data[2] >= TABLES)
            return refuse(err, "its frame header is strange");
        look->wanted |= 1u << data[2];
    }
    return plain ? STK_OK : refuse(err, "its colours are sampled in an unusual way");
}

/* A frame header, T.81 B.2.2. */
static stk_status look_frame(struct look *look, const uint8_t *data, size_t len,
                             struct stk_error *err)
{
    struct jpeg_header *header = look->header;
    if (look->framed || len < 6)
        return refuse(err, "its frame header is strange");
    header->height = (int32_t)two_bytes(data + 1);
    header->width = (int32_t)two_bytes(data + 3);
    header->components = data[5];
    if (data[0] != 8)
        return refuse(err, "it has not 8 bits a sample");
    if (!header->height || !header->width)
        return refuse(err, "its size is not in its header");
    if (header->components != 1 && header->components != 3)
        return refuse(err, "it is neither grey nor of three colours");
    if (len != 6 + 3 * (size_t)header->components)
        return refuse(err, "its frame header is strange");
    look->framed = 1;
    return look_components(look, data + 6, err);
}

/* Huffman tables, T.81 B.2.4.2: codes of each length must find room beside the shorter ones. */
static int look_codes(struct look *look, const uint8_t *data, size_t len)
{
    while (len > LENGTHS) {
        uint32_t count = 0, room = 1, number = data[0] & 15;
        int is_dc = data[0] < 16;
        for (int i = 1; i <= LENGTHS; i++) {
            room *= 2;
            if (data[i] > room)
                return 0;
            room -= data[i];
            count += data[i];
        }
        if (data[0] > 31 || number >= TABLES || count > 256 || count > len - 1 - LENGTHS)
            return 0;
        data += 1 + LENGTHS;
        len -= 1 + LENGTHS + count;
        for (uint32_t end = 0; end < count; end++)
            if (*data++ > DC_MOST && is_dc)
                return 0;
        look->coded |= 1u << (is_dc ? number : TABLES + number);
    }
    return len == 0;
}

/* Tables of quantisation, T.81 B.2.4.1, of 8 bits. */
static int look_quanta(struct look *look, const uint8_t *data, size_t len)
{
    for (; len > QUANTA; data += 1 + QUANTA, len -= 1 + QUANTA) {
        if (data[0] >= TABLES)
            return 0;
        look->quantized |= 1u << data[0];
    }
    return len == 0;
}

/* What the decoder reads must be what was looked at here: a marker that is not known is refused,
 * for it may be passed over in another way there. */
static stk_status look_segment(struct look *look, uint8_t marker, const uint8_t *data, size_t len,
                               struct stk_error *err)
{
    struct stk_bytes bytes = {data, len};
    if (marker == SOF0)
        return look_frame(look, data, len, err);
    if ((marker == DHT && !look_codes(look, data, len)) ||
        (marker == DQT && !look_quanta(look, data, len)))
        return refuse(err, "its tables are damaged");
    if (marker == DHT || marker == DQT || marker == DRI || marker == COM)
        return STK_OK;
    if (marker >= SOF0 && marker <= SOF15)
        return refuse(err, marker == DAC ? "it is coded arithmetically" : "it is not baseline");
    if (marker < APP0 || marker > APP15)
        return refuse(err, "there are strange bytes between its segments");
    if (marker == APP0)
        look->jfif |= len >= JFIF_LEAST && !memcmp(data, "JFIF", 5);
    else if (marker == APP1 && exif_orientation(&bytes) > 1)
        return refuse(err, "it is to be turned");
    else if (marker == APP14 && len >= 12 && !memcmp(data, "Adobe", 5))
        look->adobe = data[11];
    return STK_OK;
}

/* Three components are YCbCr unless their writer says otherwise, as libjpeg guesses it. */
static int is_ycbcr(const struct look *look)
{
    if (look->header->components == 1 || look->jfif)
        return 1;
    if (look->adobe >= 0)
        return look->adobe == 1;
    return memcmp(look->ids, "RGB", 3) != 0;
}

/* A scan header, T.81 B.2.3. */
static stk_status look_scan(const struct look *look, const uint8_t *data, size_t len,
                            struct stk_error *err)
{
    uint32_t components = (uint32_t)look->header->components;
    if (!look->framed || (look->wanted & ~look->quantized))
        return refuse(err, "it comes without its tables");
    if (len < 1 || data[0] != components)
        return refuse(err, "its colours come one after the other");
    if (len != 4 + 2 * components)
        return refuse(err, "its scan header is strange");
    const uint8_t *component = data + 1, *end = component + 2 * (size_t)components;
    for (uint32_t i = 0; i < components; i++, component += 2) {
        uint32_t dc = component[1] >> 4, ac = component[1] & 15;
        if (component[0] != look->ids[i] || dc >= TABLES || ac >= TABLES)
            return refuse(err, "its scan header is strange");
        if (!(look->coded >> dc & 1) || !(look->coded >> (TABLES + ac) & 1))
            return refuse(err, "it comes without its tables");
    }
    if (end[0] != 0 || end[1] != QUANTA - 1 || end[2] != 0)
        return refuse(err, "its scan header is strange");
    return is_ycbcr(look) ? STK_OK : refuse(err, "it is not stored as YCbCr");
}

static int has_end(const struct stk_bytes *bytes)
{
    size_t from = bytes->len > END_WITHIN ? bytes->len - END_WITHIN : 0;
    for (size_t at = bytes->len - 1; at > from; at--)
        if (bytes->data[at - 1] == 0xff && bytes->data[at] == EOI)
            return 1;
    return 0;
}

stk_status jpeg_header_read(const struct stk_bytes *bytes, struct jpeg_header *header,
                            struct stk_error *err)
{
    const uint8_t *data = bytes->data;
    struct look look = {.header = header, .adobe = -1};
    stk_status status = STK_OK;
    *header = (struct jpeg_header){0};
    if (bytes->len < 4 || data[0] != 0xff || data[1] != SOI)
        return refuse(err, "it is no JPEG");
    if (!has_end(bytes))
        return refuse(err, "its end is missing");
    for (size_t at = 2; !status && bytes->len - at >= 4;) {
        if (data[at] != 0xff)
            return refuse(err, "there are strange bytes between its segments");
        uint8_t marker = data[at + 1];
        if (marker == 0xff) { /* fill */
            at++;
            continue;
        }
        size_t len = two_bytes(data + at + 2);
        if (len < 2 || len > bytes->len - at - 2)
            break;
        if (marker == SOS)
            return look_scan(&look, data + at + 4, len - 2, err);
        status = look_segment(&look, marker, data + at + 4, len - 2, err);
        at += 2 + len;
    }
    return status ? status : refuse(err, "its header does not end");
}
