/* limit_cupti.c -- what CUPTI's records cost the thread that launches kernels, and the device: the
 * least that whoever records kernels takes.
 *
 *     limit_cupti NAME        one of the ways below; without a name they are listed
 *
 * For each line that it reads it prints what a launch takes on the CPU, in ns; so several of these
 * processes can take turns. At the end of its input it prints a JSON object: name, device_ns (of an
 * empty kernel when they follow each other), records, buffers, note. A way is a process of its own:
 * what CUPTI has switched on it may not switch off again. */
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include "limit_cupti.h"

enum {
    LAUNCHES = 400, /* that the device takes without making the CPU wait */
    WARMING = 80,   /* launches until the caches are those of this process again */
    STOP_ROUNDS = 200,
    STREAK = 20000, /* launches without a pause */
    CUPTI_FLUSH_PLAIN = 0,
    CUPTI_FLUSH_ALL = 1,
    ATTRIBUTE_HOST_PINNED = 8,
    ATTRIBUTE_PER_THREAD = 9,
};
#define SMALL_BYTES (64 << 10)
#define USUAL_BYTES (1 << 20)
#define LARGE_BYTES (8 << 20)

/* What a way has CUPTI do, besides the parts that it records. */
enum {
    OPENS = PARTS_END,
    CLOCK = PARTS_END << 1,
    CALLS = PARTS_END << 2,      /* launches of graphs are recorded, too */
    CALLS_ONCE = PARTS_END << 3, /* they were, for a moment */
    STOPS = PARTS_END << 4,      /* all of it ends before launches are measured */
    SMALL = PARTS_END << 5,      /* buffers */
    LARGE = PARTS_END << 6,
    FLUSHES = PARTS_END << 7,   /* a thread asks for records four times a second */
    FINALIZES = PARTS_END << 8, /* CUPTI lets go of the program before launches are measured */
    LATE = PARTS_END << 9,      /* CUPTI comes after the context and the kernel's code */
    PINNED = PARTS_END << 10,   /* the device writes times to the host's memory, not to its own */
    SHARED = PARTS_END << 11,   /* one buffer for all threads */
    BETWEEN = PARTS_END << 12,  /* CUPTI comes after the context, before the kernel's code */
    ALL = OPENS | KERNELS | COPIES | SYNCS | OVERHEADS | CLOCK | FLUSHES,
};

static const struct way {
    const char *name;
    unsigned what;
    const char *note;
} ways[] = {
    {"alone", 0, "without CUPTI"},
    {"opened", OPENS | CLOCK, "CUPTI is there and records nothing"},
    {"kernels", OPENS | KERNELS, "kernels alone, buffers of 1 MiB"},
    {"kernels_clock", OPENS | KERNELS | CLOCK, "with a clock of ours"},
    {"kernels_small", OPENS | KERNELS | SMALL, "buffers of 64 KiB"},
    {"kernels_large", OPENS | KERNELS | LARGE, "buffers of 8 MiB"},
    {"kernels_flushed", OPENS | KERNELS | FLUSHES, "records are asked for four times a second"},
    {"kernels_pinned", OPENS | KERNELS | PINNED, "the device writes times to the host's memory"},
    {"kernels_shared", OPENS | KERNELS | SHARED, "one buffer for all threads"},
    {"copies", OPENS | KERNELS | COPIES, "kernels, copies and clears"},
    {"syncs", OPENS | KERNELS | SYNCS, "kernels and synchronisations"},
    {"overheads", OPENS | KERNELS | OVERHEADS, "kernels and CUPTI's own overhead"},
    {"all", ALL, "what `stoker run` records"},
    {"calls", ALL | CALLS, "and calls that launch graphs"},
    {"calls_once", ALL | CALLS_ONCE, "such calls were recorded for 10 ms"},
    {"kernels_stopped", OPENS | KERNELS | STOPS, "kernels were recorded, and are not any more"},
    {"all_stopped", ALL | STOPS, "all was recorded, and is not any more"},
    {"calls_stopped", ALL | CALLS_ONCE | STOPS,
     "all and calls were recorded, and are not any more"},
    {"all_finalized", (ALL & ~FLUSHES) | STOPS | FINALIZES, "and cuptiFinalize was called"},
    {"kernels_between", OPENS | KERNELS | BETWEEN,
     "CUPTI came after the context, before the kernel's code"},
    {"kernels_late", OPENS | KERNELS | LATE, "CUPTI came after both"},
    {"all_between", ALL | BETWEEN, "what `stoker run` records, CUPTI came after the context"},
    {"all_late", ALL | LATE, "what `stoker run` records, CUPTI came after both"},
    {"all_late_stopped", ALL | LATE | STOPS, "and it is not recorded any more"},
    {"all_late_finalized", (ALL & ~FLUSHES) | LATE | STOPS | FINALIZES,
     "and cuptiFinalize was called"},
};

