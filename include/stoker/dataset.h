/* dataset.h -- samples behind one index: open, look, subset, read one.
 * Owns: the index's map and the open objects. Counted: every _open, _split, _select and _keep gives
 * a reference of its own, each to be closed.   Threads: immutable once open; any number may read.
 * Errors: status, words in nullable *err.   Not here: batches and order (loader.h). */
#ifndef STOKER_DATASET_H
#define STOKER_DATASET_H

#include <stdint.h>

#include "stoker/bytes.h"
#include "stoker/context.h"
#include "stoker/media.h"
#include "stoker/tensor.h"

struct stk_dataset;

/* What a field's bytes are turned into. */
enum stk_kind {
    STK_KIND_AUTO,   /* by the field's name: npy -> tensor, cls -> int, txt -> text, json -> json,
                        jpg -> an image */
    STK_KIND_TENSOR, /* a tensor: npy, rows of an array, or decoded media (stk_field.media) */
    STK_KIND_INT,    /* a decimal number in ASCII -> int64 */
    STK_KIND_TEXT,   /* UTF-8 */
    STK_KIND_JSON,   /* UTF-8 holding JSON: handed on as bytes, parsed by the caller */
    STK_KIND_BYTES   /* as it is */
};

#define STK_DEFAULT UINT64_MAX /* as a number of rows: what the series' metadata says */

/* How a series is cut into samples. A sample is x, the `window` rows that end at some row t, and y,
 * the labels of the `horizon` rows that follow t and the gap. Samples run by entity, then by t. */
struct stk_window_options {
    uint64_t window;      /* rows of x */
    uint64_t horizon;     /* rows of y; 0: no y */
    uint64_t stride;      /* rows from one sample to the next */
    uint64_t gap;         /* rows between x and y */
    uint64_t min_history; /* least rows up to t, itself included; STK_DEFAULT: window, or 1 with
                             pad */
    int pad;           /* not 0: where history is shorter than window, zeros come before it, and the
                          field x_mask tells which rows are real */
    const char *split; /* NULL: all rows; a window never reaches over the border of its split */
    const char *const *features; /* columns of x, in this order; NULL: all */
    uint32_t feature_count;
    const char *const *labels; /* columns of y; NULL: as packed */
    uint32_t label_count;
};
#define STK_WINDOW_DEFAULTS                                                                        \
    {                                                                                              \
        .window = STK_DEFAULT, .horizon = STK_DEFAULT, .stride = STK_DEFAULT, .gap = STK_DEFAULT,  \
        .min_history = STK_DEFAULT                                                                 \
    }

/* "jpg" reads that field; "jpg;png" the first of them that a sample has; "txt?" may be missing;
 * "blob=tensor" overrides the kind (tensor, int, text, json, bytes, image, audio, video, points).
 */
struct stk_dataset_options {
    const char *const *fields; /* NULL: all that the index has, in its order */
    uint32_t field_count;
    const char *format;   /* NULL: found out. tar, npy, npz, raw, folder, series */
    const char *dtype;    /* raw: the type of one element */
    const int64_t *shape; /* raw: the shape of one sample */
    int32_t rank;         /* raw: length of shape */
    uint64_t chunk_limit; /* most bytes a compressed shard may decode to; 0: 1 GiB */
    const char *index; /* where to keep the index; NULL: beside the data, else the user's cache; of
                          data on the network: the user's cache */
    int reindex;       /* not 0: build it anew */
    const struct stk_window_options *window; /* series: NULL: all as the metadata says */
    /* Data on the network: a folder of this machine where what was fetched is kept, shared by all
     * its processes; "": none. NULL: what STOKER_CACHE says, else none. */
    const char *cache;
    uint64_t cache_size; /* most bytes it may take; 0: what STOKER_CACHE_SIZE says, else as it was
                            made, else a tenth of the disk */
    int share_index;     /* data on the network, not 0: the index is written beside it, too, where
                            that is allowed; a notice tells whether it was */
};

/* Fields of a series: x and y; x_mask where windows are padded; static where there are any. On
 * request, by their names in `fields`: entity (its number), start (the window's first row, counted
 * from the entity's first; below 0 where padded), time (of the window's last row), y_time (of y's
 * rows). */

struct stk_field {
    const char *name; /* as asked for: "jpg;png" */
    enum stk_kind kind;
    int optional;
    struct stk_tensor shape; /* TENSOR: as probed on the first sample that has it; data NULL */
    uint64_t max_length;     /* longest encoded value in bytes */
    enum stk_media media;    /* TENSOR: what its bytes are decoded from */
};

/* Where one field of one sample lies. */
struct stk_place {
    const char *object;      /* the stored object's path or URI; lives as long as the dataset */
    uint64_t offset, length; /* in the object; STK_NOWHERE when its chunk is compressed */
};

/* One decoded value: TENSOR and INT fill tensor; TEXT, JSON and BYTES fill bytes. */
struct stk_value {
    enum stk_kind kind;
    int present; /* 0: an optional field that this sample lacks */
    struct stk_tensor tensor;
    struct stk_bytes bytes;
};

/* Opens what sources name: paths, folders, globs, brace lists, URIs (file, http, https, s3, gs, az,
 * abfss). Builds the index when there is none, or when it is stale. */
STK_API STK_CHECK stk_status stk_dataset_open(struct stk_context *context, struct stk_dataset **out,
                                              const char *const *sources, uint32_t source_count,
                                              const struct stk_dataset_options *options,
                                              struct stk_error *err);
STK_API struct stk_dataset *stk_dataset_keep(struct stk_dataset *dataset);
STK_API void stk_dataset_close(struct stk_dataset *dataset);

