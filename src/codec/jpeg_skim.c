#include "codec/jpeg_skim.h"

#include <assert.h>
#include <string.h>

#include "base/fail.h"
#include "base/memory.h"

#define RST0 0xd0
#define BLOCK 64
#define ENTRY_MOST 27 /* bits: codes end within 12, and 15 more may belong to the last */

/* The bits that come next, the first one on top. */
struct bits {
    uint64_t word;
    const uint8_t *at; /* behind the last byte that is in the word and in the count */
    uint32_t count;    /* bits in the word; what lies below them is nothing, or the byte at `at` */
    uint32_t padding;  /* zero bits made up behind a marker or the end, so far */
};

/* What a walk changes. */
struct walk {
    struct bits bits;
    uint32_t dc[JPEG_COMPONENTS]; /* sums that may wrap around, as libjpeg's do */
    uint32_t to_go;               /* MCUs up to the next restart marker */
    uint32_t restarts;
};

struct jpeg_skim {
    const struct jpeg_scan *scan;
    struct walk walk;
    struct jpeg_table tables[2][JPEG_TABLES]; /* by kind */
};

stk_status jpeg_skim_new(struct jpeg_skim **out, struct stk_error *err)
{
    *out = memory_zero(1, sizeof **out);
    return *out ? STK_OK : fail_memory(err, sizeof **out);
}

void jpeg_skim_free(struct jpeg_skim *skim)
{
    memory_free(skim);
}

uint64_t jpeg_skim_bytes(const struct jpeg_skim *skim)
{
    return sizeof *skim;
}

const struct jpeg_table *jpeg_skim_table(const struct jpeg_skim *skim, enum jpeg_kind kind,
                                         uint32_t component)
{
    return &skim->tables[kind][skim->scan->tables[kind][component]];
}

uint32_t jpeg_skim_missing(const struct jpeg_skim *skim, const struct jpeg_scan *scan)
{
    uint32_t used = 0, missing = 0;
    for (uint32_t b = 0; b < scan->blocks; b++)
        used |= 1u << scan->tables[JPEG_AC][scan->components[b]];
    for (uint32_t i = 0; i < JPEG_TABLES; i++)
        missing +=
            used >> i & 1 && !jpeg_table_is(&skim->tables[JPEG_AC][i], &scan->codes[JPEG_AC][i]);
    return missing;
}

int jpeg_skim_begin(struct jpeg_skim *skim, const struct jpeg_scan *scan)
{
    assert(scan->blocks > 0 && scan->blocks <= JPEG_MCU_MOST);
    skim->scan = scan;
    skim->walk = (struct walk){.bits = {.at = scan->bytes.data}, .to_go = scan->restart};
    for (uint32_t b = 0; b < scan->blocks; b++)
        for (enum jpeg_kind kind = JPEG_DC; kind <= JPEG_AC; kind++) {
            uint32_t number = scan->tables[kind][scan->components[b]];
            assert(number < JPEG_TABLES);
            if (!jpeg_table_make(&skim->tables[kind][number], kind, &scan->codes[kind][number]))
                return 0;
        }
    return 1;
}

/* ---- bits ---------------------------------------------------------------------------------- */

static uint64_t load_word(const uint8_t *at)
{
    uint64_t word;
    memcpy(&word, at, sizeof word);
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    word = __builtin_bswap64(word);
#endif
    return word;
}

/* 0xff is followed by a zero that is no data, or by a marker's code. */
static int has_marker_byte(uint64_t word)
{
    const uint64_t ones = 0x0101010101010101u;
    return ((~word - ones) & word & ones << 7) != 0;
}

/* Byte by byte, near the end and where there is 0xff. */
__attribute__((noinline)) static void bits_fill_slowly(struct bits *bits, const uint8_t *end)
{
    while (bits->count < 56) {
        size_t left = (size_t)(end - bits->at);
        uint64_t byte = left ? *bits->at : 0;
        int is_marker = byte == 0xff && (left < 2 || bits->at[1] != 0);
        if (!left || is_marker) {
            byte = 0;
            bits->padding += 8;
        } else {
            bits->at += byte == 0xff ? 2 : 1;
        }
        bits->word |= byte << (56 - bits->count);
        bits->count += 8;
    }
}

