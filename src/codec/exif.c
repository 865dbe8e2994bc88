#include "codec/exif.h"

#include <string.h>

#include "base/checked.h"

#define TAG_ORIENTATION 0x0112
#define TYPE_SHORT 3
#define ENTRY_SIZE 12 /* of a directory: tag, type, count, value */

/* TIFF numbers in the order that its first two bytes chose. */
struct tiff {
    const uint8_t *data;
    size_t len;
    int big;
};

static uint32_t tiff_short(const struct tiff *tiff, size_t at)
{
    const uint8_t *byte = tiff->data + at;
    return tiff->big ? (uint32_t)(byte[0] << 8 | byte[1]) : (uint32_t)(byte[1] << 8 | byte[0]);
}

static uint32_t tiff_long(const struct tiff *tiff, size_t at)
{
    uint32_t first = tiff_short(tiff, at), second = tiff_short(tiff, at + 2);
    return tiff->big ? first << 16 | second : second << 16 | first;
}

static int tiff_open(struct tiff *tiff, const struct stk_bytes *bytes)
{
    static const char prefix[6] = "Exif\0";
    *tiff = (struct tiff){bytes->data, bytes->len, 0};
    if (tiff->len >= sizeof prefix && memcmp(tiff->data, prefix, sizeof prefix) == 0) {
        tiff->data += sizeof prefix;
        tiff->len -= sizeof prefix;
    }
    if (tiff->len < 8)
        return 0;
    tiff->big = tiff->data[0] == 'M' && tiff->data[1] == 'M';
    if (!tiff->big && (tiff->data[0] != 'I' || tiff->data[1] != 'I'))
        return 0;
    return tiff_short(tiff, 2) == 42;
}

int exif_orientation(const struct stk_bytes *bytes)
{
    struct tiff tiff;
    if (!tiff_open(&tiff, bytes))
        return 0;
    uint32_t directory = tiff_long(&tiff, 4);
    if (!checked_inside(directory, 2, tiff.len))
        return 0;
    uint32_t entries = tiff_short(&tiff, directory);
    for (uint32_t i = 0; i < entries; i++) {
        uint64_t at = (uint64_t)directory + 2 + (uint64_t)i * ENTRY_SIZE;
        if (!checked_inside(at, ENTRY_SIZE, tiff.len))
            return 0;
        if (tiff_short(&tiff, at) != TAG_ORIENTATION)
            continue;
        if (tiff_short(&tiff, at + 2) != TYPE_SHORT || tiff_long(&tiff, at + 4) != 1)
            return 0;
        uint32_t value = tiff_short(&tiff, at + 8);
        return value >= 1 && value <= 8 ? (int)value : 0;
    }
    return 0;
}
