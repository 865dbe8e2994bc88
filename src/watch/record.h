/* record.h -- what watched processes tell `stoker run`: a ring in a shared file for each of them,
 * and the records in it. Written by the injected library (inject/) and by the Python hook
 * (inject/site, which spells the same numbers out; a test compares them). Read by ring_read.c.
 * Owns: nothing.   Threads: one writer and one reader a ring; head, lost and state are the
 * writer's, tail is the reader's.   Errors: none here; what does not fit is counted in `lost`,
 * never waited for.   Not here: what records mean together (attribution.h).
 *
 * A ring is the file "ring.PID.gpu" or "ring.PID.py" in the run's folder (STOKER_WATCH). It is made
 * under another name and renamed when its header is whole. After the header come `capacity` bytes,
 * a power of two. head and tail count bytes for ever; a record lies at offset & (capacity - 1),
 * aligned to 8, and never wraps: RECORD_FILLER leads to the end. The writer stores a record, then
 * head (release); the reader loads head (acquire), reads, then stores tail (release). A file
 * outlives its process, so a kill loses only what its process had not written yet.
 *
 * All times are nanoseconds of CLOCK_MONOTONIC, which is the same for all processes. */
#ifndef WATCH_RECORD_H
#define WATCH_RECORD_H

#include <stdint.h>

#define RING_MAGIC UINT64_C(0x31474e49524b5453) /* "STKRING1" */
#define RING_VERSION 1u
#define RING_HEADER 4096u

enum ring_kind { RING_GPU = 1, RING_PYTHON = 2 };
enum ring_state { RING_OPEN = 1, RING_CLOSED = 2 }; /* closed: its writer ended in order */

struct ring_header {
    uint64_t magic;
    uint32_t version, kind;
    uint64_t capacity;
    uint32_t pid, parent;
    uint64_t born; /* when the ring was made */
    uint8_t to_writer[24];
    uint64_t head; /* offset 64: stored by the writer after the record */
    uint64_t lost; /* records that had no room */
    uint64_t state;
    uint8_t to_reader[40];
    uint64_t tail; /* offset 128: stored by the reader */
    uint8_t rest[RING_HEADER - 136];
};

/* Every record begins so. */
struct record {
    uint16_t type;
    uint16_t flags;
    uint32_t size; /* with this, a multiple of 8 */
};

enum record_type {
    RECORD_FILLER = 0,
    /* of the injected library */
    RECORD_NAME = 1,    /* record_name: of a kernel; before the first record that uses it */
    RECORD_KERNEL = 2,  /* record_kernel */
    RECORD_COPY = 3,    /* record_copy: copies and clears */
    RECORD_SYNC = 4,    /* record_sync: a thread of the host waits for the device */
    RECORD_COST = 5,    /* record_cost: time that recording itself took */
    RECORD_GPU = 6,     /* record_gpu: what recording is doing */
    RECORD_LOST = 7,    /* record_lost */
    RECORD_REACHED = 8, /* record_reached: everything of this ring that ended before is there */
    /* of the Python hook */
    RECORD_PROCESS = 32, /* record_text: JSON, see process_keys in inject/site/stoker_watch */
    RECORD_LOADER = 33,  /* record_text: JSON, id is the loader's */
    RECORD_FRAME = 34,   /* record_frame: a node of the tree of calls */
    RECORD_SAMPLE = 35,  /* record_sample: where a thread was */
    RECORD_SPAN = 36,    /* record_span: something that began and ended */
    RECORD_MARK = 37,    /* record_mark: a moment */
    RECORD_QUEUE = 38,   /* record_queue: how full a loader's queues are */
    RECORD_FILES = 39,   /* record_text: JSON, which files were opened; sums since the start */
    RECORD_NOTICE = 40 /* record_text: a sentence for the report; id 1: makes the run unreliable */
};

struct record_text {
    struct record head;
    uint32_t id, len;
    char text[]; /* len bytes, UTF-8, no NUL */
};
#define record_name record_text

struct record_kernel {
    struct record head;
    uint64_t start, end;
    uint32_t device, stream;
    uint32_t name;  /* id of a RECORD_NAME */
    uint32_t graph; /* not 0: launched by a CUDA graph */
};

enum copy_way {
    COPY_TO_DEVICE = 1,
    COPY_TO_HOST = 2,
    COPY_ON_DEVICE = 8,
    COPY_CLEAR = 100,
    COPY_OTHER = 101
};
enum copy_memory {
    COPY_UNKNOWN = 0,
    COPY_PAGEABLE = 1,
    COPY_PINNED = 2,
    COPY_DEVICE = 3,
    COPY_MANAGED = 5
};
struct record_copy {
    struct record head;
    uint64_t start, end, bytes;
    uint32_t device, stream;
    uint8_t way, from, to, rest[5];
};

enum sync_what {
    SYNC_EVENT = 1,
    SYNC_STREAM_WAIT = 2,
    SYNC_STREAM = 3,
    SYNC_CONTEXT = 4
}; /* as CUPTI numbers them */
struct record_sync {
    struct record head;
    uint64_t start, end;
    uint32_t what, stream;
};

struct record_cost {
    struct record head;
    uint64_t start, end;
    uint32_t what, rest;
};