/* At least 56 bits. The caller's bits are in registers: so only a copy of them is handed on. */
static inline void bits_fill(struct bits *bits, const uint8_t *end)
{
    if (__builtin_expect(end - bits->at >= 8, 1)) {
        uint64_t word = load_word(bits->at);
        if (__builtin_expect(!has_marker_byte(word), 1)) {
            bits->word |= word >> bits->count;
            bits->at += (63 - bits->count) >> 3;
            bits->count |= 56;
            return;
        }
    }
    struct bits copy = {bits->word, bits->at, bits->count, bits->padding};
    bits_fill_slowly(&copy, end);
    bits->word = copy.word;
    bits->at = copy.at;
    bits->count = copy.count;
    bits->padding = copy.padding;
}

static inline void bits_pass(struct bits *bits, uint32_t count)
{
    bits->word <<= count;
    bits->count -= count;
}

/* ---- blocks -------------------------------------------------------------------------------- */

/* The next code's symbol; its length, 0: there is no such code. */
static inline uint32_t first_code(const struct jpeg_table *table, uint64_t word, uint8_t *symbol)
{
    uint32_t first = table->first[word >> (64 - JPEG_PEEK)];
    if (__builtin_expect(first == 0, 0)) {
        uint8_t found = 0;
        first = jpeg_table_look(table, (uint32_t)(word >> 48), &found) << 8;
        first |= found;
    }
    *symbol = (uint8_t)first;
    return first >> 8;
}

/* T.81 F.2.2.1. At most 31 bits. */
static inline int pass_dc(const struct jpeg_table *table, struct bits *bits, uint32_t *dc)
{
    uint8_t size;
    uint32_t len = first_code(table, bits->word, &size);
    if (__builtin_expect(len == 0, 0))
        return 0;
    uint64_t rest = bits->word << len;
    uint32_t value = (uint32_t)(rest >> 1 >> (63 - size)); /* in two steps, for size 0 */
    uint32_t is_negative = ~(uint32_t)(rest >> 63) & 1;
    *dc += value - (is_negative ? (1u << size) - 1 : 0);
    bits_pass(bits, len + size);
    return 1;
}

/* One code, where the next is longer than an entry's, or ends the block without its end being told.
 * The step in the block that follows, BLOCK at its end; 0: there is no such code, or no room. */
static inline uint32_t pass_one(const struct jpeg_table *table, struct bits *bits, uint32_t k)
{
    uint8_t symbol;
    uint32_t len = first_code(table, bits->word, &symbol), steps = jpeg_steps(symbol);
    uint32_t next = steps == JPEG_BLOCK_END ? BLOCK : k + steps;
    bits_pass(bits, len + (symbol & 15));
    return len > 0 && next <= BLOCK ? next : 0;
}

/* Entries, from step k of the block on, up to one that is not there or leads to the block's end. It
 * is not passed. After a fill there are bits for two. */
static inline uint32_t pass_entries(const struct jpeg_table *table, struct bits *bits,
                                    const uint8_t *end, uint32_t *k)
{
    for (;;) {
        uint32_t entry = table->several[bits->word >> (64 - JPEG_PEEK)];
        if (*k + (entry >> 8) >= BLOCK)
            return entry;
        *k += entry >> 8;
        bits_pass(bits, entry & 63);
        bits_fill(bits, end);
        entry = table->several[bits->word >> (64 - JPEG_PEEK)];
        if (*k + (entry >> 8) >= BLOCK)
            return entry;
        *k += entry >> 8;
        bits_pass(bits, entry & 63);
    }
}

