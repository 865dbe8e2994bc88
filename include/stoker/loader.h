/* loader.h -- draws batches from an opened dataset.
 * Owns: its threads, queues and memory; a reference to the dataset.   Threads: one caller at a time
 * (a second gets STK_BUSY); batches may be released, and stats and cancel called, from any thread.
 * Errors: status, words in nullable *err.   Not here: the order (docs/order.md, loader/plan.h). */
#ifndef STOKER_LOADER_H
#define STOKER_LOADER_H

#include <stdint.h>

#include "stoker/dataset.h"

struct stk_loader;

enum stk_order {
    STK_ORDER_AUTO,       /* with shuffle: global; or local, where chunks must be decoded whole, and
                             where much data lies on the network (docs/order.md) */
    STK_ORDER_SEQUENTIAL, /* as stored */
    STK_ORDER_GLOBAL,     /* a true shuffle of all samples */
    STK_ORDER_LOCAL,      /* chunks shuffled, then samples within reach chunks */
    STK_ORDER_TIME        /* a series: by the time of the window's last row, then by entity */
};

enum stk_last {
    STK_LAST_AUTO,  /* SHORT on one rank, MASK on several */
    STK_LAST_SHORT, /* the last batch is smaller */
    STK_LAST_MASK,  /* full shapes, and a mask of what is real */
    STK_LAST_DROP   /* what does not fill a step is left out */
};

enum stk_bad_policy { STK_BAD_RAISE, STK_BAD_REPLACE };

enum stk_ragged {
    STK_RAGGED_ERROR, /* unequal shapes are an error that names both samples */
    STK_RAGGED_PAD,   /* the first axis is padded with zeros; lengths come beside */
    STK_RAGGED_LIST,  /* a tensor for each sample */
    STK_RAGGED_FLAT   /* all rows in one tensor, one sample behind the other; offsets come beside */
};

enum stk_io { STK_IO_AUTO, STK_IO_PREAD, STK_IO_URING };

/* Where batches are handed over. */
enum stk_device {
    STK_DEVICE_CPU,
    STK_DEVICE_CUDA, /* in the memory of a GPU */
    STK_DEVICE_AUTO  /* CUDA where there is a GPU; else the CPU, with a notice */
};

/* Whether the data itself lives on the device once it was there. */
enum stk_resident {
    STK_RESIDENT_NO,
    STK_RESIDENT_AUTO, /* when it can and fits */
    STK_RESIDENT_YES   /* refused with the reason when it cannot */
};

/* Who decodes JPEG for a device. The pixels of the two differ by a level or two. */
enum stk_decode {
    STK_DECODE_AUTO, /* both at once, each the share that its speed allows */
    STK_DECODE_CPU,
    STK_DECODE_GPU
};

/* What is done with the values of one field; see pipeline.h for the text. */
struct stk_field_chain {
    const char *field; /* by its name in the dataset */
    const char *chain;
};

/* All zero is a good default but for batch_size. */
struct stk_loader_options {
    uint32_t batch_size;        /* per rank; or */
    uint32_t global_batch_size; /* of all ranks together: the same global batches on any number */
    int shuffle;                /* not 0: order AUTO shuffles */
    enum stk_order order;
    uint32_t reach; /* LOCAL: chunks mixed at a time; 0: from the index */
    uint64_t seed;
    uint32_t rank, world_size; /* world_size 0 means 1 */
    enum stk_last last;
    enum stk_bad_policy bad;
    enum stk_ragged ragged;
    uint64_t memory;  /* byte budget; 0: 2 GiB */
    uint32_t threads; /* 0: the cores this process may use, shared with its local ranks */
    uint32_t local_rank, local_world_size; /* ranks on this machine; 0, 0: it is alone */
    uint32_t depth;                        /* batches in flight; 0: chosen */
    enum stk_io io;
    const double *weights; /* a weight a sample: drawn with replacement; NULL: each once */
    int no_pin;            /* not 0: worker threads are not placed on cores of their own */
    double stall_seconds;  /* a wait longer than this is told through the notice hook; 0: 30 */
    const char *trace;     /* write a Perfetto trace here on close; NULL: none */
    const struct stk_field_chain *transforms;
    uint32_t transform_count;
    /* Done with whole batches: "MixUp(alpha=0.2, classes=10, image=jpg, label=cls) | CutMix(...)".
     * The label becomes float32 (B, classes). NULL: none. */
    const char *batch_transforms;
    enum stk_device device;
    uint32_t device_number;
    /* Bytes on the device for batches made ahead and for resident data; 0: a gigabyte for batches
     * made ahead, and half of what is free for resident data. */
    uint64_t device_memory;
    enum stk_resident resident;
    enum stk_decode decode;
};