enum gpu_state {
    GPU_RECORDS = 1, /* from now on */
    GPU_YIELDS = 2,  /* to the script's own profiler, from now on */
    GPU_ENDS = 3,
    GPU_ABSENT = 4, /* words say why: there is no CUPTI, or it refuses */
    GPU_RESTS = 5   /* it has seen enough: more would cost the script too much */
};
struct record_gpu {
    struct record head;
    uint64_t time;
    uint32_t state, len;
    char text[];
};

struct record_lost {
    struct record head;
    uint64_t time, count;
    uint32_t why, rest; /* 1: CUPTI dropped them, 2: zero timestamps, 3: a graph without kernels */
};

struct record_reached {
    struct record head;
    uint64_t time;
};

/* A stack is a node: its function and line, called from the parent's. 0 is the root. */
/* flags of a frame */
enum frame_kind {
    FRAME_IS_SOURCE = 1 /* what a loop iterates over or indexes (a generator, __next__,
                           __getitem__), and no step of training is made in */
};
struct record_frame {
    struct record head;
    uint32_t id, parent;
    uint32_t line; /* that ran, not where the function begins */
    uint16_t function_len, file_len;
    char text[]; /* function, then file */
};

enum sample_thread { SAMPLE_MAIN = 1, SAMPLE_PIN = 2, SAMPLE_OTHER = 3, SAMPLE_OURS = 4 };
struct record_sample {
    struct record head;
    uint64_t time;   /* of the sample; it stands for [time - weight, time) */
    uint64_t weight; /* since the sample before */
    uint64_t cpu;    /* of weight, the time that the thread ran; all ones: not known */
    uint32_t thread; /* Linux tid */
    uint32_t kind;   /* sample_thread */
    uint32_t frame;  /* innermost */
    uint32_t rest;
};

/* a and b: the loader's id and the number of the batch, where there are such. flags: bit 0 see
 * SPAN_NEXT; bits 4 to 15 how much of it the thread ran: 1 + SPAN_CPU_WHOLE * cpu / (end - start),
 * 0: not known. */
#define SPAN_ENDED_EPOCH 1u
#define SPAN_CPU_SHIFT 4
#define SPAN_CPU_WHOLE 4000u
enum span_what {
    SPAN_ITER = 1,  /* a loader makes or resets its iterator; b: workers that it starts */
    SPAN_NEXT = 2,  /* the loop waits in next(); b: number of the batch in its epoch; flags 1: it
                       ended the epoch */
    SPAN_FETCH = 3, /* dataset[i] for a whole batch, in a worker or in the loop */
    SPAN_COLLATE = 4,
    SPAN_SEND = 5,        /* a worker hands its batch over: pickling and the queue */
    SPAN_IDLE = 6,        /* a worker waits for something to do */
    SPAN_PIN = 7,         /* the pin thread works on a batch */
    SPAN_CHECKPOINT = 8,  /* torch.save and its kin */
    SPAN_VALIDATION = 9,  /* from eval() to train() */
    SPAN_COLLECTIVE = 10, /* torch.distributed called by the main thread */
    SPAN_BACKWARD = 11,
    SPAN_OPTIMIZER = 12,
    SPAN_PROFILER = 13, /* the script's own torch.profiler records */
    SPAN_FORWARD = 14,  /* the outermost call of a module */
    SPAN_COMPILE = 15,  /* torch.compile at work */
    SPAN_STAGE = 16     /* one of Stoker's own stages; a: trace name */
};
struct record_span {
    struct record head;
    uint64_t start, end;
    uint32_t thread, what;
    uint64_t a, b;
};

enum mark_what {
    MARK_STEP = 1,  /* after optimizer.step(); a: number of the optimizer */
    MARK_EPOCH = 2, /* a loader began an epoch; a: loader, b: its number */
    MARK_EPOCH_END = 3,
    MARK_BATCH = 4,   /* a: loader, b: samples of the batch that was just handed out */
    MARK_END = 5,     /* the script is over: exit, exception */
    MARK_SAMPLED = 6, /* a: rate asked for, b: rate that was reached, in mHz */
    MARK_CUDA = 7,    /* torch has set CUDA up: the script uses it */
    MARK_MODULE = 8   /* a module of torch's was made: there is a model */
};
struct record_mark {
    struct record head;
    uint64_t time;
    uint32_t thread, what;
    uint64_t a, b;
};

/* As next() was called. -1: not known. */
struct record_queue {
    struct record head;
    uint64_t time;
    uint32_t loader;
    int32_t ready;       /* batches that are there and next in order */
    int32_t early;       /* that are there, but wait for one before them */
    int32_t unpinned;    /* that came from the workers and wait for the pin thread */
    int32_t outstanding; /* given to workers, not yet handed out */
    int32_t rest;
};

_Static_assert(sizeof(struct ring_header) == RING_HEADER, "the header is a page");
_Static_assert(sizeof(struct record_kernel) == 40 && sizeof(struct record_copy) == 48 &&
                   sizeof(struct record_sample) == 48 && sizeof(struct record_span) == 48 &&
                   sizeof(struct record_mark) == 40 && sizeof(struct record_queue) == 40,
               "records are laid out alike everywhere");

#endif
