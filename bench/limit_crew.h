/* limit_crew.h -- what the limits of decoders share: every sample in RAM, a thread a core, passes
 * over all samples until the seconds have passed; prints one JSON object.
 * Owns: the samples' bytes, until the program ends.   Threads: it makes them.
 * Errors: limit_fail ends the program with status 1.   Not here: how a sample is decoded. */
#ifndef BENCH_LIMIT_CREW_H
#define BENCH_LIMIT_CREW_H

#include <stdatomic.h>
#include <stdint.h>
#include <sys/resource.h>

#include "limit.h"

enum { MAX_THREADS = 256, PATH_CAP = 4096 };

struct sample {
    uint8_t *data;
    size_t len;
};

/* Decodes one sample; each thread has a state of its own. Returns the bytes that it made. */
struct limit_job {
    void *(*open)(const void *about);
    uint64_t (*decode)(void *state, const struct sample *sample);
    const void *about; /* what the program itself was told; may be NULL */
};

struct crew {
    const struct limit_job *job;
    struct sample *samples;
    uint32_t count;
    atomic_uint next;
    atomic_ullong made_bytes;
    atomic_int stop; /* set before the last barrier */
    pthread_barrier_t barrier;
};

struct crew_member {
    struct crew *crew;
    int number;
};

static double seconds_of_cpu(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           1e-6 * (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

static struct sample sample_read(const char *name, unsigned long long offset, size_t len)
{
    struct sample sample = {malloc(len ? len : 1), len};
    FILE *file = fopen(name, "rb");
    if (!file || !sample.data || fseek(file, (long)offset, SEEK_SET) ||
        fread(sample.data, 1, len, file) != len)
        limit_fail(name);
    fclose(file);
    return sample;
}

/* A line "offset length path" a sample; the path is relative to the folder of the list. */
static void samples_load(struct crew *crew, const char *list)
{
    char folder[PATH_CAP], name[PATH_CAP], path[2 * PATH_CAP];
    unsigned long long offset, len;
    uint32_t room = 0;
    FILE *file = fopen(list, "r");
    const char *slash = strrchr(list, '/');
    if (!file || strlen(list) >= sizeof(folder))
        limit_fail(list);
    snprintf(folder, sizeof(folder), "%.*s", slash ? (int)(slash - list) : 1, slash ? list : ".");
    while (fscanf(file, "%llu %llu %4095[^\n]", &offset, &len, name) == 3) {
        if (crew->count == room) {
            room = room ? 2 * room : 1024;
            crew->samples = realloc(crew->samples, room * sizeof(*crew->samples));
            if (!crew->samples)
                limit_fail("memory");
        }
        snprintf(path, sizeof(path), "%s/%s", folder, name);
        crew->samples[crew->count++] = sample_read(path, offset, len);
    }
    fclose(file);
}

static void *crew_member_main(void *argument)
{
    struct crew_member *member = argument;
    struct crew *crew = member->crew;
    sit_on_core(member->number);
    void *state = crew->job->open(crew->job->about);
    for (;;) {
        pthread_barrier_wait(&crew->barrier); /* a pass begins */
        if (atomic_load(&crew->stop))
            return NULL;
        uint32_t place;
        uint64_t bytes = 0;
        while ((place = atomic_fetch_add(&crew->next, 1)) < crew->count)
            bytes += crew->job->decode(state, &crew->samples[place]);
        atomic_fetch_add(&crew->made_bytes, bytes);
        pthread_barrier_wait(&crew->barrier); /* the pass is over */
    }
}

static void crew_pass(struct crew *crew)
{
    atomic_store(&crew->next, 0);
    pthread_barrier_wait(&crew->barrier);
    pthread_barrier_wait(&crew->barrier);
}

static void crew_time(struct crew *crew, int threads, double seconds)
{
    crew_pass(crew); /* warms up */
    atomic_store(&crew->made_bytes, 0);
    double cpu = seconds_of_cpu(), start = seconds_now(), took;
    uint64_t passes = 0;
    do {
        crew_pass(crew);
        passes++;
        took = seconds_now() - start;
    } while (took < seconds);
    cpu = seconds_of_cpu() - cpu;
    double bytes = (double)atomic_load(&crew->made_bytes);
    double rate = (double)passes * crew->count / took;
    printf("{\"value\": %.3f, \"samples_per_s\": %.3f, \"bytes_per_s\": %.1f, \"bytes_out\": %.0f, "
           "\"cpu_s\": %.6f, \"threads\": %d, \"seconds\": %.6f, \"epochs\": %llu}\n",
           rate, rate, bytes / took, bytes / (double)passes, cpu / (double)passes, threads, took,
           (unsigned long long)passes);
}

static int crew_main(int argc, char **argv, const struct limit_job *job)
{
    if (argc < 4) {
        fprintf(stderr, "usage: %s EXTENTS THREADS SECONDS ...\n", argv[0]);
        return 2;
    }
    static struct crew crew;
    pthread_t threads[MAX_THREADS];
    struct crew_member members[MAX_THREADS];
    int count = atoi(argv[2]);
    count = count < 1 ? 1 : count > MAX_THREADS ? MAX_THREADS : count;
    crew.job = job;
    samples_load(&crew, argv[1]);
    pthread_barrier_init(&crew.barrier, NULL, (unsigned)count + 1);
    for (int i = 0; i < count; i++) {
        members[i] = (struct crew_member){&crew, i};
        if (pthread_create(&threads[i], NULL, crew_member_main, &members[i]))
            limit_fail("thread");
    }
    crew_time(&crew, count, atof(argv[3]));
    atomic_store(&crew.stop, 1);
    pthread_barrier_wait(&crew.barrier);
    for (int i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
    return 0;
}

#endif
