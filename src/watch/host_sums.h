/* host_sums.h -- what the host did over a whole run, besides its processes: the disks and the
 * network of the machine, the PCIe of its GPUs, and the threads that used most CPU, however many
 * came and went.
 * Owns: nothing.   Threads: one.   Errors: none.   Not here: which processes there are
 * (attribution.c), what goes over time (series_bins.h). */
#ifndef WATCH_HOST_SUMS_H
#define WATCH_HOST_SUMS_H

#include "watch/event.h"
#include "watch/summary.h"

struct host_sums { /* all zero: nothing yet */
    struct summary_thread threads[SUMMARY_THREADS];
    size_t thread_count;
    struct watch_machine machine; /* told: at any look */
    struct {
        int seen;
        struct pcie_sum {
            uint64_t samples, sum, most;
        } in, out;
    } devices[SUMMARY_DEVICES];
};

/* Of one process: all but what is as of now adds up. */
void host_sums_use(struct watch_use *sum, const struct watch_use *use);
void host_sums_thread(struct host_sums *sums, uint32_t pid, const struct watch_thread *thread);
void host_sums_machine(struct host_sums *sums, const struct watch_machine *machine);
void host_sums_device(struct host_sums *sums, const struct watch_device *device);
void host_sums_summary(const struct host_sums *sums, struct summary *out);

#endif
