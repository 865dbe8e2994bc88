/* series_meta.h -- what metadata.json of a series says, read and written in one place.
 * Owns: all that it points to, until series_meta_reset.   Threads: one at a time; then immutable.
 * Errors: STK_CORRUPT with words that name the key, for a file edited into nonsense;
 * STK_UNSUPPORTED for another version.   Not here: the array (dataset/series_open.h reads, pack/
 * writes it).
 *
 * The file's keys are listed in docs/series.md. Folders made by hand with numpy need only features
 * and entities; dtype is float32 unless said. */
#ifndef FORMAT_SERIES_META_H
#define FORMAT_SERIES_META_H

#include "stoker/tensor.h"
#include "transform/scaler.h"

#define SERIES_METADATA "metadata.json"
#define SERIES_ARRAY "all_features.mmap"
#define SERIES_TIME "time.mmap"     /* int64 a row */
#define SERIES_STATIC "static.mmap" /* float32 (entities, statics) */
#define SERIES_HASHES                                                                              \
    "all_features.hash" /* uint64 a block: hash_bytes(block, its length, its number) */
#define SERIES_SCALER "scaler.json"
#define SERIES_JOURNAL                                                                             \
    "append.json" /* there while rows are being added: what the array had before */
#define SERIES_BLOCK (UINT64_C(1) << 20) /* bytes of the array that one hash covers */
#define SERIES_MAX_SPLITS 8
#define SERIES_MAX_COLUMNS 4096

struct series_range {
    uint64_t start, end; /* rows of the array */
};

struct series_entity {
    char *name;
    uint64_t start, end; /* rows of the array */
};

/* A column of codes: value i is written as the number i. */
struct series_category {
    char *column;
    char **values;
    uint32_t count;
};

struct series_sequence {
    uint64_t window, horizon, stride, gap;
};

struct series_meta {
    enum stk_dtype dtype;
    uint64_t rows;
    char **columns; /* of the array: the features, then labels that are none */
    uint32_t column_count, feature_count;
    uint32_t *labels; /* numbers of columns */
    uint32_t label_count;
    char **statics;
    uint32_t static_count;
    struct series_category *categories; /* of columns and statics */
    uint32_t category_count;
    char *entity_column, *time_column; /* NULL: none */
    char *time_unit;                   /* "s", "ms", "us", "ns", "d"; "" for plain numbers */
    char *time_zone;                   /* NULL: none */
    struct series_sequence sequence;
    struct series_entity *entities;
    uint64_t entity_count;
    /* splits: ranges[entity * split_count + split] */
    char *split_text; /* as asked for: "0.8,0.1,0.1"; NULL: none */
    char *split_names[SERIES_MAX_SPLITS];
    uint32_t split_count;
    int64_t cuts[SERIES_MAX_SPLITS]; /* by time: where part i + 1 begins, in the time's unit */
    int split_by_time;
    struct series_range *ranges;
    int late;                           /* the array holds raw values */
    struct scaler scaler;               /* of all columns; count 0: none is known */
    char *missing_policy;               /* "error", ... */
    uint64_t *missing;                  /* of each column: values that were missing */
    uint64_t dropped_rows, unused_rows; /* unused: rows of the array that belong to no entity */
    char *fit_on;                       /* in words of the option; NULL: all rows */
    int has_hashes;
    uint8_t fingerprint[16]; /* zero: not known (made by hand) */
};

void series_meta_reset(struct series_meta *meta); /* zeroed and half-built are fine */

/* text: the file's bytes. path: for messages. Checked: every number, name and range (entities
 * inside rows, not overlapping; splits inside entities; unique names; at least one feature). */
STK_CHECK stk_status series_meta_parse(struct series_meta *meta, const char *text, size_t len,
                                       const char *path, struct stk_error *err);
/* The file's bytes; text.failed when memory ran out. */
void series_meta_write(const struct series_meta *meta, struct text *text);
/* Reads folder/metadata.json (at most 1 GiB) and parses it. */
STK_CHECK stk_status series_meta_load(struct series_meta *meta, const char *folder,
                                      struct stk_error *err);

/* The journal: rows the array had before an append began. */
void series_journal_write(uint64_t rows, struct text *text);
/* STK_NOT_FOUND: there is none. */
STK_CHECK stk_status series_journal_load(uint64_t *rows, const char *folder, struct stk_error *err);

#endif
