/* box.h -- the memory of one batch: header, arrays and tensors in one mapping, used again and
 * again. Owns: a box belongs to a slot, then to the caller, then to the pool. The pool is counted:
 * it lives until the loader is closed and the last batch is released.   Threads: the pool has its
 * own lock; a box has one owner at a time.   Errors: NULL when memory is short.   Not here: when
 * boxes are taken (admit.h). */
#ifndef LOADER_BOX_H
#define LOADER_BOX_H

#include <pthread.h>
#include <stdint.h>

#include "stoker/loader.h"
#include "dataset/dataset_view.h"
#include "gpu/gpu.h"
#include "pipeline/pipeline.h"
#include "work/budget.h"

enum place {
    PLACE_DENSE, /* (count, ...) one tensor, every sample in its place */
    PLACE_BYTES, /* runs of bytes, one after the other */
    PLACE_LIST,  /* a tensor a sample, one after the other */
    PLACE_PAD,   /* as LIST at first; then padded into one tensor */
    PLACE_FLAT   /* as LIST at first; then all rows in one tensor */
};

/* How a field is laid out in every batch of a loader. */
struct field_layout {
    const struct dataset_field *field;
    enum place place;
    uint64_t item;           /* DENSE: bytes of one sample */
    struct stk_tensor shape; /* DENSE: of one sample; data NULL */
    /* Values go through a pipeline, from their stored bytes to their place. NULL: none */
    struct pipeline *pipeline;
    int straight;     /* stored pixels that the chain crops first: read from a map as they lie */
    int pads;         /* the chain may pad: lengths come beside */
    uint32_t classes; /* an int that becomes float32 (classes), 1 at its number; 0: stays an int */
    uint32_t side; /* bytes beside the batch a sample: the head before its payload, or a number in
                      ASCII; 0 for none */
    uint64_t side_at; /* where they begin in a slot's side memory */
    uint64_t full; /* DENSE tensors: stored bytes of a value that fills its place; else STK_NOWHERE
                    */
    /* Rows of a series that are gathered: */
    const struct window_gather *gather; /* NULL: taken as they lie */
    uint64_t rows;                      /* of a whole value */
    uint64_t row, to_row;               /* bytes of a stored row, and of one in the batch */
    uint64_t rows_at; /* where they are read to in a span's memory; STK_NOWHERE: into the place */
    /* With a device: */
    /* The chain that the device half is the end of: the pipeline, or one of which all is left to
     * the device, so that values are taken as they are stored. NULL: none */
    struct pipeline *cut;
    struct stk_tensor made; /* DENSE: of one sample once the device half has run; else `shape` */
    uint64_t made_item;     /* its bytes */
    uint32_t params;        /* bytes a sample for the device half; 0: there is none */
    int keeps_encoded; /* images that the device may decode: their stored bytes go into the field's
                          run of the box, and stay there until the batch was shipped */
    int resident;      /* values may come from the device's own copy: see resident.h */
};

struct layout {
    struct field_layout *fields;
    uint32_t field_count;
    uint32_t capacity;  /* places in the largest batch */
    uint64_t item;      /* bytes of one sample in dense fields */
    uint64_t side_size; /* of a slot's side memory */
    uint64_t rows; /* bytes of one sample in a span's memory: rows read before they are gathered */
    int optional;  /* some field may be missing */
    int gathers;   /* some field is gathered */
    int variable;  /* the lengths of stored values decide a box's size */
    int mask;
    uint32_t pipelines; /* fields that have one */
    int decodes;        /* some field is encoded media: a sample is much work */
    uint64_t encoded;   /* most stored bytes of one sample in fields with a pipeline */
    uint64_t decoded;   /* bytes of one sample while it is in the works, roughly */
    uint64_t mix;       /* bytes that transforms of batches need beside each */
    int device;         /* some work is left to a device */
    int aims;           /* some field has params but no pipeline: they are drawn alone */
};

/* Not 0: the lengths of the field's stored values decide a box's size. */
static inline int layout_runs(const struct field_layout *field)
{
    return field->keeps_encoded || (field->place != PLACE_DENSE && !field->pipeline);
}

