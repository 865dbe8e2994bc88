#include "watch/process_tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/parse.h"

#define BUDGET_MOST 512
#define ALL_THREADS_NS UINT64_C(2000000000)
#define CMDLINE_MOST 4096
#define ENVIRONMENT_MOST ((size_t)1 << 18)
#define BESIDE_AFTER UINT64_C(150000000) /* until then it may not run its own program yet */
#define DEPTH_MOST 32

void process_tree_init(struct process_tree *tree)
{
    struct rlimit files;
    struct timespec boot = {0};
    (void)clock_gettime(CLOCK_BOOTTIME, &boot);
    uint64_t since_boot = (uint64_t)boot.tv_sec * 1000000000u + (uint64_t)boot.tv_nsec;
    *tree = (struct process_tree){.budget = BUDGET_MOST, .begun = since_boot / proc_tick_ns()};
    if (!getrlimit(RLIMIT_NOFILE, &files) && files.rlim_cur / 4 < BUDGET_MOST)
        tree->budget = (int)(files.rlim_cur / 4);
    tree->no_children = access("/proc/thread-self/children", R_OK) != 0;
}

void process_tree_reset(struct process_tree *tree)
{
    for (size_t i = 0; i < tree->count; i++)
        proc_sample_close(&tree->list[i].sample);
    memory_free(tree->list);
    *tree = (struct process_tree){0};
}

struct tree_process *process_tree_find(const struct process_tree *tree, uint32_t pid)
{
    for (size_t i = 0; i < tree->count; i++)
        if (tree->list[i].about.pid == pid && !tree->list[i].ended)
            return &tree->list[i];
    return NULL;
}

/* --- names ------------------------------------------------------------------------------------ */

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* The words of a command line lie one after the other, each ended by a NUL. */
static const char *next_word(const char *word, const char *end)
{
    word += strnlen(word, (size_t)(end - word));
    return word + 1 < end ? word + 1 : NULL;
}

void process_name(const char *cmdline, size_t len, char out[PROCESS_NAME])
{
    const char *end = cmdline + len, *word = next_word(cmdline, end);
    char program[64], script[48] = "";
    out[0] = '\0';
    if (len == 0)
        return;
    snprintf(program, sizeof program, "%.60s", base_name(cmdline));
    if (strncmp(program, "python", 6)) /* of other programs no argument is known to be harmless */
        word = NULL;
    for (int module = 0; word; word = next_word(word, end)) {
        if (!module && word[0] == '-' && word[1] == 'c') /* its text is nobody's business */
            break;
        if (!module && (!strcmp(word, "-X") || !strcmp(word, "-W"))) {
            word = next_word(word, end);
            if (!word)
                break;
        } else if (!module && !strcmp(word, "-m")) {
            module = 1;
        } else if (module || word[0] != '-') {
            snprintf(script, sizeof script, "%s%.40s", module ? "-m " : "", base_name(word));
            break;
        }
    }
    snprintf(out, PROCESS_NAME, script[0] ? "%s %s" : "%s%s", program, script);
}

char process_python_flag(const char *cmdline, size_t len)
{
    const char *end = cmdline + len;
    if (len == 0)
        return 0;
    for (const char *word = next_word(cmdline, end); word && word[0] == '-' && word[1];
         word = next_word(word, end)) {
        if (word[1] == '-')
            continue;
        for (const char *letter = word + 1; *letter; letter++) {
            if (strchr("ISE", *letter))
                return *letter;
            if (*letter == 'c' || *letter == 'm')
                return 0; /* what follows is the script's */
            if (*letter == 'X' || *letter == 'W') {
                if (!letter[1]) /* its argument is the next word */
                    word = next_word(word, end);
                break;
            }
        }
        if (!word)
            break;
    }
    return 0;
}

/* The value of a variable of an environment, as /proc has it; NULL: it has none. */
static const char *variable_find(const char *environment, size_t len, const char *name)
{
    size_t name_len = strlen(name);
    for (const char *at = environment; at < environment + len; at += strlen(at) + 1)
        if (!strncmp(at, name, name_len) && at[name_len] == '=')
            return at + name_len + 1;
    return NULL;
}

int process_environment_hooks(const char *environment, size_t len)
{
    char site[PATH_MAX];
    const char *folder = variable_find(environment, len, "STOKER_WATCH");
    const char *paths = variable_find(environment, len, "PYTHONPATH");
    if (!folder || !paths || snprintf(site, sizeof site, "%s/site", folder) >= (int)sizeof site)
        return 0;
    return strstr(paths, site) != NULL;
}

