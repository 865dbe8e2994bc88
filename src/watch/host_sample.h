/* host_sample.h -- the watched processes and the machine under them, looked at as time goes on.
 * Owns: the tree of processes.   Threads: one.   Errors: none; what cannot be seen is left out.
 * Not here: rings (ring_set.h), GPUs (device_sample.h), when it is time to look (collect.h). */
#ifndef WATCH_HOST_SAMPLE_H
#define WATCH_HOST_SAMPLE_H

#include "watch/machine_sample.h"
#include "watch/process_tree.h"
#include "watch/ring_set.h"

#define HOST_TEXT 32

struct host_sample {
    struct process_tree tree;
    struct machine_sample machine;
    struct watch_sink sink;
    uint32_t cpus;
    int watches_itself;   /* this process is one of the watched */
    uint64_t turn;        /* looks at threads so far */
    uint64_t calls;       /* of host_sample_use */
    uint64_t own_cpu;     /* nanoseconds of all that serve the loop, since the last machine event */
    uint64_t watcher_cpu; /* of this process, as last seen */
    uint64_t machine_start;                   /* of the next machine event */
    char python[HOST_TEXT], torch[HOST_TEXT]; /* as processes told; "": not yet */
};

void host_sample_init(struct host_sample *host, uint32_t root, uint64_t now,
                      const struct watch_sink *sink);
void host_sample_reset(struct host_sample *host);

/* A ring was found: its process is watched, whoever its parent is now. */
void host_sample_ring(struct host_sample *host, uint32_t pid, uint64_t now);
/* What a process tells of itself: the JSON of RECORD_PROCESS. */
void host_sample_process(struct host_sample *host, uint32_t pid, const char *json, size_t len,
                         uint64_t now);
int host_sample_alive(const struct host_sample *host, uint32_t pid);

void host_sample_threads(struct host_sample *host, uint64_t now); /* often */
/* Processes, often: with many of them some calls do nothing. The machine at most four times a
 * second. */
void host_sample_use(struct host_sample *host, uint64_t now);
void host_sample_list(struct host_sample *host, uint64_t now); /* threads anew; seldom */

/* The last look at all. */
void host_sample_finish(struct host_sample *host, uint64_t now);

uint64_t host_sample_rss(const struct host_sample *host);

#endif