/* One field of a batch. */
struct stk_batch_field {
    const struct stk_field *field;
    enum stk_ragged layout;   /* ERROR: one dense tensor. PAD: tensor + lengths. LIST: items. FLAT:
                                 tensor + offsets */
    struct stk_tensor tensor; /* dense or padded: (B, ...) */
    const int64_t *lengths;   /* PAD: rows that are real; (B). Also where a chain pads (audio,
                                 points):   frames or points that are real, with layout ERROR */
    const int64_t *offsets;   /* FLAT: sample i has rows [offsets[i], offsets[i + 1]); (B + 1) */
    const struct stk_tensor *items; /* LIST: B tensors */
    const struct stk_bytes *bytes;  /* TEXT, JSON, BYTES: B runs; data NULL where missing */
    const uint8_t *present;         /* optional fields: (B) 0 or 1; else NULL */
};

/* B samples. Owned by the caller until released; the memory is reused after that. On a device
 * tensor, lengths, offsets, items' data, present and mask are there, and nothing of them may be
 * touched before stk_batch_use; bytes and samples are always the CPU's. */
struct stk_batch {
    uint64_t epoch, step;
    uint64_t end;   /* the epoch's position, in samples of all ranks, after this step */
    uint32_t count; /* places, masked ones included */
    uint32_t real;  /* samples that are not masked: the first `real` places */
    uint32_t field_count;
    const struct stk_batch_field *fields;
    const uint64_t *samples; /* number in the index of each place; STK_NOWHERE where masked */
    const uint8_t *mask;     /* last=MASK: (count) 0 or 1; else NULL */
    uint64_t bytes;          /* of data delivered */
    int32_t device;          /* number of the CUDA device; -1: the memory of the CPU */
};

struct stk_wait {
    double fetch, fill, ship, consumer; /* seconds: the caller waited for reads, for decoding, for
                                           the device; the loader was full and waited for the caller
                                         */
};

/* What a loader with a device has done there; all zero without one. */
struct stk_device_stats {
    char name[96];
    uint64_t held_bytes,
        peak_bytes; /* batches made ahead and resident data: within device_memory */
    uint64_t caller_bytes, caller_peak_bytes; /* in batches the caller has not released */
    uint64_t shipped_bytes;                   /* copied to the device */
    uint64_t pinned_bytes;                    /* of the CPU's memory, locked for copies */
    uint64_t pageable_batches; /* copied from memory that could not be locked: slowly */
    uint64_t resident_bytes, resident_samples; /* data that lives on the device by now */
    uint64_t resident_batches;                 /* made without the CPU's data */
    uint64_t gpu_decoded, cpu_decoded;         /* images */
    uint64_t decode_bytes; /* nvJPEG's memory and images it decoded: beside device_memory */
    double decode_share;   /* of images that are for the GPU's decoder: 0 to 1 */
};

struct stk_loader_stats {
    uint64_t samples, batches, bytes, bad;
    double seconds; /* since the first next of this loader */
    struct stk_wait waits;
    uint64_t held_bytes, peak_bytes;          /* by the loader itself: within the budget */
    uint64_t caller_bytes, caller_peak_bytes; /* in batches the caller has not released */
    uint64_t reads, merged_reads, mapped_copies, chunks_decoded;
    uint32_t threads;
    const char *io; /* "pread", "io_uring" or "network" */
    struct stk_device_stats device;
};

struct stk_quarantined {
    uint64_t sample, epoch;
    uint64_t substitute; /* the sample that took its place */
    struct stk_error error;
};

STK_API STK_CHECK stk_status stk_loader_open(struct stk_context *context,
                                             struct stk_dataset *dataset, struct stk_loader **out,
                                             const struct stk_loader_options *options,
                                             struct stk_error *err);
/* Stops the threads and joins them; batches still with the caller stay valid until released. */
STK_API void stk_loader_close(struct stk_loader *loader);

/* No epoch from this one on will be drawn: nothing of it is read ahead. Whoever draws from it all
 * the same waits for its first batch. Unless this is called, data on the network is not read ahead
 * beyond an epoch's end before the caller has drawn one to its end and begun another; files are
 * always. Not while another thread draws. */
