/* machine_sample.h -- what the whole machine does: CPUs, disks, network, memory.
 * Owns: nothing.   Threads: one.   Errors: none; what the kernel does not
 * tell is 0, and `told` says so.
 * Not here: one process (proc_sample.h), the GPU (device_sample.h). */
#ifndef WATCH_MACHINE_SAMPLE_H
#define WATCH_MACHINE_SAMPLE_H

#include <stddef.h>
#include <stdint.h>

#include "watch/event.h"

/* --- texts of the kernel: sums since boot ----------------------------------------------------- */
/* /proc/stat: ticks of all CPUs together; 0: not such a text */
int machine_parse_cpu(const char *text, size_t len, uint64_t *busy, uint64_t *iowait);
/* /proc/diskstats: bytes of whole disks; partitions and what is built of disks would count twice.
 * 0: there is none */
int machine_parse_disks(const char *text, size_t len, uint64_t *read, uint64_t *written);
/* /proc/net/dev: bytes of all but the loopback; 0: not such a text */
int machine_parse_network(const char *text, size_t len, uint64_t *in, uint64_t *out);
/* /proc/meminfo: "MemTotal:" and the like, in bytes; 0: no such line */
uint64_t machine_parse_memory(const char *text, size_t len, const char *name);

struct machine_sample {
    uint64_t looked, looked_far; /* when: at the CPUs; at the rest */
    unsigned told;               /* enum machine_told: at the last look */
    uint64_t busy, iowait;
    uint64_t disk_read, disk_written, network_in, network_out, memory_free;
};

void machine_sample_open(struct machine_sample *sample, uint64_t now);
/* Differences since the last look; own_cpu_ns and cpus are the caller's. Disks, network and memory
 * are looked at once a second only, and not told (memory: as it was) in between; at the last of all
 * looks they are, too. */
enum machine_look_kind { MACHINE_LOOK, MACHINE_LOOK_LAST };
void machine_sample_take(struct machine_sample *sample, uint64_t now, enum machine_look_kind kind,
                         struct watch_machine *out);

uint64_t machine_memory(void); /* bytes in all */

#endif