int process_without_hook(uint32_t pid, char *out, size_t cap)
{
    char path[64], exe[512], text[CMDLINE_MOST];
    snprintf(path, sizeof path, "/proc/%u/exe", pid);
    ssize_t exe_len = readlink(path, exe, sizeof exe - 1);
    exe[exe_len > 0 ? exe_len : 0] = '\0';
    if (strncmp(base_name(exe), "python", 6))
        return 0;
    snprintf(path, sizeof path, "/proc/%u/cmdline", pid);
    size_t len = proc_read(path, text, sizeof text);
    char flag = process_python_flag(text, len);
    if (flag) {
        snprintf(out, cap,
                 "Python was started with -%c, which keeps the hook away: of that process only the "
                 "GPU's and the host's figures are known.",
                 flag);
        return 1;
    }
    snprintf(path, sizeof path, "/proc/%u/environ", pid);
    char *environment = memory_alloc(ENVIRONMENT_MOST);
    len = environment ? proc_read(path, environment, ENVIRONMENT_MOST) : 0;
    int cleared = len > 0 && !process_environment_hooks(environment, len);
    memory_free(environment);
    if (cleared)
        snprintf(out, cap,
                 "A Python process was started with an environment or a PYTHONPATH of its own, "
                 "without the hook: of that process only the GPU's and the host's figures are "
                 "known. Add to PYTHONPATH, and do not replace it.");
    return cleared;
}

/* --- what is beside the loop ------------------------------------------------------------------ */

static size_t cmdline_read(const struct tree_process *process, char text[CMDLINE_MOST])
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%u/cmdline", process->about.pid);
    return proc_read(path, text, CMDLINE_MOST);
}

/* A fork that goes on with its parent's program, or a process that multiprocessing started anew,
 * makes batches in a pool of its own, for all that can be seen. Another program does not. */
static int process_serves(struct tree_process *process, const struct tree_process *parent)
{
    char text[CMDLINE_MOST], above[CMDLINE_MOST];
    if (process->serves)
        return process->serves > 0;
    size_t len = cmdline_read(process, text), above_len = parent ? cmdline_read(parent, above) : 0;
    int is_fork = len == above_len && !memcmp(text, above, len);
    process->serves = is_fork || memmem(text, len, "from multiprocessing.", 21) ? 1 : -1;
    return process->serves > 0;
}

static int anyone_tells(const struct process_tree *tree)
{
    for (size_t i = 0; i < tree->count; i++)
        if (tree->list[i].has_ring && !tree->list[i].ended)
            return 1;
    return 0;
}

/* Who tells, on the way up from a process; NULL: nobody does. *is_other: it runs another program,
 * or something between the two does. */
static const struct tree_process *teller_find(const struct process_tree *tree,
                                              struct tree_process *process, uint64_t now,
                                              int *is_other)
{
    *is_other = 0;
    for (int depth = 0; process && depth < DEPTH_MOST; depth++) {
        if (process->has_ring)
            return process;
        struct tree_process *parent = process_tree_find(tree, process->sample.stat.parent);
        if (now - process->found >= BESIDE_AFTER && !process_serves(process, parent))
            *is_other = 1;
        process = parent;
    }
    return NULL;
}

int process_tree_beside(const struct process_tree *tree, struct tree_process *process, uint64_t now)
{
    int is_other;
    if (!anyone_tells(tree))
        return 0;
    const struct tree_process *teller = teller_find(tree, process, now, &is_other);
    return is_other && !(teller && teller->about.role == PROCESS_WORKER);
}

uint32_t process_tree_served(const struct process_tree *tree, struct tree_process *process,
                             uint64_t now)
{
    int is_other;
    if (process->has_ring || now - process->found < BESIDE_AFTER)
        return 0;
    const struct tree_process *teller = teller_find(tree, process, now, &is_other);
    int serves = teller && !is_other &&
                 (teller->about.role == PROCESS_MAIN || teller->about.role == PROCESS_WORKER);
    return serves ? teller->about.main : 0;
}

/* --- finding ---------------------------------------------------------------------------------- */

