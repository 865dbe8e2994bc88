/* limit_pread.c -- what the page cache gives at most: extents, in random order, read by pread into
 * a ring that is used again and again; or copied there from maps, past the caches.
 *
 *     limit_pread EXTENTS RING_BYTES THREADS SECONDS [stored|map]
 *
 * EXTENTS is a text file with a line "offset length path" for each sample; the path is
 * relative to its own folder. Each thread sits on a core of its own, takes the next sample of the
 * order and reads it into the next place of the ring. The order is drawn anew for each pass, or is
 * the stored one. Prints one JSON object. */
#include <fcntl.h>
#include <libgen.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/copy.h"

#include "limit.h"

enum { MAX_THREADS = 256, PATH_CAP = 4096 };

struct extent {
    int fd;
    const uint8_t *map; /* of its file; NULL: it is read */
    uint64_t offset, length;
};

struct run {
    struct extent *extents;
    uint32_t *order; /* drawn by the main thread between passes */
    uint32_t count;
    uint32_t share; /* places of the ring that belong to each thread */
    uint64_t place_bytes, ring_bytes;
    uint8_t *ring;
    atomic_uint next; /* the next place in order[] */
    atomic_ullong read_bytes;
    atomic_int stop; /* set before the last barrier */
    pthread_barrier_t barrier;
    int threads, stored, mapped;
};

struct reader {
    struct run *run;
    int number;
};

