/* simulator.h -- the inside of the simulated CUDA driver: its state and what its files ask of each
 * other.
 * Owns: struct simulator, the one for the process.   Threads: `lock` guards everything but what an
 * operation does while it runs; functions here are called with it held unless they say otherwise.
 * Errors: CUDA's numbers.   Not here: what tests may call (sim_cuda.h). */
#ifndef SIM_CUDA_SIMULATOR_H
#define SIM_CUDA_SIMULATOR_H

#include <pthread.h>
#include <stdint.h>

#include "gpu/cuda_api.h"
#include "sim_cuda.h"

enum {
    SIM_DEVICES = 8,
    SIM_ERROR_CAPTURE_INVALIDATED = 901,
    SIM_ERROR_CAPTURE_UNMATCHED = 903,
    SIM_ERROR_CAPTURE_UNJOINED = 904,
    SIM_ERROR_CAPTURE_ISOLATION = 905,
};

/* cuInit and all the others, as the driver's own. */
#define X(name, arguments) SIM_API int name arguments;
CUDA_API_LIST(X)
#undef X

struct cuda_context { /* a device and its primary context */
    int number;
    uint64_t retained;
    uint64_t allocated;
    int lost; /* the error that every call gives from now on */
    struct gpu_stream *legacy;
};

struct sim_range {
    uint64_t start, size;
    struct cuda_context *context;
};
struct sim_ranges { /* sorted, without overlap */
    struct sim_range *items;
    uint64_t count, capacity, bytes;
};

struct sim_operation {
    struct sim_operation *next;
    const char *name; /* of the driver's function */
    uint64_t sequence;
    void (*run)(struct sim_operation *operation); /* in the stream's thread, without the lock */
    struct gpu_stream *wait; /* first wait until its operation wait_sequence is over */
    uint64_t wait_sequence;
    uint64_t to, from, size; /* of copies */
    int to_device, from_device;
    uint8_t value;
    void (*function)(void *data);
    void *data; /* freed with the operation where free_data */
    int free_data;
    const struct sim_kernel *kernel;
    uint64_t width;
    uint32_t height;
    int backwards;
};

struct sim_capture {
    struct gpu_stream *origin;
    uint64_t number;
    uint64_t thread; /* that began it */
    int spoiled;
};

struct gpu_stream {
    struct gpu_stream *next;
    struct cuda_context *context;
    uint64_t number;
    uint64_t references; /* its handle, its thread, events and waits */
    int made;            /* by cuStreamCreateWithPriority */
    int closed;          /* no handle any more; its thread ends when the queue is empty */
    int blocking;        /* waits for the legacy stream and the other way round */
    struct sim_operation *first, *last;
    uint64_t issued, finished; /* sequence numbers */
    uint64_t random;
    pthread_cond_t arrived;
    uint64_t capture; /* number of the capture that it is in; 0: none */
    int joined;       /* the capture's origin waited for all that is in it */
};

struct gpu_event {
    struct gpu_event *next;
    struct cuda_context *context;
    struct gpu_stream *stream; /* NULL: never recorded */
    uint64_t sequence;
    uint64_t capture; /* not 0: recorded in that capture */
};

struct sim_fault {
    char name[64];
    uint64_t call; /* 0: none */
    int error;
};

struct simulator {
    pthread_mutex_t lock;
    pthread_cond_t progress; /* an operation is over */
    int initialised, forked;
    int devices, driver, refuse_ptx, report;
    uint64_t memory, seed, delay_us;
    struct cuda_context contexts[SIM_DEVICES];
    struct sim_ranges device_memory, host_memory;
    struct gpu_stream *streams;
    struct gpu_event *events;
    struct cuda_module *modules;
    uint64_t streams_begun, captures_begun;
    struct sim_capture capture; /* number 0: none */
    struct sim_fault fault;
    uint64_t calls, fault_calls;
    struct sim_cuda_counts counts;
};
extern struct simulator simulator;

/* --- calls: sim_faults.c ---------------------------------------------------------------------- */

enum {
    CALL_ANY = 0,     /* before cuInit too */
    CALL_DEVICE = 1,  /* after cuInit */
    CALL_CONTEXT = 3, /* with a current context */
    CALL_UNSAFE = 8,  /* forbidden while somebody captures */
    CALL_FREES = 16,  /* works even where it must answer an error */
};
struct sim_call {
    const char *name;
    struct cuda_context *context; /* the current one; NULL: none */
    int result;
    int fault; /* comes instead of the result of a call that frees */
};

/* Takes the lock and counts the call. 1: go on; 0: sim_leave at once. */
int sim_enter(struct sim_call *call, const char *name, unsigned needs);
int sim_leave(struct sim_call *call); /* gives the lock back */
int sim_is_lasting(int error);        /* a device with this error is lost */
/* One line on stderr. */
void sim_complain(const char *format, ...) __attribute__((format(printf, 1, 2)));
struct cuda_context *sim_current(void); /* the thread's; without the lock */

/* --- memory: sim_memory.c --------------------------------------------------------------------- */

/* The range that holds all of these bytes, or NULL. */
const struct sim_range *sim_find(const struct sim_ranges *ranges, uint64_t address, uint64_t size);
/* 0, or 700 with a complaint: a copy leaves device memory. */
int sim_check_operation(const struct sim_operation *operation);

/* --- streams: sim_stream.c -------------------------------------------------------------------- */

/* The stream behind a handle, NULL, 1 and 2 too; 400 or another error. */
int sim_stream_find(struct sim_call *call, struct gpu_stream *handle, struct gpu_stream **out);
struct gpu_stream *sim_stream_keep(struct gpu_stream *stream);
void sim_stream_release(struct gpu_stream *stream); /* NULL is fine */
/* Takes a copy. Where the stream is captured nothing runs. *sequence may be NULL. */
int sim_issue(struct gpu_stream *stream, const struct sim_operation *operation, uint64_t *sequence);
/* Waits, with the lock let go, until the operation is over. */
void sim_stream_wait(struct gpu_stream *stream, uint64_t sequence);
void sim_drain(void); /* all streams */
uint64_t sim_random(uint64_t *state);

/* --- captures: sim_capture.c ------------------------------------------------------------------ */

/* 0, or the error of a call that no thread may make while another captures; spoils the capture. */
int sim_capture_forbids(void);
int sim_capture_spoil(int error); /* answers error */
/* 0, or the error of using the stream in another way than for graphs. */
int sim_capture_check_sync(struct gpu_stream *stream);
int sim_capture_check_issue(struct gpu_stream *stream);
/* What cuStreamWaitEvent does where a capture is concerned. 1: nothing else is to be done, and
 * *error is the answer. */
int sim_capture_follow(struct gpu_stream *stream, struct gpu_event *event, int *error);

/* --- kernels: sim_module.c and what CMake writes -----------------------------------------------
 */

struct sim_kernel {
    const char *name;
    void (*run)(const void *job);
    uint64_t job_size;
};
extern const struct sim_kernel
    *const sim_kernel_lists[]; /* lists end with a NULL name; NULL ends */

#endif
