/* jpeg_skim.h -- walks over the coded blocks of a sequential JPEG's scan without decoding them,
 * several times as fast as a decoder does.
 * Owns: its tables; the scan's bytes are the caller's and stay while it walks.   Threads: one.
 * Errors: 0 is doubt. Then the scan is a decoder's from its beginning: it may be damaged, or merely
 * strange. No doubt: libjpeg would have read the same blocks, without a word.
 * Not here: what to do with the place (jpeg_tail.h). */
#ifndef CODEC_JPEG_SKIM_H
#define CODEC_JPEG_SKIM_H

#include "stoker/bytes.h"
#include "stoker/error.h"
#include "codec/jpeg_huffman.h"

#define JPEG_COMPONENTS 4
#define JPEG_TABLES 4
#define JPEG_MCU_MOST 10 /* blocks, T.81 B.2.3 */

/* A scan of all components, Huffman coded, sequential. */
struct jpeg_scan {
    struct stk_bytes bytes;                  /* from behind the scan's header to the file's end */
    uint32_t blocks;                         /* of an MCU */
    uint8_t components[JPEG_MCU_MOST];       /* of its blocks */
    uint8_t tables[2][JPEG_COMPONENTS];      /* numbers of their tables, by kind */
    struct jpeg_codes codes[2][JPEG_TABLES]; /* of those that are used */
    uint32_t mcus;                           /* in a row */
    uint32_t restart; /* MCUs from one restart marker to the next; 0: there are none */
};

/* Where a row of MCUs begins. */
struct jpeg_place {
    size_t at;                   /* in the scan's bytes */
    uint32_t bits;               /* of the byte there that belong to what is above; 0 to 7 */
    int32_t dc[JPEG_COMPONENTS]; /* what the next differences are added to */
};

struct jpeg_skim;
STK_CHECK stk_status jpeg_skim_new(struct jpeg_skim **out, struct stk_error *err);
void jpeg_skim_free(struct jpeg_skim *skim); /* NULL is fine */
uint64_t jpeg_skim_bytes(const struct jpeg_skim *skim);

/* How many large tables begin would have to make: they go on living from scan to scan. */
uint32_t jpeg_skim_missing(const struct jpeg_skim *skim, const struct jpeg_scan *scan);
/* The scan stays where it is while it is walked over. */
STK_CHECK int jpeg_skim_begin(struct jpeg_skim *skim, const struct jpeg_scan *scan);
/* Walks over rows of MCUs, and over the restart marker that follows them. */
STK_CHECK int jpeg_skim_rows(struct jpeg_skim *skim, uint32_t rows);
/* Where the walk is. Without restart markers the MCU that follows was looked at, too: the library
 * may read that one with more care than those in the middle of much data. */
STK_CHECK int jpeg_skim_place(const struct jpeg_skim *skim, struct jpeg_place *place);

/* Of a component of the scan. */
const struct jpeg_table *jpeg_skim_table(const struct jpeg_skim *skim, enum jpeg_kind kind,
                                         uint32_t component);

#endif
