/* inject_cupti.h -- the part of CUPTI that the injected library calls, and the part of its records
 * that it reads. Only the activity functions: cuptiSubscribe is never called, for there is one
 * subscriber in a process and PyTorch's profiler is it.
 * Owns: the library, until the process ends.   Threads: any.   Errors: words.   Not here: what is
 * made of the records (inject_sink.h), where the library lies (inject_find.h). */
#ifndef INJECT_CUPTI_H
#define INJECT_CUPTI_H

#include <stddef.h>
#include <stdint.h>

/* Kinds of records, as CUPTI numbers them. */
enum cupti_kind {
    KIND_COPY = 1,
    KIND_CLEAR = 2,
    KIND_KERNEL_ALONE = 3, /* never enabled: kernels would run one after the other */
    KIND_DRIVER = 4,       /* never enabled: a record for each call of the driver */
    KIND_KERNEL = 10,
    KIND_OVERHEAD = 17,
    KIND_COPY_BETWEEN = 22, /* from device to device */
    KIND_SYNC = 38,
    KIND_GRAPH = 51,       /* a whole graph without its kernels; never enabled by us */
    KIND_DEVICE_GRAPH = 53 /* the same, launched by the device */
};

/* Results. */
enum {
    CUPTI_NOT_INITIALIZED = 15,
    CUPTI_NOT_PRIVILEGED = 35,
    CUPTI_OTHER_TOOL = 39,
    CUPTI_NOT_THERE_VIRTUAL = 40
};

/* Kinds of overhead that CUPTI puts on the thread that launches. Others are the program's own
 * (compiling, lazy loading) or happen on a thread of CUPTI's (flushing). */
enum {
    OVERHEAD_INSTRUMENTATION = 2 << 16,
    OVERHEAD_RESOURCE = 3 << 16,
    OVERHEAD_REQUEST = 7 << 16
};

/* The leading fields, alike in CUPTI 12.0 to 13.4 (kernel records 8 to 13, copies 5 to 7, copies
 * between devices 4, clears 4 and 5, synchronisations 1 and 2, overheads 1 to 3, graphs 1 and 2):
 * newer records only add at the end. inject_cupti.c pins the offsets. */
struct cupti_record {
    uint32_t kind;
};
struct cupti_kernel {
    uint32_t kind;
    uint8_t shape[12];
    uint64_t start, end, completed;
    uint32_t device, context, stream;
    uint8_t launch[40];
    uint32_t correlation;
    uint8_t grid[8];
    const char *name;
    uint8_t rest[32];
    uint64_t graph_node;
    uint32_t cache;
    uint32_t graph;
};
struct cupti_copy { /* clears too: then the three small fields are their value */
    uint32_t kind;
    uint8_t way, from, to, flags;
    uint64_t bytes;
    uint64_t start, end;
    uint32_t device, context, stream;
    /* not in a copy between devices: */
    uint32_t correlation;
    uint8_t rest[16];
    uint64_t graph_node;
};
struct cupti_sync {
    uint32_t kind, what;
    uint64_t start, end;
    uint32_t correlation, context, stream;
};
struct cupti_overhead {
    uint32_t kind, what, object_kind;
    uint8_t object[12];
    uint64_t start, end;
};

typedef void cupti_request_function(uint8_t **buffer, size_t *size, size_t *most_records);
typedef void cupti_complete_function(void *context, uint32_t stream, uint8_t *buffer, size_t size,
                                     size_t valid);
typedef uint64_t cupti_clock_function(void);

/* All return 0 when it worked. The last two may be NULL: older versions lack them. */
struct cupti_table {
    int (*get_version)(uint32_t *version);
    int (*get_timestamp)(uint64_t *nanoseconds);
    int (*get_words)(int result, const char **words);
    int (*register_callbacks)(cupti_request_function *request, cupti_complete_function *complete);
    int (*enable)(int kind);
    int (*disable)(int kind);
    int (*flush_all)(uint32_t flag);
    int (*next_record)(uint8_t *buffer, size_t valid, struct cupti_record **record);
    int (*get_dropped)(void *context, uint32_t stream, size_t *count);
    int (*register_clock)(cupti_clock_function *clock);
    int (*enable_all_syncs)(uint8_t enable);
};

enum { CUPTI_WORDS = 320 };

/* Fills the table from the library. 0, or -1 with a sentence in words. */
int cupti_open(struct cupti_table *table, char words[CUPTI_WORDS]);
/* "13.0", "12.9", "": for the report. */
void cupti_version(const struct cupti_table *table, char *text, size_t size);
/* A sentence about a refusal, with what to do about it. */
void cupti_refusal(const struct cupti_table *table, int result, const char *doing,
                   char words[CUPTI_WORDS]);

#endif