static void name_process(struct tree_process *process)
{
    char text[CMDLINE_MOST];
    size_t len = cmdline_read(process, text);
    process_name(text, len, process->name);
    if (!process->name[0])
        snprintf(process->name, sizeof process->name, "%s", process->sample.stat.name);
}

int process_tree_rename(struct tree_process *process)
{
    char before[PROCESS_NAME];
    memcpy(before, process->name, sizeof before);
    name_process(process);
    return strcmp(before, process->name) != 0;
}

/* Of a process that is younger than the run everything counts, also what it did before it was
 * found. */
static void count_from_birth(const struct process_tree *tree, struct proc_sample *sample)
{
    if (sample->stat.started >= tree->begun)
        proc_sample_from_birth(sample);
}

static void point_to_names(struct process_tree *tree)
{
    for (size_t i = 0; i < tree->count; i++)
        tree->list[i].about.name = tree->list[i].name;
}

struct tree_process *process_tree_add(struct process_tree *tree, uint32_t pid, uint64_t now)
{
    struct tree_process *known = process_tree_find(tree, pid);
    if (known)
        return known;
    if (tree->count == tree->room) {
        size_t room = tree->room ? 2 * tree->room : 16;
        void *grown = memory_grow(tree->list, room * sizeof *tree->list);
        if (!grown)
            return NULL;
        tree->list = grown;
        tree->room = room;
    }
    struct tree_process *process = &tree->list[tree->count];
    *process = (struct tree_process){.found = now};
    if (!proc_sample_open(&process->sample, pid, now, &tree->budget)) {
        point_to_names(tree);
        return NULL;
    }
    process->about = (struct watch_process){.pid = pid,
                                            .parent = process->sample.stat.parent,
                                            .main = pid,
                                            .worker = -1,
                                            .rank = -1,
                                            .world = 1};
    count_from_birth(tree, &process->sample);
    process->counted = process->sample.stat.children;
    name_process(process);
    tree->count++;
    point_to_names(tree); /* the list may have moved */
    return process;
}

static void add_listed(struct process_tree *tree, const char *text, uint64_t now)
{
    char *end;
    for (;; text = end) {
        unsigned long pid = strtoul(text, &end, 10);
        if (end == text)
            return;
        (void)process_tree_add(tree, (uint32_t)pid, now);
    }
}

static void scan_children(struct process_tree *tree, size_t number, uint64_t now)
{
    char path[80], text[8192];
    struct tree_process *process = &tree->list[number];
    uint32_t pid = process->about.pid;
    int all = now - process->children >= ALL_THREADS_NS;
    if (all)
        process->children = now;
    for (size_t i = 0; i < tree->list[number].sample.thread_count; i++) {
        uint32_t thread = tree->list[number].sample.threads[i].thread;
        if (!all && thread != pid)
            continue;
        snprintf(path, sizeof path, "/proc/%u/task/%u/children", pid, thread);
        if (proc_read(path, text, sizeof text))
            add_listed(tree, text, now);
    }
}

/* For kernels that do not list children. */
static void scan_all(struct process_tree *tree, uint64_t now)
{
    char path[300], text[1024];
    DIR *folder = opendir("/proc");
    if (!folder)
        return;
    for (struct dirent *entry; (entry = readdir(folder));) {
        uint64_t pid;
        struct proc_stat stat;
        if (!parse_u64(entry->d_name, strlen(entry->d_name), &pid) || pid > UINT32_MAX ||
            process_tree_find(tree, (uint32_t)pid))
            continue;
        snprintf(path, sizeof path, "/proc/%s/stat", entry->d_name);
        size_t len = proc_read(path, text, sizeof text);
        if (proc_parse_stat(text, len, &stat) && process_tree_find(tree, stat.parent))
            (void)process_tree_add(tree, (uint32_t)pid, now);
    }
    closedir(folder);
}

void process_tree_scan(struct process_tree *tree, uint64_t now)
{
    if (tree->no_children) {
        scan_all(tree, now);
        return;
    }
    for (size_t i = 0; i < tree->count; i++) /* children that are found are scanned, too */
        if (!tree->list[i].ended)
            scan_children(tree, i, now);
}

void process_tree_forget(struct process_tree *tree)
{
    size_t kept = 0;
    for (size_t i = 0; i < tree->count; i++) {
        if (tree->list[i].ended)
            proc_sample_close(&tree->list[i].sample);
        else
            tree->list[kept++] = tree->list[i];
    }
    tree->count = kept;
    point_to_names(tree);
}
