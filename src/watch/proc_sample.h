/* proc_sample.h -- what /proc tells of one process and its threads, as differences between looks.
 * Files of /proc that are read often stay open as long as the budget for them lasts.
 * Owns: the open files and the list of threads.   Threads: one.   Errors: 0 when the process is
 * gone; what the kernel does not tell is 0, and `told` says so.   Not here: which processes
 * (process_tree.h), the machine (machine_sample.h). */
#ifndef WATCH_PROC_SAMPLE_H
#define WATCH_PROC_SAMPLE_H

#include <stddef.h>
#include <stdint.h>

#include "watch/event.h"

#define PROC_THREADS_MOST 128 /* of one process; a program with more is told by these */

/* --- texts of the kernel; 0: not such a text ----------------------------------------------------
 */
struct proc_stat {
    char name[16], state;
    uint32_t parent, threads;
    uint64_t minor_faults, major_faults;
    uint64_t children_faults;        /* minor ones, of children that were waited for */
    uint64_t user, system, children; /* ticks; children: of those that were waited for */
    uint64_t started;                /* ticks since boot: tells processes of one number apart */
    uint64_t rss_pages, blocked;     /* blocked: ticks */
};
int proc_parse_stat(const char *text, size_t len, struct proc_stat *out);
/* "cpu delay slices", nanoseconds */
int proc_parse_schedstat(const char *text, size_t len, uint64_t *cpu, uint64_t *delay);
struct proc_io { /* bytes; with those of children that were waited for */
    uint64_t read_calls, write_calls, read, written;
};
int proc_parse_io(const char *text, size_t len, struct proc_io *out);

/* Reads a small file of /proc into buf, ended by NUL. Returns its length; 0: it is not there. */
size_t proc_read(const char *path, char *buf, size_t cap);
/* The same of a long one, of which the kernel gives a page at a time: its whole lines, as many as
 * fit. */
size_t proc_read_lines(const char *path, char *buf, size_t cap);
uint64_t proc_tick_ns(void);

/* --- one process -------------------------------------------------------------------------------
 */
struct proc_thread {
    uint32_t thread;
    int fd; /* of its schedstat; -1: not kept */
    int seen;
    uint64_t looked; /* when */
    uint64_t cpu, delay, blocked;
    uint64_t cpu_base, delay_base; /* before it was watched */
    uint32_t quiet, rest;          /* looks without any use; looks to leave out */
    uint64_t listed_cpu;           /* when it was listed last */
    uint32_t listed;               /* how often */
    int is_told;                   /* what it did before it was found is no difference */
    char name[16];
};

struct proc_sample {
    uint32_t pid;
    int stat_fd, io_fd, main_fd; /* -1: not kept; main_fd: stat of the main thread */
    unsigned told;               /* enum use_told: at any look so far */
    uint64_t looked;
    struct proc_stat stat;
    struct proc_io io;
    struct proc_io credit; /* of children that ended: it will be in io once they are waited for */
    uint64_t delay;        /* of all threads since the last look at the process */
    uint64_t block;        /* the same, of all but the main thread */
    uint64_t most_rss;
    struct proc_thread *threads;
    size_t thread_count, thread_room;
    int *budget; /* files that may still be kept open; shared by all */
};

/* 0: there is no such process. */
int proc_sample_open(struct proc_sample *sample, uint32_t pid, uint64_t now, int *budget);
/* It began after the watching did: all that it did since is told at the next look. */
void proc_sample_from_birth(struct proc_sample *sample);
void proc_sample_close(struct proc_sample *sample); /* zeroed is fine */

/* A child has ended: what it read and wrote is told, and not to be told of its parent again. */
void proc_sample_child(struct proc_sample *parent, const struct proc_sample *child);
/* The threads, anew, and what is dear to look at. */
void proc_sample_list(struct proc_sample *sample, uint64_t now);
/* Calls take for each thread that is new or did something, or that it is time to look at. Threads
 * that do nothing are looked at less often. */
void proc_sample_threads(struct proc_sample *sample, uint64_t now,
                         void (*take)(void *user, uint32_t pid, uint64_t start, uint64_t end,
                                      const struct watch_thread *thread),
                         void *user);
/* *start: of the difference, which ends now. 0: the process is gone; a zombie is there still, and
 * its state says so. */
int proc_sample_use(struct proc_sample *sample, uint64_t now, uint64_t *start,
                    struct watch_use *out);

#endif
