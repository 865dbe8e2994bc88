#include "watch/host_sample.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/json.h"
#include "work/cores.h"

/* Threads that one look may cost; with more, each is looked at less often. */
#define THREADS_A_LOOK 160
/* The same for processes, and how often the machine is looked at: its CPUs are dear where there are
 * many. */
#define PROCESSES_A_LOOK 8
#define MACHINE_EVERY_NS UINT64_C(240000000)
#define HOOK_AFTER_NS UINT64_C(1000000000)

static uint64_t watcher_cpu(void)
{
    struct rusage use;
    if (getrusage(RUSAGE_SELF, &use))
        return 0;
    return (uint64_t)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) * 1000000000u +
           (uint64_t)(use.ru_utime.tv_usec + use.ru_stime.tv_usec) * 1000u;
}

void host_sample_init(struct host_sample *host, uint32_t root, uint64_t now,
                      const struct watch_sink *sink)
{
    *host = (struct host_sample){
        .sink = *sink, .cpus = cores_usable(), .watcher_cpu = watcher_cpu(), .machine_start = now};
    host->watches_itself = root == (uint32_t)getpid();
    process_tree_init(&host->tree);
    machine_sample_open(&host->machine, now);
    (void)process_tree_add(&host->tree, root, now);
}

void host_sample_reset(struct host_sample *host)
{
    process_tree_reset(&host->tree);
}

/* --- processes -------------------------------------------------------------------------------- */

static void tell_process(struct host_sample *host, struct tree_process *process, uint64_t now)
{
    struct watch_event event = {.type = EVENT_PROCESS,
                                .pid = process->about.pid,
                                .start = now,
                                .end = now,
                                .process = &process->about};
    process->told = 1;
    host->sink.event(host->sink.user, &event);
}

static void tell_new(struct host_sample *host, uint64_t now)
{
    for (size_t i = 0; i < host->tree.count; i++)
        if (!host->tree.list[i].told)
            tell_process(host, &host->tree.list[i], now);
}

static void end_process(struct host_sample *host, struct tree_process *process, uint64_t now)
{
    const struct proc_stat *stat = &process->sample.stat;
    struct watch_event event = {.type = EVENT_PROCESS_END,
                                .pid = process->about.pid,
                                .start = now,
                                .end = now,
                                .process = &process->about};
    struct tree_process *parent = process_tree_find(&host->tree, stat->parent);
    if (parent) {
        parent->credit += stat->user + stat->system + stat->children;
        proc_sample_child(&parent->sample, &process->sample);
    }
    process->ended = 1;
    host->sink.event(host->sink.user, &event);
}

void host_sample_ring(struct host_sample *host, uint32_t pid, uint64_t now)
{
    struct tree_process *process = process_tree_add(&host->tree, pid, now);
    if (!process)
        return;
    process->has_ring = 1;
    tell_new(host, now);
}

static int32_t number_or(const struct json *json, const char *name, int32_t otherwise)
{
    int64_t number;
    if (!json_i64(json_member(json, name), &number) || number < INT32_MIN || number > INT32_MAX)
        return otherwise;
    return (int32_t)number;
}

static void keep_text(const struct json *json, const char *name, char out[HOST_TEXT])
{
    const char *text;
    if (json_text(json_member(json, name), &text))
        snprintf(out, HOST_TEXT, "%s", text);
}

static enum process_role read_role(const struct json *json, enum process_role otherwise)
{
    static const struct {
        const char *name;
        enum process_role role;
    } roles[] = {
        {"main", PROCESS_MAIN}, {"worker", PROCESS_WORKER}, {"launcher", PROCESS_LAUNCHER}};
    const char *text;
    if (json_text(json_member(json, "role"), &text))
        for (size_t i = 0; i < sizeof roles / sizeof roles[0]; i++)
            if (!strcmp(roles[i].name, text))
                return roles[i].role;
    return otherwise;
}

void host_sample_process(struct host_sample *host, uint32_t pid, const char *text, size_t len,
                         uint64_t now)
{
    struct json *json = NULL;
    const char *name;
    if (json_parse(&json, text, len, NULL))
        return;
    keep_text(json, "python", host->python);
    keep_text(json, "torch", host->torch);
    struct tree_process *process = process_tree_add(&host->tree, pid, now);
    struct tree_process gone = {.about = {.pid = pid, .main = pid, .worker = -1, .rank = -1}};
    if (!process) { /* it is over already, and its records say what it was */
        process = &gone;
        gone.about.name = gone.name;
    }
    struct watch_process *about = &process->about;
    about->role = read_role(json, about->role);
    about->main = (uint32_t)number_or(json, "main", (int32_t)about->main);
    about->worker = number_or(json, "worker", about->worker);
    about->rank = number_or(json, "rank", about->rank);
    about->world = number_or(json, "world", about->world > 0 ? about->world : 1);
    about->parent = (uint32_t)number_or(json, "ppid", (int32_t)about->parent);
    if (process != &gone)
        (void)process_tree_rename(process);
    if (!process->name[0] && json_text(json_member(json, "name"), &name))
        snprintf(process->name, sizeof process->name, "%s", name);
    process->has_ring = 1;
    tell_process(host, process, now);
    tell_new(host, now);
    json_free(json);
}

int host_sample_alive(const struct host_sample *host, uint32_t pid)
{
    return process_tree_find(&host->tree, pid) || !kill((pid_t)pid, 0) || errno == EPERM;
}

