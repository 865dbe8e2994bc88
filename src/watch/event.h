/* event.h -- what the collector makes of rings and of /proc, one after the other: the input of
 * attribution and of the trace.
 * Owns: nothing: pointers in an event live until the call that hands it over returns.   Threads:
 * one, the collector's.   Errors: none.   Not here: how it came here (ring_read.h, proc_sample.h).
 *
 * Events come in no order of time; event_settled says up to when they are complete. */
#ifndef WATCH_EVENT_H
#define WATCH_EVENT_H

#include <stddef.h>
#include <stdint.h>

#include "stoker/device.h"
#include "watch/record.h"

enum event_type {
    EVENT_PROCESS, /* a process is seen for the first time, or its role becomes known */
    EVENT_PROCESS_END,
    EVENT_RECORD,  /* a record of a process's ring */
    EVENT_THREAD,  /* what a thread did between two looks at /proc */
    EVENT_USE,     /* what a process did between two looks */
    EVENT_MACHINE, /* what the machine did between two looks */
    EVENT_DEVICE   /* what NVML says */
};

enum process_role {
    PROCESS_UNKNOWN, /* it has no hook: not Python, or `python -I` */
    PROCESS_MAIN,    /* runs a loop of its own: a rank */
    PROCESS_WORKER,  /* of a DataLoader */
    PROCESS_HELPER,  /* the script's own: what it makes is the loop's, for all that can be seen */
    PROCESS_LAUNCHER /* torchrun and its kin: it starts ranks and does nothing else */
};

struct watch_process {
    uint32_t pid, parent;
    enum process_role role;
    uint32_t main;       /* of a worker or helper: the process that it serves; else its own pid */
    int32_t worker;      /* its number, -1: none */
    int32_t rank, world; /* -1, 1: not distributed */
    const char *name;    /* "python train.py", no more than 120 characters */
};

/* Differences over [start, end). */
struct watch_thread {
    uint32_t thread;
    uint64_t cpu_ns;
    uint64_t run_delay_ns; /* could run, but had no CPU */
    uint64_t block_ns; /* waited for a disk (delay accounting); 0 where the kernel does not say */
    char state;        /* as /proc has it: R S D ... */
    char name[16];
    /* In all, since it began; of one that was there before the watching, since then. */
    uint64_t cpu_sum_ns, run_delay_sum_ns;
};
/* What /proc told of a process: the rest of its use is 0. */
enum use_told {
    USE_STAT = 1, /* CPU, faults, memory */
    USE_DELAY = 2,
    USE_IO = 4,
    USE_BLOCK = 8,
    USE_ALL = USE_STAT | USE_DELAY | USE_IO | USE_BLOCK
};
struct watch_use {
    unsigned told;                                               /* enum use_told */
    uint64_t cpu_user_ns, cpu_system_ns, run_delay_ns, block_ns; /* of all threads */
    uint64_t read_calls_bytes, write_calls_bytes; /* by system calls, of whatever file */
    uint64_t read_bytes, written_bytes;           /* from and to the disk */
    uint64_t minor_faults, major_faults;
    uint64_t rss_bytes, most_rss_bytes; /* now; ever, as far as it is known */
    uint32_t threads;
};
/* What the kernel told of the machine: the rest of it is 0. */
enum machine_told { MACHINE_DISKS = 1, MACHINE_NETWORK = 2 };
struct watch_machine {
    unsigned told;  /* enum machine_told */
    uint64_t io_ns; /* up to the end, in which disks and network did what they did */
    uint64_t cpu_busy_ns, cpu_iowait_ns; /* of all CPUs together */
    uint64_t own_cpu_ns; /* of the watched processes, less those that are beside the loop */
    uint64_t disk_read_bytes, disk_written_bytes, network_in_bytes, network_out_bytes;
    uint64_t memory_free_bytes; /* now, as MemAvailable */
    uint32_t cpus;              /* that the child may use: affinity and cgroup */
};
struct watch_device {
    uint32_t device;
    uint64_t memory_used_bytes, memory_total_bytes;
    uint32_t busy_percent; /* as NVML samples it */
    int busy_untold;       /* it does not, as of a device that is shared out in parts */
    uint32_t power_mw, clock_mhz, temperature_c;
    uint64_t throttle;                          /* reasons, NVML's bits */
    uint64_t pcie_in_bytes_s, pcie_out_bytes_s; /* STK_DEVICE_UNKNOWN: not asked since last */
    const uint32_t *pids; /* of processes that have a context on it, as far as NVML tells */
    size_t pid_count;
};

struct watch_event {
    enum event_type type;
    uint32_t pid;
    uint64_t start, end; /* of what took time; a moment has both alike */
    union {
        const struct watch_process *process;
        const struct record *record; /* whole, checked: its size fits its type, texts are inside */
        const struct watch_thread *thread;
        const struct watch_use *use;
        const struct watch_machine *machine;
        const struct watch_device *device;
    };
};

#endif
