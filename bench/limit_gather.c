/* limit_gather.c -- what memory gives at most: windows of rows that begin anywhere, copied in
 * random order out of a mapped array into a ring that is used again and again. A window of one row
 * is a record.
 *
 *     limit_gather FILE ROW_BYTES WINDOW_ROWS BATCH RING_BYTES THREADS SECONDS
 *
 * The order is drawn before the clock starts and lies in memory. Each thread sits on a core of its
 * own and takes batches. Prints one JSON object. */
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "limit.h"

enum { AHEAD_FEW = 4, AHEAD_MANY = 16, MAX_THREADS = 256, LINE = 64, RECORD = 32 };

struct run {
    const uint8_t *rows;
    uint8_t *ring;
    uint32_t *order; /* first rows; written before the threads start */
    uint64_t count;  /* windows of the order, a whole number of batches */
    uint64_t row_bytes, window_bytes, batch;
    uint64_t share;       /* batches of the ring that belong to each thread */
    atomic_ullong next;   /* the next batch, counted over all passes */
    atomic_ullong copied; /* windows */
    double end;           /* when to stop; written before the threads start */
};

struct copier {
    struct run *run;
    int number;
};

static void batch_copy(const struct run *run, uint64_t number, uint64_t place)
{
    const uint32_t *order = run->order + number % (run->count / run->batch) * run->batch;
    uint8_t *to = run->ring + place * run->batch * run->window_bytes;
    uint64_t ahead = run->window_bytes > LINE ? AHEAD_FEW : AHEAD_MANY;
    for (uint64_t i = 0; i < run->batch; i++) {
        if (i + ahead < run->batch) { /* the rest of a window the processor fetches by itself */
            const uint8_t *soon = run->rows + order[i + ahead] * run->row_bytes;
            __builtin_prefetch(soon);
            if (run->window_bytes > LINE)
                __builtin_prefetch(soon + LINE);
        }
        const uint8_t *from = run->rows + order[i] * run->row_bytes;
        if (run->window_bytes == RECORD) /* a size that is known is copied by two moves */
            memcpy(to + i * RECORD, from, RECORD);
        else
            memcpy(to + i * run->window_bytes, from, run->window_bytes);
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
        batch_copy(run, atomic_fetch_add(&run->next, 1), place);
        done++;
    }
    atomic_fetch_add(&run->copied, done * run->batch);
    return NULL;
}

static void run_open(struct run *run, const char *path, uint64_t ring_bytes, uint64_t threads)
{
    struct stat file;
    int fd = open(path, O_RDONLY);
    if (fd < 0 || fstat(fd, &file))
        limit_fail(path);
    uint64_t rows = (uint64_t)file.st_size / run->row_bytes;
    uint64_t starts = rows - run->window_bytes / run->row_bytes + 1;
    if ((uint64_t)file.st_size < run->window_bytes || starts < run->batch || rows > UINT32_MAX) {
        errno = EINVAL;
        limit_fail("too few or too many rows");
    }
    run->count = starts / run->batch * run->batch;
    run->rows = mmap(NULL, (size_t)file.st_size, PROT_READ, MAP_SHARED | MAP_POPULATE, fd, 0);
    run->share = ring_bytes / (threads * run->batch * run->window_bytes);
    run->share = run->share ? run->share : 1;
    run->ring = calloc(run->share * threads, run->batch * run->window_bytes);
    run->order = malloc(starts * sizeof(*run->order));
    if (run->rows == MAP_FAILED || !run->ring || !run->order)
        limit_fail("memory");
    close(fd);
    for (uint64_t i = 0; i < starts; i++) {
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
    if (argc != 8) {
        fprintf(stderr, "usage: limit_gather FILE ROW_BYTES WINDOW_ROWS BATCH RING_BYTES "
                        "THREADS SECONDS\n");
        return 2;
    }
    static struct run run;
    int threads = atoi(argv[6]);
    run.row_bytes = strtoull(argv[2], NULL, 10);
    run.window_bytes = run.row_bytes * strtoull(argv[3], NULL, 10);
    run.batch = strtoull(argv[4], NULL, 10);
    if (threads < 1 || threads > MAX_THREADS || run.window_bytes == 0 || run.batch == 0)
        return 2;
    run_open(&run, argv[1], strtoull(argv[5], NULL, 10), (uint64_t)threads);
    copy_for(&run, threads, 0.2); /* touches the map and the ring */
    double rate = copy_for(&run, threads, atof(argv[7]));
    printf("{\"value\": %.1f, \"samples_per_s\": %.1f, \"batches_per_s\": %.1f, "
           "\"bytes_per_s\": %.1f, \"threads\": %d}\n",
           rate, rate, rate / (double)run.batch, rate * (double)run.window_bytes, threads);
    return 0;
}