/* --- looks ------------------------------------------------------------------------------------ */

static void take_thread(void *user, uint32_t pid, uint64_t start, uint64_t end,
                        const struct watch_thread *thread)
{
    struct host_sample *host = user;
    struct watch_event event = {
        .type = EVENT_THREAD, .pid = pid, .start = start, .end = end, .thread = thread};
    host->sink.event(host->sink.user, &event);
}

void host_sample_threads(struct host_sample *host, uint64_t now)
{
    size_t threads = 0;
    for (size_t i = 0; i < host->tree.count; i++)
        threads += host->tree.list[i].sample.thread_count;
    uint64_t stride = 1 + threads / THREADS_A_LOOK;
    for (size_t i = 0; i < host->tree.count; i++)
        if ((i + host->turn) % stride == 0)
            proc_sample_threads(&host->tree.list[i].sample, now, take_thread, host);
    host->turn++;
}

/* CPU time of processes that came and went between looks is in the sums of their parents. After all
 * were looked at: a child that is gone has left its credit then. */
static void add_unseen(struct host_sample *host, struct tree_process *process, uint64_t now)
{
    uint64_t grown = process->sample.stat.children - process->counted;
    uint64_t known = grown < process->credit ? grown : process->credit;
    process->credit -= known;
    process->counted = process->sample.stat.children;
    if (!process_tree_beside(&host->tree, process, now))
        host->own_cpu += (grown - known) * proc_tick_ns();
}

/* A process that has nothing to say serves whoever started it. */
static void find_main(struct host_sample *host, struct tree_process *process, uint64_t now)
{
    uint32_t main =
        process->about.role == PROCESS_UNKNOWN ? process_tree_served(&host->tree, process, now) : 0;
    if (!main)
        return;
    process->about.role = PROCESS_HELPER;
    process->about.main = main;
    tell_process(host, process, now);
}

static void use_process(struct host_sample *host, struct tree_process *process, uint64_t now)
{
    struct watch_use use;
    uint64_t start;
    if (!proc_sample_use(&process->sample, now, &start, &use)) {
        end_process(host, process, now);
        return;
    }
    find_main(host, process, now);
    if (!process_tree_beside(&host->tree, process, now))
        host->own_cpu += use.cpu_user_ns + use.cpu_system_ns;
    process->rss = use.rss_bytes;
    struct watch_event event = {
        .type = EVENT_USE, .pid = process->about.pid, .start = start, .end = now, .use = &use};
    host->sink.event(host->sink.user, &event);
    if (strchr("ZX", process->sample.stat.state))
        end_process(host, process, now);
}

/* A Python that says nothing: why? Asked twice, for a shell may become one. */
static void check_hook(struct host_sample *host, struct tree_process *process, uint64_t now)
{
    char words[256];
    uint64_t age = now - process->found;
    if (process->has_ring || process->hook_checked > 1 ||
        age < HOOK_AFTER_NS * (process->hook_checked ? 5 : 1))
        return;
    process->hook_checked++;
    if (process_tree_rename(process))
        tell_process(host, process, now);
    if (process_without_hook(process->about.pid, words, sizeof words)) {
        process->hook_checked = 2;
        host->sink.notice(host->sink.user, words);
    }
}

static void use_machine(struct host_sample *host, uint64_t now, enum machine_look_kind kind)
{
    struct watch_machine machine;
    uint64_t ours = watcher_cpu();
    machine_sample_take(&host->machine, now, kind, &machine);
    machine.own_cpu_ns = host->own_cpu;
    if (!host->watches_itself)
        machine.own_cpu_ns += ours - host->watcher_cpu;
    machine.cpus = host->cpus;
    struct watch_event event = {
        .type = EVENT_MACHINE, .start = host->machine_start, .end = now, .machine = &machine};
    host->sink.event(host->sink.user, &event);
    host->own_cpu = 0;
    host->watcher_cpu = ours;
    host->machine_start = now;
}

static void look_at_all(struct host_sample *host, uint64_t now, enum machine_look_kind kind)
{
    process_tree_scan(&host->tree, now);
    tell_new(host, now);
    for (size_t i = host->tree.count; i-- > 0;) /* children first: an end is told to the parent */
        use_process(host, &host->tree.list[i], now);
    for (size_t i = 0; i < host->tree.count; i++)
        if (!host->tree.list[i].ended) {
            add_unseen(host, &host->tree.list[i], now);
            check_hook(host, &host->tree.list[i], now);
        }
    if (kind == MACHINE_LOOK_LAST || now - host->machine_start >= MACHINE_EVERY_NS)
        use_machine(host, now, kind);
    process_tree_forget(&host->tree);
}

void host_sample_use(struct host_sample *host, uint64_t now)
{
    uint64_t stride = 1 + host->tree.count / (PROCESSES_A_LOOK + 1);
    if (host->calls++ % stride == 0)
        look_at_all(host, now, MACHINE_LOOK);
}

void host_sample_finish(struct host_sample *host, uint64_t now)
{
    look_at_all(host, now, MACHINE_LOOK_LAST);
}

void host_sample_list(struct host_sample *host, uint64_t now)
{
    for (size_t i = 0; i < host->tree.count; i++)
        proc_sample_list(&host->tree.list[i].sample, now);
}

uint64_t host_sample_rss(const struct host_sample *host)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < host->tree.count; i++)
        sum += host->tree.list[i].rss;
    return sum;
}
