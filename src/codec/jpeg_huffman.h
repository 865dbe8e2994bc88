/* jpeg_huffman.h -- tables of Huffman codes, for walking over coded blocks and for writing some.
 * Owns: nothing.   Threads: a table belongs to one.   Errors: 0, where codes are refused that
 * libjpeg refuses.   Not here: the walk (jpeg_skim.h). */
#ifndef CODEC_JPEG_HUFFMAN_H
#define CODEC_JPEG_HUFFMAN_H

#include <stdint.h>

#define JPEG_PEEK 12 /* bits that are looked up at once */
#define JPEG_DC_MOST 15
#define JPEG_LONG_RUN 0xf0 /* 16 zeros, and the block goes on */
#define JPEG_BLOCK_END 64  /* added to the steps of an entry that ends its block */
#define JPEG_NOT_THERE (127u << 8)

enum jpeg_kind { JPEG_DC, JPEG_AC };

/* As a file sends them, ITU T.81 B.2.4.2. */
struct jpeg_codes {
    uint8_t counts[17]; /* of codes of each length; [0] means nothing */
    uint8_t symbols[256];
};

struct jpeg_table {
    struct jpeg_codes codes; /* what it was made of */
    int is_made;
    uint32_t ends[17];   /* behind the last code of each length, as if of 16 bits */
    int32_t offsets[17]; /* a code's symbol is at code + offset */
    /* By the next 12 bits, the first code: symbol | length << 8. 0: it is longer, or none. */
    uint16_t first[1 << JPEG_PEEK];
    /* AC alone, all codes that end in these bits and their extra bits: bits to pass | steps in the
     * block << 8. The last code's extra bits may lie behind the 12. */
    uint16_t several[1 << JPEG_PEEK];
};

/* Was it made of these codes? */
int jpeg_table_is(const struct jpeg_table *table, const struct jpeg_codes *codes);
/* Makes the table, unless it is of these codes already. 0: they are no codes; the table stays. */
int jpeg_table_make(struct jpeg_table *table, enum jpeg_kind kind, const struct jpeg_codes *codes);

/* The length of the code that these 16 bits begin with, 0: none does. */
uint32_t jpeg_table_look(const struct jpeg_table *table, uint32_t bits, uint8_t *symbol);

/* The length of a symbol's code, 0: it has none. */
uint32_t jpeg_table_code(const struct jpeg_table *table, uint8_t symbol, uint32_t *code);

/* Steps in the block that a symbol takes: JPEG_BLOCK_END for the one that ends it. As libjpeg, any
 * symbol without extra bits but 0xf0 does. */
static inline uint32_t jpeg_steps(uint8_t symbol)
{
    return symbol & 15 || symbol == JPEG_LONG_RUN ? (symbol >> 4) + 1u : JPEG_BLOCK_END;
}

#endif