/* --- CUPTI ------------------------------------------------------------------------------------ */

static _Atomic int is_over;

static void attribute_set(int attribute, uint8_t value)
{
    int (*function)(int attribute, size_t *size, void *value) = NULL;
    *(void **)&function = dlsym(inject_find_cupti(), "cuptiActivitySetAttribute");
    if (!function || function(attribute, &(size_t){sizeof value}, &value))
        fprintf(stderr, "limit_cupti: attribute %d was refused\n", attribute);
}

static void pause_ms(long ms)
{
    nanosleep(&(struct timespec){.tv_nsec = ms * 1000000}, NULL);
}

static void *flush_now_and_then(void *unused)
{
    (void)unused;
    while (!atomic_load(&is_over)) {
        pause_ms(250);
        (void)cupti.flush_all(CUPTI_FLUSH_PLAIN);
    }
    return NULL;
}

static void cupti_begin(unsigned what)
{
    char words[CUPTI_WORDS];
    if (!(what & OPENS))
        return;
    if (cupti_open(&cupti, words)) {
        fprintf(stderr, "limit_cupti: %s\n", words);
        exit(1);
    }
    if (what & PINNED)
        attribute_set(ATTRIBUTE_HOST_PINNED, 1);
    if (what & SHARED)
        attribute_set(ATTRIBUTE_PER_THREAD, 0);
    buffer_bytes = what & SMALL ? SMALL_BYTES : what & LARGE ? LARGE_BYTES : USUAL_BYTES;
    if (what & CLOCK && cupti.register_clock)
        (void)cupti.register_clock(our_clock);
    (void)cupti.register_callbacks(give_buffer, take_buffer);
    if (cupti.enable_all_syncs)
        (void)cupti.enable_all_syncs(0);
    parts_set(what, cupti.enable);
    if (what & (CALLS | CALLS_ONCE))
        calls_set(1);
}

/* --- launches --------------------------------------------------------------------------------- */

/* A kernel that does nothing, for any device. */
static const char empty[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
                            ".visible .entry empty()\n{\n    ret;\n}\n";

static struct {
    int (*init)(unsigned flags);
    int (*retain)(void **context, int device);
    int (*use)(void *context);
    int (*load)(void **module, const void *image, unsigned count, int *options, void **values);
    int (*find)(void **kernel, void *module, const char *name);
    int (*launch)(void *kernel, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                  unsigned, void *stream, void **params, void **extra);
    int (*sync)(void *stream);
} cuda;

static void *wanted(void *library, const char *name)
{
    void *function = library ? dlsym(library, name) : NULL;
    if (!function) {
        fprintf(stderr, "limit_cupti: the driver has no %s\n", name);
        exit(1);
    }
    return function;
}

static void worked(int result, const char *what)
{
    if (!result)
        return;
    fprintf(stderr, "limit_cupti: %s: CUDA error %d\n", what, result);
    exit(1);
}

static void cuda_open(void)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
    *(void **)&cuda.init = wanted(library, "cuInit");
    *(void **)&cuda.retain = wanted(library, "cuDevicePrimaryCtxRetain");
    *(void **)&cuda.use = wanted(library, "cuCtxPushCurrent_v2");
    *(void **)&cuda.load = wanted(library, "cuModuleLoadDataEx");
    *(void **)&cuda.find = wanted(library, "cuModuleGetFunction");
    *(void **)&cuda.launch = wanted(library, "cuLaunchKernel");
    *(void **)&cuda.sync = wanted(library, "cuStreamSynchronize");
}