/* T.81 F.2.2.2. */
static inline int pass_ac(const struct jpeg_table *table, struct bits *bits, const uint8_t *end)
{
    uint32_t k = 1;
    if (__builtin_expect(bits->count < ENTRY_MOST, 0))
        bits_fill(bits, end);
    while (k < BLOCK) {
        uint32_t entry = pass_entries(table, bits, end, &k), next = k + (entry >> 8);
        /* Filled to its last place; or its end was told, in time. */
        if (next == BLOCK || (entry >> 8 >= JPEG_BLOCK_END && next < 2 * BLOCK)) {
            bits_pass(bits, entry & 63);
            return 1;
        }
        bits_fill(bits, end);
        k = pass_one(table, bits, k);
        bits_fill(bits, end);
        if (k == 0)
            return 0;
    }
    return 1;
}

static int walk_mcus(const struct jpeg_skim *skim, struct walk *walk, uint32_t count)
{
    const struct jpeg_scan *scan = skim->scan;
    const uint8_t *end = scan->bytes.data + scan->bytes.len;
    struct bits bits = walk->bits;
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t b = 0; b < scan->blocks; b++) {
            uint32_t component = scan->components[b];
            bits_fill(&bits, end);
            if (!pass_dc(&skim->tables[JPEG_DC][scan->tables[JPEG_DC][component]], &bits,
                         &walk->dc[component]) ||
                !pass_ac(&skim->tables[JPEG_AC][scan->tables[JPEG_AC][component]], &bits, end))
                return 0;
        }
    walk->bits = bits;
    return bits.count >= bits.padding; /* else some of it was made up */
}

/* Right behind the last block, with nothing but the rest of a byte between. */
static int walk_restart(const struct jpeg_skim *skim, struct walk *walk)
{
    const struct stk_bytes *bytes = &skim->scan->bytes;
    const struct bits *bits = &walk->bits;
    size_t left = bytes->len - (size_t)(bits->at - bytes->data);
    if (bits->count - bits->padding >= 8 || left < 2 || bits->at[0] != 0xff ||
        bits->at[1] != RST0 + walk->restarts % 8)
        return 0;
    *walk = (struct walk){
        .bits = {.at = bits->at + 2}, .to_go = skim->scan->restart, .restarts = walk->restarts + 1};
    return 1;
}

static int walk_row(const struct jpeg_skim *skim, struct walk *walk)
{
    uint32_t left = skim->scan->mcus;
    if (!skim->scan->restart)
        return walk_mcus(skim, walk, left);
    while (left > 0) {
        uint32_t count = left < walk->to_go ? left : walk->to_go;
        if (!walk_mcus(skim, walk, count))
            return 0;
        left -= count;
        walk->to_go -= count;
        if (walk->to_go == 0 && !walk_restart(skim, walk))
            return 0;
    }
    return 1;
}

int jpeg_skim_rows(struct jpeg_skim *skim, uint32_t rows)
{
    for (uint32_t row = 0; row < rows; row++)
        if (!walk_row(skim, &skim->walk))
            return 0;
    return 1;
}

/* Back to the byte that holds the next bit. */
int jpeg_skim_place(const struct jpeg_skim *skim, struct jpeg_place *place)
{
    const uint8_t *begin = skim->scan->bytes.data, *at = skim->walk.bits.at;
    struct walk walk = skim->walk; /* changed by the look at the next MCU */
    if (walk.bits.padding > 0 || (!skim->scan->restart && !walk_mcus(skim, &walk, 1)))
        return 0;
    for (uint32_t bytes = (skim->walk.bits.count + 7) / 8; bytes > 0; bytes--)
        at -= at - begin >= 2 && at[-1] == 0 && at[-2] == 0xff ? 2 : 1;
    *place = (struct jpeg_place){.at = (size_t)(at - begin),
                                 .bits = (8 - skim->walk.bits.count % 8) % 8};
    for (int i = 0; i < JPEG_COMPONENTS; i++)
        place->dc[i] = (int32_t)skim->walk.dc[i];
    return 1;
}