static double seconds_of_cpu(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           1e-6 * (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

/* The whole file, its pages at hand. */
static const uint8_t *file_map(int fd, const char *name)
{
    off_t size = lseek(fd, 0, SEEK_END);
    void *map = mmap(NULL, (size_t)size, PROT_READ, MAP_SHARED | MAP_POPULATE, fd, 0);
    if (map == MAP_FAILED)
        limit_fail(name);
    return map;
}

/* Consecutive lines often name one file: it is opened once. */
static void extents_load(struct run *run, const char *path)
{
    FILE *file = fopen(path, "r");
    char folder[PATH_CAP];
    if (!file || strlen(path) >= sizeof(folder))
        limit_fail(path);
    if (chdir(dirname(strcpy(folder, path))))
        limit_fail(folder);
    char name[PATH_CAP], last[PATH_CAP] = "";
    unsigned long long offset, length;
    uint32_t room = 0;
    int fd = -1;
    const uint8_t *map = NULL;
    while (fscanf(file, "%llu %llu %4095[^\n]", &offset, &length, name) == 3) {
        if (strcmp(name, last) != 0) {
            fd = open(name, O_RDONLY);
            if (fd < 0)
                limit_fail(name);
            map = run->mapped ? file_map(fd, name) : NULL;
            strcpy(last, name);
        }
        if (run->count == room) {
            room = room ? 2 * room : 1024;
            run->extents = realloc(run->extents, room * sizeof(*run->extents));
            if (!run->extents)
                limit_fail("memory");
        }
        run->extents[run->count++] = (struct extent){fd, map, offset, length};
        if (length > run->place_bytes)
            run->place_bytes = (length + 63) & ~UINT64_C(63);
    }
    fclose(file);
}

static void order_draw(struct run *run)
{
    for (uint32_t i = 0; i < run->count; i++)
        run->order[i] = i;
    for (uint32_t i = run->stored ? 0 : run->count; i > 1; i--) {
        uint32_t other = (uint32_t)(((uint64_t)rand() * i) / ((uint64_t)RAND_MAX + 1));
        uint32_t kept = run->order[i - 1];
        run->order[i - 1] = run->order[other];
        run->order[other] = kept;
    }
}

static void read_all(const struct extent *extent, uint8_t *to)
{
    uint64_t done = 0;
    if (extent->map) {
        copy_past_caches(to, extent->map + extent->offset, extent->length);
        return;
    }
    while (done < extent->length) {
        ssize_t got =
            pread(extent->fd, to + done, extent->length - done, (off_t)(extent->offset + done));
        if (got <= 0)
            limit_fail("pread");
        done += (uint64_t)got;
    }
}

static void *reader_main(void *argument)
{
    struct reader *reader = argument;
    struct run *run = reader->run;
    sit_on_core(reader->number);
    for (;;) {
        pthread_barrier_wait(&run->barrier); /* the order is ready */
        if (atomic_load(&run->stop))
            return NULL;
        uint32_t place;
        uint64_t bytes = 0, done = 0;
        uint64_t first = (uint64_t)reader->number * run->share;
        while ((place = atomic_fetch_add(&run->next, 1)) < run->count) {
            const struct extent *extent = &run->extents[run->order[place]];
            read_all(extent, run->ring + (first + done++ % run->share) * run->place_bytes);
            bytes += extent->length;
        }
        atomic_fetch_add(&run->read_bytes, bytes);
        pthread_barrier_wait(&run->barrier); /* the pass is over */
    }
}

static void pass(struct run *run)
{
    order_draw(run);
    atomic_store(&run->next, 0);
    pthread_barrier_wait(&run->barrier);
    pthread_barrier_wait(&run->barrier);
}

static void run_open(struct run *run, const char *extents, uint64_t ring_bytes)
{
    extents_load(run, extents);
    if (run->count == 0) {
        errno = EINVAL;
        limit_fail("no extents");
    }
    run->share = (uint32_t)(ring_bytes / run->place_bytes) / (uint32_t)run->threads;
    if (run->share == 0)
        run->share = 1;
    run->ring_bytes = (uint64_t)run->share * (uint64_t)run->threads * run->place_bytes;
    run->order = malloc(run->count * sizeof(*run->order));
    run->ring =
        mmap(NULL, run->ring_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (!run->order || run->ring == MAP_FAILED)
        limit_fail("memory");
    madvise(run->ring, run->ring_bytes, MADV_HUGEPAGE);
    pthread_barrier_init(&run->barrier, NULL, (unsigned)run->threads + 1);
}

int main(int argc, char **argv)
{
    if (argc != 5 && argc != 6) {
        fprintf(stderr, "usage: limit_pread EXTENTS RING_BYTES THREADS SECONDS [stored|map]\n");
        return 2;
    }
    static struct run run;
    run.threads = atoi(argv[3]);
    run.stored = argc == 6 && strcmp(argv[5], "stored") == 0;
    run.mapped = argc == 6 && strcmp(argv[5], "map") == 0;
    if (run.threads < 1 || run.threads > MAX_THREADS)
        run.threads = 1;
    run_open(&run, argv[1], strtoull(argv[2], NULL, 10));
    pthread_t threads[MAX_THREADS];
    struct reader readers[MAX_THREADS];
    for (int i = 0; i < run.threads; i++) {
        readers[i] = (struct reader){&run, i};
        if (pthread_create(&threads[i], NULL, reader_main, &readers[i]))
            limit_fail("thread");
    }
    pass(&run); /* warms the cache and touches the ring */
    atomic_store(&run.read_bytes, 0);
    double cpu = seconds_of_cpu(), start = seconds_now(), took;
    uint64_t passes = 0;
    do {
        pass(&run);
        passes++;
        took = seconds_now() - start;
    } while (took < atof(argv[4]));
    cpu = seconds_of_cpu() - cpu;
    atomic_store(&run.stop, 1);
    pthread_barrier_wait(&run.barrier);
    for (int i = 0; i < run.threads; i++)
        pthread_join(threads[i], NULL);
    double bytes = (double)atomic_load(&run.read_bytes);
    printf("{\"value\": %.1f, \"bytes_per_s\": %.1f, \"samples_per_s\": %.1f, \"cpu_s\": %.6f, "
           "\"threads\": %d, \"ring_bytes\": %llu, \"seconds\": %.6f, \"passes\": %llu}\n",
           bytes / took, bytes / took, (double)passes * run.count / took, cpu / (double)passes,
           run.threads, (unsigned long long)run.ring_bytes, took, (unsigned long long)passes);
    return 0;
}