/* What the variable fields of one batch need. */
struct box_need {
    uint64_t run;  /* bytes of all values, each rounded up to BOX_ALIGN */
    uint64_t most; /* PAD: the longest value */
};
#define BOX_ALIGN 64

static inline uint64_t box_round_up(uint64_t bytes)
{
    return (bytes + BOX_ALIGN - 1) & ~(uint64_t)(BOX_ALIGN - 1);
}

struct box_extra; /* memory beyond what was admitted: decoded values of their own shapes, or what
                     a substitute needed */

struct box {
    struct stk_batch batch; /* first: the caller's pointer is the box's */
    struct box_pool *pool;
    uint64_t size;           /* of the mapping */
    int pinned;              /* locked for copies to a device */
    struct box *next;        /* in the pool */
    struct box_extra *extra; /* under the pool's lock, as its size */
    uint64_t extra_size;
    /* for whoever fills it, by field */
    struct stk_batch_field *fields;
    uint8_t **runs; /* where the values of a variable field lie */
    /* With a device, by field; NULL where a field has none: */
    uint8_t **params; /* [count * layout->params] of the device half */
    uint64_t **home;  /* [count] where a value lies in the device's own copy of the data, in bytes;
                         STK_NOWHERE: it is in the box, and lands with it */
    uint64_t *samples;
    uint8_t *mask;
};

struct box_pool;

/* The dataset is kept until the pool is gone: batches name its fields. */
STK_CHECK stk_status box_pool_new(struct box_pool **out, struct stk_dataset *dataset,
                                  uint64_t limit, struct stk_error *err);
/* Boxes are locked in memory for copies to this device from now on; where that is refused they are
 * used as they are. */
void box_pool_pin(struct box_pool *pool, struct gpu *gpu);
uint64_t box_pool_pinned(struct box_pool *pool); /* bytes that are locked now */
/* The loader goes away: free boxes are unmapped now, the others as they are released. */
void box_pool_close(struct box_pool *pool);
/* Lets go of the boxes that nobody uses. */
void box_pool_trim(struct box_pool *pool);
struct budget *box_pool_budget(struct box_pool *pool);
void box_pool_caller(struct box_pool *pool, uint64_t *bytes, uint64_t *peak);

/* Bytes of a box for count places; UINT64_MAX: too many. need: one a field; NULL when no field is
 * variable. */
uint64_t box_size(const struct layout *layout, uint32_t count, const struct box_need *need);

enum box_urgency { BOX_IF_IT_FITS, BOX_ANYWAY };
/* A free box of at least that size, or a new one when the budget allows (or ANYWAY); boxes too
 * small make room. NULL: not now, or no memory at all. Its pointers are set by box_arrange. */
struct box *box_take(struct box_pool *pool, uint64_t size, enum box_urgency urgency);
void box_arrange(struct box *box, const struct layout *layout, uint32_t count,
                 const struct box_need *need);
/* Back to the pool, never shown to the caller. */
void box_give(struct box *box);
/* To the caller: no longer counted against the budget. */
void box_hand_over(struct box *box);

/* len bytes that live as long as the batch, counted over the budget if need be; NULL when memory is
 * short. */
void *box_extra(struct box *box, uint64_t len);

/* Internal arrays behind the caller's const pointers. */
static inline int64_t *box_lengths(const struct stk_batch_field *field)
{
    return (int64_t *)(uintptr_t)field->lengths;
}
static inline int64_t *box_offsets(const struct stk_batch_field *field)
{
    return (int64_t *)(uintptr_t)field->offsets;
}
static inline struct stk_tensor *box_items(const struct stk_batch_field *field)
{
    return (struct stk_tensor *)(uintptr_t)field->items;
}
static inline struct stk_bytes *box_bytes(const struct stk_batch_field *field)
{
    return (struct stk_bytes *)(uintptr_t)field->bytes;
}
static inline uint8_t *box_present(const struct stk_batch_field *field)
{
    return (uint8_t *)(uintptr_t)field->present;
}

#endif