static void context_make(void)
{
    void *context;
    worked(cuda.init(0), "cuInit");
    worked(cuda.retain(&context, 0), "a context");
    worked(cuda.use(context), "a context");
}

static void *kernel_make(void)
{
    void *module, *kernel;
    worked(cuda.load(&module, empty, 0, NULL, NULL), "a module");
    worked(cuda.find(&kernel, module, "empty"), "a kernel");
    return kernel;
}

static void launch(void *kernel, int count)
{
    for (int i = 0; i < count; i++)
        worked(cuda.launch(kernel, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL), "a launch");
}

/* ns of a launch on the CPU. */
static double measure_launch(void *kernel)
{
    launch(kernel, WARMING);
    worked(cuda.sync(NULL), "a synchronisation");
    uint64_t start = inject_clock_now();
    launch(kernel, LAUNCHES);
    uint64_t end = inject_clock_now();
    worked(cuda.sync(NULL), "a synchronisation");
    return (double)(end - start) / LAUNCHES;
}

/* ns of a launch, device and all. */
static double measure_streak(void *kernel)
{
    uint64_t start = inject_clock_now();
    launch(kernel, STREAK);
    worked(cuda.sync(NULL), "a synchronisation");
    return (double)(inject_clock_now() - start) / STREAK;
}

static void measure(const struct way *way)
{
    pthread_t thread;
    cuda_open();
    if (!(way->what & (LATE | BETWEEN)))
        cupti_begin(way->what); /* before the driver, as an injected library does */
    context_make();
    if (way->what & BETWEEN)
        cupti_begin(way->what);
    void *kernel = kernel_make();
    if (way->what & LATE)
        cupti_begin(way->what);
    int flushes = way->what & FLUSHES && !pthread_create(&thread, NULL, flush_now_and_then, NULL);
    launch(kernel, LAUNCHES);
    worked(cuda.sync(NULL), "a synchronisation");
    pause_ms(10);
    if (way->what & CALLS_ONCE)
        calls_set(0);
    if (way->what & STOPS) {
        for (int i = 0; i < STOP_ROUNDS; i++)
            (void)measure_launch(kernel);
        parts_set(way->what, cupti.disable);
        (void)cupti.flush_all(CUPTI_FLUSH_ALL);
    }
    if (way->what & FINALIZES)
        finalize();
    (void)measure_streak(kernel);
    for (char line[16]; fgets(line, sizeof line, stdin);) {
        printf("%.1f\n", measure_launch(kernel));
        fflush(stdout);
    }
    double device = measure_streak(kernel);
    atomic_store(&is_over, 1);
    if (flushes)
        pthread_join(thread, NULL);
    if (way->what & OPENS && !(way->what & FINALIZES))
        (void)cupti.flush_all(CUPTI_FLUSH_ALL);
    printf("{\"name\": \"%s\", \"device_ns\": %.1f, \"records\": %llu, \"buffers\": %llu, "
           "\"note\": \"%s\"}\n",
           way->name, device, (unsigned long long)records, (unsigned long long)buffers, way->note);
}

int main(int count, char **words)
{
    int known = 0;
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        if (count < 2) {
            printf("%s\n", ways[i].name);
        } else if (!strcmp(words[1], ways[i].name)) {
            measure(&ways[i]);
            known = 1;
        }
    }
    if (count > 1 && !known)
        fprintf(stderr, "limit_cupti: there is no way %s\n", words[1]);
    return count > 1 && !known;
}
