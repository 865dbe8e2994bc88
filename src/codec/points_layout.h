/* points_layout.h -- how the points of one file lie in its bytes: what its header comes to.
 * Owns: nothing.   Threads: any.   Errors: status, words.   Not here: the calls for others
 * (points_codec.h). */
#ifndef CODEC_POINTS_LAYOUT_H
#define CODEC_POINTS_LAYOUT_H

#include "stoker/bytes.h"
#include "stoker/error.h"

#define POINTS_COLUMNS 512              /* most of them */
#define POINTS_WORDS 4096               /* most words of a line */
#define POINTS_HEADER_CAP (64u * 1024u) /* bytes of a header that is text */
#define POINTS_COUNT_CAP UINT32_MAX     /* points: rows are numbered by uint32_t */
#define POINTS_LITTLE (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__)

enum points_type {
    POINTS_F32,
    POINTS_F64,
    POINTS_F16,
    POINTS_I8,
    POINTS_U8,
    POINTS_I16,
    POINTS_U16,
    POINTS_I32,
    POINTS_U32,
    POINTS_I64,
    POINTS_U64
};

enum points_coding {
    POINTS_BINARY, /* row r of a column lies at data + offset + r * stride */
    POINTS_PACKED, /* the same, in what LZF unpacks */
    POINTS_TEXT    /* a point a line; offset is the number of the word */
};

struct points_column {
    uint64_t offset;
    uint32_t stride;
    enum points_type type;
};

struct points_layout {
    const char *format;
    enum points_coding coding;
    int swap;          /* stored in the other byte order than this machine's */
    uint64_t count;    /* points */
    uint64_t data;     /* offset of the first */
    uint64_t packed;   /* PACKED: bytes from data on ... */
    uint64_t unpacked; /* ... and what they become */
    uint32_t words;    /* TEXT: of a line */
    uint64_t skip;     /* TEXT: lines before the first point */
    int exact;         /* TEXT: no line may follow the points */
    uint32_t columns;
    struct points_column column[POINTS_COLUMNS];
    uint32_t named[3]; /* x, y, z: number of their column + 1; 0: none */
};

/* Adds a column in stored order; a name of x, y or z is kept in mind. */
STK_CHECK stk_status points_layout_add(struct points_layout *layout, const char *name,
                                       size_t name_len, const struct points_column *column,
                                       struct stk_error *err);
/* Moves x, y and z to the front; the others keep their order. */
void points_layout_order(struct points_layout *layout);
/* The points lie in the bytes, record by record. */
STK_CHECK stk_status points_layout_fits(const struct points_layout *layout, uint64_t record,
                                        uint64_t total, struct stk_error *err);

/* The headers; *layout is zeroed. Sizes are checked against the bytes, lines are not counted. */
STK_CHECK stk_status pcd_layout(struct points_layout *layout, const struct stk_bytes *bytes,
                                struct stk_error *err);
STK_CHECK stk_status ply_layout(struct points_layout *layout, const struct stk_bytes *bytes,
                                struct stk_error *err);
int pcd_sniff(const struct stk_bytes *bytes);
int ply_sniff(const struct stk_bytes *bytes);

#endif
