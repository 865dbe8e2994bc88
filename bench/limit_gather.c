/* limit_gather.c -- what memory gives at most: records of one size, copied in random order out of a
 * mapped file into a ring that is used again and again.
 *
 *     limit_gather FILE RECORD_BYTES RING_BYTES THREADS SECONDS
 *
 * The order is drawn before the clock starts and lies in memory. Each thread sits on a core of its
 * own and takes spans of 1,024 records. Prints one JSON object. */
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "limit.h"

enum { SPAN = 1024, AHEAD = 16, MAX_THREADS = 256 };

struct run {
    const uint8_t *records;
    uint8_t *ring;
    uint32_t *order; /* written before the threads start */
    uint64_t count, record_bytes;
    uint64_t share;       /* spans of the ring that belong to each thread */
    atomic_ullong next;   /* the next span, counted over all passes */
    atomic_ullong copied; /* records */
    double end;           /* when to stop; written before the threads start */
};

struct copier {
    struct run *run;
    int number;
};

static void span_copy(const struct run *run, uint64_t span, uint64_t place)
{
    uint64_t spans = run->count / SPAN, size = run->record_bytes;
    const uint32_t *order = run->order + (span % spans) * SPAN;
    uint8_t *to = run->ring + place * SPAN * size;
    for (uint64_t i = 0; i < SPAN; i++) {
        if (i + AHEAD < SPAN)
            __builtin_prefetch(run->records + order[i + AHEAD] * size);
        if (size == 32) /* a size that is known is copied by two moves */
            memcpy(to + i * 32, run->records + (uint64_t)order[i] * 32, 32);
        else
            memcpy(to + i * size, run->records + order[i] * size, size);
    }
}

static void *copier_main(void *argument)
{
    struct copier *copier = argument;
    struct run *run = copier->run;
    sit_on_core(copier->number);
    uint64_t done = 0;
    while (seconds_now() < run->end) {
        uint64_t place = (uint64_t)copier->number * run->share + done % run->share;
        span_copy(run, atomic_fetch_add(&run->next, 1), place);
        done++;
    }
    atomic_fetch_add(&run->copied, done * SPAN);
    return NULL;
}

static void run_open(struct run *run, const char *path, uint64_t ring_bytes, uint64_t threads)
{
    struct stat file;
    int fd = open(path, O_RDONLY);
    if (fd < 0 || fstat(fd, &file))
        limit_fail(path);
    run->count = (uint64_t)file.st_size / run->record_bytes;
    if (run->count < SPAN) {
        errno = EINVAL;
        limit_fail("too few records");
    }
    run->records = mmap(NULL, (size_t)file.st_size, PROT_READ, MAP_SHARED | MAP_POPULATE, fd, 0);
    run->share = ring_bytes / (threads * SPAN * run->record_bytes) + 1;
    run->ring = calloc(run->share * threads, SPAN * run->record_bytes);
    run->order = malloc(run->count * sizeof(*run->order));
    if (run->records == MAP_FAILED || !run->ring || !run->order)
        limit_fail("memory");
    close(fd);
    for (uint64_t i = 0; i < run->count; i++) {
        uint64_t other = (((uint64_t)rand() << 31) ^ (uint64_t)rand()) % (i + 1);
        run->order[i] = run->order[other];
        run->order[other] = (uint32_t)i;
    }
}

static double copy_for(struct run *run, int threads, double seconds)
{
    pthread_t ids[MAX_THREADS];
    struct copier copiers[MAX_THREADS];
    double start = seconds_now();
    atomic_store(&run->copied, 0);
    run->end = start + seconds;
    for (int i = 0; i < threads; i++) {
        copiers[i] = (struct copier){run, i};
        if (pthread_create(&ids[i], NULL, copier_main, &copiers[i]))
            limit_fail("thread");
    }
    for (int i = 0; i < threads; i++)
        pthread_join(ids[i], NULL);
    return (double)atomic_load(&run->copied) / (seconds_now() - start);
}

int main(int argc, char **argv)
{
    if (argc != 6) {
        fprintf(stderr, "usage: limit_gather FILE RECORD_BYTES RING_BYTES THREADS SECONDS\n");
        return 2;
    }
    static struct run run;
    int threads = atoi(argv[4]);
    run.record_bytes = strtoull(argv[2], NULL, 10);
    if (threads < 1 || threads > MAX_THREADS || run.record_bytes == 0)
        return 2;
    run_open(&run, argv[1], strtoull(argv[3], NULL, 10), (uint64_t)threads);
    copy_for(&run, threads, 0.2); /* touches the map and the ring */
    double rate = copy_for(&run, threads, atof(argv[5]));
    printf("{\"value\": %.1f, \"samples_per_s\": %.1f, \"bytes_per_s\": %.1f, \"threads\": %d}\n",
           rate, rate, rate * (double)run.record_bytes, threads);
    return 0;
}