STK_API void stk_loader_end_at(struct stk_loader *loader, uint64_t epoch);

/* Draws the next batch, waiting until one is ready.
 * STK_OK: *out is the caller's, to give to stk_batch_release.
 * STK_END: the epoch is over, *out is NULL; the next call begins another.
 * STK_CANCELLED: stk_loader_cancel was called; the next call goes on.
 * Else: *out is NULL; a bad sample (policy RAISE) or a failure. The position does not move: state
 * saved now resumes before the failed batch; only close, state and seek may follow. */
STK_API STK_CHECK stk_status stk_loader_next(struct stk_loader *loader, struct stk_batch **out,
                                             struct stk_error *err);
/* As next, but gives up after timeout_ns with STK_CANCELLED (Python looks for Ctrl-C then). */
STK_API STK_CHECK stk_status stk_loader_next_within(struct stk_loader *loader, int64_t timeout_ns,
                                                    struct stk_batch **out, struct stk_error *err);
STK_API void stk_batch_release(struct stk_batch *batch);
/* A batch on a device: what the stream (a CUstream; NULL is the default stream) is given from now
 * on waits until the batch is there, and its memory is not used again before what the stream holds
 * at release is done. Once for every stream that works on the batch. Any thread. STK_USAGE while
 * the stream is captured into a graph. Batches of the CPU: nothing happens. */
STK_API STK_CHECK stk_status stk_batch_use(struct stk_batch *batch, void *stream,
                                           struct stk_error *err);
/* The same for whichever batch of this loader holds the address; STK_NOT_FOUND: none does. */
STK_API STK_CHECK stk_status stk_loader_use(struct stk_loader *loader, const void *address,
                                            void *stream, struct stk_error *err);
/* Copies bytes of a batch, wherever it is, into the CPU's memory, and waits for them. */
STK_API STK_CHECK stk_status stk_batch_copy_out(struct stk_batch *batch, void *to, const void *from,
                                                uint64_t size, struct stk_error *err);
/* Wakes a waiting next; any thread. */
STK_API void stk_loader_cancel(struct stk_loader *loader);

/* Starts at `position` samples into `epoch`; what was read ahead is dropped. */
STK_API STK_CHECK stk_status stk_loader_seek(struct stk_loader *loader, uint64_t epoch,
                                             uint64_t position, struct stk_error *err);
/* Steps of a whole epoch, and those left from the current position: the same on every rank. */
STK_API uint64_t stk_loader_steps(const struct stk_loader *loader);
STK_API uint64_t stk_loader_steps_left(const struct stk_loader *loader);
/* Where the caller stands: epoch and position after the last batch it was given. */
STK_API void stk_loader_position(const struct stk_loader *loader, uint64_t *epoch,
                                 uint64_t *position);

/* State as JSON text, ended by NUL, at most cap bytes; *len is its length without the NUL. */
#define STK_STATE_CAP 1024
STK_API STK_CHECK stk_status stk_loader_save(const struct stk_loader *loader, char *text,
                                             size_t cap, size_t *len, struct stk_error *err);
/* Refuses a state of another dataset, version or order options with STK_MISMATCH. */
STK_API STK_CHECK stk_status stk_loader_load(struct stk_loader *loader, const char *text,
                                             struct stk_error *err);

/* One step of this rank, as next would give it. */
struct stk_peek {
    uint32_t count, real; /* places, and those that are not masked */
    uint64_t end;         /* where the following step begins */
};
/* The sample numbers of the step that begins at `position`, with no reading. samples: room for
 * stk_loader_capacity numbers; the first out->real are set. STK_END: the epoch is over there. */
STK_API STK_CHECK stk_status stk_loader_peek(struct stk_loader *loader, uint64_t epoch,
                                             uint64_t position, struct stk_peek *out,
                                             uint64_t *samples, struct stk_error *err);
/* Places in this rank's largest batch. */
STK_API uint32_t stk_loader_capacity(const struct stk_loader *loader);

STK_API void stk_loader_stats(struct stk_loader *loader, struct stk_loader_stats *stats);
/* Copies up to cap quarantined samples, oldest first; returns how many there are. */
STK_API uint64_t stk_loader_quarantine(struct stk_loader *loader, struct stk_quarantined *out,
                                       uint64_t cap);

#endif
