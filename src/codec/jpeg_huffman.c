#include "codec/jpeg_huffman.h"

#include <string.h>

#define LONGEST 16
#define WINDOWS (1u << JPEG_PEEK)

/* No code may be all ones, and each length's codes find room beside the shorter ones. */
static int codes_are_sound(enum jpeg_kind kind, const struct jpeg_codes *codes)
{
    uint32_t code = 0, count = 0;
    for (uint32_t len = 1; len <= LONGEST; len++) {
        code = 2 * code + codes->counts[len];
        count += codes->counts[len];
        if (code >= 1u << len)
            return 0;
    }
    if (count == 0 || count > 256)
        return 0;
    for (uint32_t i = 0; kind == JPEG_DC && i < count; i++)
        if (codes->symbols[i] > JPEG_DC_MOST)
            return 0;
    return 1;
}

static void make_first(struct jpeg_table *table)
{
    uint32_t code = 0, place = 0;
    memset(table->first, 0, sizeof table->first);
    for (uint32_t len = 1; len <= LONGEST; len++) {
        uint32_t count = table->codes.counts[len];
        code *= 2;
        table->offsets[len] = (int32_t)place - (int32_t)code;
        table->ends[len] = (code + count) << (LONGEST - len);
        for (uint32_t i = 0; i < count && len <= JPEG_PEEK; i++) {
            uint32_t copies = 1u << (JPEG_PEEK - len), at = (code + i) * copies;
            for (uint32_t end = at + copies; at < end; at++)
                table->first[at] = (uint16_t)(table->codes.symbols[place + i] | len << 8);
        }
        code += count;
        place += count;
    }
}

/* What is known of the window: codes that end in it. */
static uint16_t several_of(const struct jpeg_table *table, uint32_t window)
{
    uint32_t at = 0, steps = 0;
    while (at < JPEG_PEEK) {
        uint32_t first = table->first[window << at & (WINDOWS - 1)], len = first >> 8;
        if (len == 0 || at + len > JPEG_PEEK)
            break;
        uint32_t more = jpeg_steps((uint8_t)first);
        if (more != JPEG_BLOCK_END && steps + more >= JPEG_BLOCK_END)
            break; /* beyond the block's end */
        at += len + (first & 15 && more != JPEG_BLOCK_END ? first & 15 : 0);
        steps += more;
        if (more == JPEG_BLOCK_END)
            break;
    }
    return (uint16_t)(at ? at | steps << 8 : JPEG_NOT_THERE);
}

int jpeg_table_is(const struct jpeg_table *table, const struct jpeg_codes *codes)
{
    return table->is_made && memcmp(&table->codes, codes, sizeof *codes) == 0;
}

int jpeg_table_make(struct jpeg_table *table, enum jpeg_kind kind, const struct jpeg_codes *codes)
{
    if (jpeg_table_is(table, codes))
        return 1;
    if (!codes_are_sound(kind, codes))
        return 0;
    table->codes = *codes;
    table->is_made = 1;
    make_first(table);
    for (uint32_t window = 0; kind == JPEG_AC && window < WINDOWS; window++)
        table->several[window] = several_of(table, window);
    return 1;
}

uint32_t jpeg_table_look(const struct jpeg_table *table, uint32_t bits, uint8_t *symbol)
{
    for (uint32_t len = 1; len <= LONGEST; len++)
        if (bits < table->ends[len]) {
            int32_t place = (int32_t)(bits >> (LONGEST - len)) + table->offsets[len];
            *symbol = table->codes.symbols[place];
            return len;
        }
    return 0;
}

uint32_t jpeg_table_code(const struct jpeg_table *table, uint8_t symbol, uint32_t *code)
{
    int32_t place = 0;
    for (uint32_t len = 1; len <= LONGEST; len++)
        for (uint32_t i = 0; i < table->codes.counts[len]; i++, place++)
            if (table->codes.symbols[place] == symbol) {
                *code = (uint32_t)(place - table->offsets[len]);
                return len;
            }
    return 0;
}
