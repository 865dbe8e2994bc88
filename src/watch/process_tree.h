/* process_tree.h -- the processes of a watched run: the command and all that it started, as far as
 * they can be found; rings name those whose parents are gone.
 * Owns: the list and what is sampled of each.   Threads: one.   Errors: a process that there is no
 * memory for is not watched.   Not here: when they are looked at (collect.h). */
#ifndef WATCH_PROCESS_TREE_H
#define WATCH_PROCESS_TREE_H

#include <stddef.h>
#include <stdint.h>

#include "watch/event.h"
#include "watch/proc_sample.h"

#define PROCESS_NAME 121

struct tree_process {
    struct proc_sample sample;
    struct watch_process about; /* its name points to `name` */
    char name[PROCESS_NAME];
    uint64_t found;   /* when */
    uint64_t rss;     /* as last seen */
    uint64_t credit;  /* ticks of children that ended and are counted, but not yet in its own sum */
    int told;         /* its listener knows of it as it is */
    int ended;        /* a zombie, or gone */
    int has_ring;     /* the hook or the injected library speaks */
    int hook_checked; /* how often it was looked for why it does not */
    int serves;       /* 1: whoever started it may have it make batches; -1: it may not */
    uint64_t counted; /* ticks of its own sum of children that are accounted for */
    uint64_t children; /* when its threads were last asked for children, all of them */
};

struct process_tree {
    struct tree_process *list;
    size_t count, room;
    uint64_t begun;  /* ticks since boot when it was made */
    int budget;      /* files of /proc that may still be kept open */
    int no_children; /* the kernel does not list children: all of /proc is looked through */
};

void process_tree_init(struct process_tree *tree);
void process_tree_reset(struct process_tree *tree);

struct tree_process *process_tree_find(const struct process_tree *tree, uint32_t pid); /* or NULL */
/* The process of that number, new or known; NULL: it is gone already. Pointers to others may move.
 */
struct tree_process *process_tree_add(struct process_tree *tree, uint32_t pid, uint64_t now);
/* Its name again: a child has its parent's until it runs its own program. Not 0: it is another. */
int process_tree_rename(struct tree_process *process);
/* Looks for children of the known ones. */
void process_tree_scan(struct process_tree *tree, uint64_t now);
/* Forgets those that ended. */
void process_tree_forget(struct process_tree *tree);

/* "python train.py": the program and its script, nothing else of its arguments. */
void process_name(const char *cmdline, size_t len, char out[PROCESS_NAME]);
/* Whether a process has nothing to do with the loop, as far as can be seen: it has no ring where
 * others have one, it or one above it runs another program than who trains, and no worker started
 * it. What it takes of the CPUs, others lack. */
int process_tree_beside(const struct process_tree *tree, struct tree_process *process,
                        uint64_t now);
/* The main process of the loop that a process without a ring serves, in a pool of the script's,
 * say: it runs the same program. 0: none, or that cannot be told yet. */
uint32_t process_tree_served(const struct process_tree *tree, struct tree_process *process,
                             uint64_t now);

/* Why a Python process has no hook: 'I', 'S' or 'E', the option that keeps it away; 0: none does.
 */
char process_python_flag(const char *cmdline, size_t len);
/* Whether Python loads the hook with such an environment: name=value, each ended by a 0, as is
 * text[len].
 */
int process_environment_hooks(const char *environment, size_t len);
/* 0: it is no Python, or nothing can be said. Else a sentence for the report in out. */
int process_without_hook(uint32_t pid, char *out, size_t cap);

#endif