STK_API uint64_t stk_dataset_samples(const struct stk_dataset *dataset);
STK_API uint32_t stk_dataset_field_count(const struct stk_dataset *dataset);
STK_API const struct stk_field *stk_dataset_field(const struct stk_dataset *dataset,
                                                  uint32_t field);
/* 0: no class folders */
STK_API uint32_t stk_dataset_class_count(const struct stk_dataset *dataset);
STK_API const char *stk_dataset_class(const struct stk_dataset *dataset, uint32_t number);
STK_API uint32_t stk_dataset_object_count(const struct stk_dataset *dataset);
/* Members that were passed over when indexing: links, devices, folders. */
STK_API uint64_t stk_dataset_skipped(const struct stk_dataset *dataset);
STK_API const char *stk_dataset_index_path(const struct stk_dataset *dataset);
/* 16 bytes: the same for the same samples in the same order, whatever machine indexed them. */
STK_API void stk_dataset_fingerprint(const struct stk_dataset *dataset, uint8_t out[16]);

/* The number in the whole index of the position-th sample of this (sub)set. */
STK_API STK_CHECK stk_status stk_dataset_sample(const struct stk_dataset *dataset,
                                                uint64_t position, uint64_t *sample,
                                                struct stk_error *err);
/* key is not ended by NUL; it lives as long as the dataset (the row number that is the key of an
 * array's row: until this thread's next call). */
STK_API STK_CHECK stk_status stk_dataset_key(const struct stk_dataset *dataset, uint64_t position,
                                             struct stk_bytes *key, struct stk_error *err);
/* The first position whose key is this: a walk over all of them. */
STK_API STK_CHECK stk_status stk_dataset_find(const struct stk_dataset *dataset, const char *key,
                                              uint64_t *position, struct stk_error *err);
/* STK_NOT_FOUND without touching *err's words when the sample lacks the field. */
STK_API STK_CHECK stk_status stk_dataset_place(const struct stk_dataset *dataset, uint64_t position,
                                               uint32_t field, struct stk_place *place,
                                               struct stk_error *err);

/* Reads and decodes one sample. values: one a field; what they point to is the reader's until its
 * next read. A reader is for one thread. */
struct stk_reader;
STK_API STK_CHECK stk_status stk_reader_new(struct stk_dataset *dataset, struct stk_reader **out,
                                            struct stk_error *err);
STK_API STK_CHECK stk_status stk_reader_read(struct stk_reader *reader, uint64_t position,
                                             struct stk_value *values, struct stk_error *err);
/* The bytes of one field, as stored; rows of a series that are gathered: as read gives them. */
STK_API STK_CHECK stk_status stk_reader_bytes(struct stk_reader *reader, uint64_t position,
                                              uint32_t field, struct stk_bytes *bytes,
                                              struct stk_error *err);
STK_API void stk_reader_free(struct stk_reader *reader);

/* Center and scale of columns: scaled = (raw - center) / scale. */
struct stk_scaler {
    const char *kind; /* "standard", "minmax", "robust", "none" */
    uint32_t count;
    const char *const *columns;
    const double *center, *scale;
};

/* What a series is made of, and how it was cut. Lives as long as the dataset. */
struct stk_series_info {
    uint64_t rows;           /* of the array */
    uint64_t entity_count;   /* all of them */
    uint64_t short_entities; /* too short for one window: they give no sample */
    uint64_t window, horizon, stride, gap, min_history;
    int pad, late;
    const char *split; /* NULL: all rows */
    uint32_t split_count;
    const char *const *splits;
    const char *time_unit; /* "s", "ms", "us", "ns", "d"; "" for plain numbers; NULL: no time */
    struct stk_scaler features; /* columns of x */
    struct stk_scaler labels;   /* columns of y */
    uint32_t static_count;
    const char *const *statics;
};
/* NULL: it is no series. */
STK_API const struct stk_series_info *stk_dataset_series(const struct stk_dataset *dataset);
/* One entity: its name and its rows in the array. The name lives as long as the dataset. */
STK_API STK_CHECK stk_status stk_dataset_entity(const struct stk_dataset *dataset, uint64_t number,
                                                const char **name, uint64_t *start, uint64_t *end,
                                                struct stk_error *err);

/* Subsets. The result is a dataset of its own over the same index. */
/* Part number `part` of a seeded random split into part_count shares (they add up to at most 1). */
STK_API STK_CHECK stk_status stk_dataset_split(struct stk_dataset *dataset,
                                               struct stk_dataset **out, const double *shares,
                                               uint32_t part_count, uint32_t part, uint64_t seed,
                                               struct stk_error *err);
/* These positions, in this order; sorted and unique ones take one bit a sample. */
STK_API STK_CHECK stk_status stk_dataset_select(struct stk_dataset *dataset,
                                                struct stk_dataset **out, const uint64_t *positions,
                                                uint64_t count, struct stk_error *err);
/* `count` positions, from `first` on: no memory, however many. */
STK_API STK_CHECK stk_status stk_dataset_range(struct stk_dataset *dataset,
                                               struct stk_dataset **out, uint64_t first,
                                               uint64_t count, struct stk_error *err);

/* What `stoker index` shows and `stoker verify` finds. */
struct stk_bad {
    uint64_t sample;
    struct stk_error error;
};
/* Reads and decodes every field of every sample and checks the index's blocks; calls bad for each
 * sample that fails. threads 0: one a core. STK_OK even when some were bad: *bad_count says. */
STK_API STK_CHECK stk_status stk_dataset_verify(struct stk_dataset *dataset, uint32_t threads,
                                                void (*bad)(void *user, const struct stk_bad *bad),
                                                void *user, uint64_t *bad_count,
                                                struct stk_error *err);

#endif
