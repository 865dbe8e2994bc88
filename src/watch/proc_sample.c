#include "watch/proc_sample.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/parse.h"

#define PROC_TEXT 1024
#define QUIET_MOST 8 /* looks that a thread which does nothing is left out, at most */

/* --- texts ------------------------------------------------------------------------------------ */

/* The next number of a list separated by spaces; moves *text behind it. 0: there is none. */
static int next_number(const char **text, const char *end, uint64_t *out)
{
    const char *from = *text;
    uint64_t number = 0;
    while (from < end && (*from == ' ' || *from == '\t'))
        from++;
    int negative = from < end && *from == '-'; /* some fields are -1 for "none" */
    from += negative;
    if (from >= end || *from < '0' || *from > '9')
        return 0;
    for (; from < end && *from >= '0' && *from <= '9'; from++)
        number = number * 10 + (uint64_t)(*from - '0');
    *text = from;
    *out = negative ? 0 : number;
    return 1;
}

/* proc(5), /proc/pid/stat: the name may hold anything, so its end is the last parenthesis. */
int proc_parse_stat(const char *text, size_t len, struct proc_stat *out)
{
    uint64_t fields[53] = {0};
    const char *end = text + len;
    const char *open = memchr(text, '(', len), *close = memrchr(text, ')', len);
    if (!open || !close || close < open || end - close < 4)
        return 0;
    size_t name_len = (size_t)(close - open - 1);
    if (name_len > sizeof out->name - 1)
        name_len = sizeof out->name - 1;
    memset(out, 0, sizeof *out);
    memcpy(out->name, open + 1, name_len);
    out->state = close[2];
    const char *from = close + 3;
    int field = 4;
    while (field < 53 && next_number(&from, end, &fields[field]))
        field++;
    if (field < 25)
        return 0;
    out->parent = (uint32_t)fields[4];
    out->minor_faults = fields[10];
    out->children_faults = fields[11];
    out->major_faults = fields[12];
    out->user = fields[14];
    out->system = fields[15];
    out->children = fields[16] + fields[17];
    out->threads = (uint32_t)fields[20];
    out->started = fields[22];
    out->rss_pages = fields[24];
    out->blocked = fields[42];
    return 1;
}

int proc_parse_schedstat(const char *text, size_t len, uint64_t *cpu, uint64_t *delay)
{
    const char *end = text + len;
    uint64_t first, second;
    if (!next_number(&text, end, &first) || !next_number(&text, end, &second))
        return 0;
    *cpu = first;
    *delay = second;
    return 1;
}

static int named_number(const char *text, size_t len, const char *name, uint64_t *out)
{
    const char *found = memmem(text, len, name, strlen(name));
    if (!found)
        return 0;
    found += strlen(name);
    return next_number(&found, text + len, out);
}

int proc_parse_io(const char *text, size_t len, struct proc_io *out)
{
    return named_number(text, len, "rchar:", &out->read_calls) &&
           named_number(text, len, "\nwchar:", &out->write_calls) &&
           named_number(text, len, "\nread_bytes:", &out->read) &&
           named_number(text, len, "\nwrite_bytes:", &out->written);
}

/* --- files ------------------------------------------------------------------------------------ */

size_t proc_read(const char *path, char *buf, size_t cap)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t len = fd >= 0 ? read(fd, buf, cap - 1) : -1;
    if (fd >= 0)
        close(fd);
    buf[len > 0 ? len : 0] = '\0';
    return len > 0 ? (size_t)len : 0;
}

size_t proc_read_lines(const char *path, char *buf, size_t cap)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    size_t len = 0;
    for (ssize_t more = 1; fd >= 0 && more > 0 && len<cap - 1; len += more> 0 ? (size_t)more : 0)
        more = read(fd, buf + len, cap - 1 - len);
    if (fd >= 0)
        close(fd);
    while (len > 0 && buf[len - 1] != '\n')
        len--;
    buf[len] = '\0';
    return len;
}

uint64_t proc_tick_ns(void)
{
    long hz = sysconf(_SC_CLK_TCK);
    return hz > 0 ? 1000000000u / (uint64_t)hz : 10000000u;
}

/* Reads by the kept file, or opens it and keeps it while the budget lasts. */
static size_t read_kept(int *fd, int *budget, const char *path, char *buf, size_t cap)
{
    if (*fd < 0 && *budget <= 0)
        return proc_read(path, buf, cap);
    if (*fd < 0) {
        *fd = open(path, O_RDONLY | O_CLOEXEC);
        if (*fd < 0)
            return 0;
        --*budget;
    }
    ssize_t len = pread(*fd, buf, cap - 1, 0);
    buf[len > 0 ? len : 0] = '\0';
    return len > 0 ? (size_t)len : 0;
}

static void drop_kept(int *fd, int *budget)
{
    if (*fd < 0)
        return;
    close(*fd);
    *fd = -1;
    ++*budget;
}

/* --- threads ---------------------------------------------------------------------------------- */

static int read_thread(struct proc_sample *sample, struct proc_thread *thread, uint64_t *cpu,
                       uint64_t *delay)
{
    char path[64], text[128];
    snprintf(path, sizeof path, "/proc/%u/task/%u/schedstat", sample->pid, thread->thread);
    size_t len = read_kept(&thread->fd, sample->budget, path, text, sizeof text);
    return proc_parse_schedstat(text, len, cpu, delay);
}

/* How long a thread waited for disks since it was asked last. Asked for only where the kernel
 * counts that, for it is the dearest of these files. */
static uint64_t read_blocked(struct proc_sample *sample, struct proc_thread *thread)
{
    char path[64], text[PROC_TEXT];
    struct proc_stat stat;
    uint64_t before = thread->blocked;
    snprintf(path, sizeof path, "/proc/%u/task/%u/stat", sample->pid, thread->thread);
    size_t len = thread->thread == sample->pid
                     ? read_kept(&sample->main_fd, sample->budget, path, text, sizeof text)
                     : proc_read(path, text, sizeof text);
    if (!proc_parse_stat(text, len, &stat) || stat.blocked < before)
        return 0;
    thread->blocked = stat.blocked;
    return (stat.blocked - before) * proc_tick_ns();
}

static struct proc_thread *find_thread(struct proc_sample *sample, uint32_t number)
{
    for (size_t i = 0; i < sample->thread_count; i++)
        if (sample->threads[i].thread == number)
            return &sample->threads[i];
    return NULL;
}

static void read_name(const struct proc_sample *sample, struct proc_thread *thread)
{
    char path[64], name[32];
    snprintf(path, sizeof path, "/proc/%u/task/%u/comm", sample->pid, thread->thread);
    if (proc_read(path, name, sizeof name))
        snprintf(thread->name, sizeof thread->name, "%.*s", (int)strcspn(name, "\n"), name);
}

static void add_thread(struct proc_sample *sample, uint32_t number, uint64_t now)
{
    if (sample->thread_count == PROC_THREADS_MOST)
        return;
    if (sample->thread_count == sample->thread_room) {
        size_t room = sample->thread_room ? 2 * sample->thread_room : 8;
        void *grown = memory_grow(sample->threads, room * sizeof *sample->threads);
        if (!grown)
            return; /* it is told by the others */
        sample->threads = grown;
        sample->thread_room = room;
    }
    struct proc_thread *thread = &sample->threads[sample->thread_count];
    *thread = (struct proc_thread){.thread = number, .fd = -1, .seen = 1, .looked = now};
    if (!read_thread(sample, thread, &thread->cpu, &thread->delay)) {
        drop_kept(&thread->fd, sample->budget);
        return;
    }
    read_name(sample, thread);
    sample->delay += thread->delay;
    sample->thread_count++;
    sample->told |= USE_DELAY;
}

/* What is dear, of a thread that is listed again. Threads get their names after they began, most
 * of them soon. The main thread's waits are the process's own. */
static void look_closer(struct proc_sample *sample, struct proc_thread *thread)
{
    uint64_t before = thread->listed_cpu;
    thread->seen = 1;
    thread->listed_cpu = thread->cpu;
    thread->listed++;
    if ((thread->listed & (thread->listed - 1)) == 0)
        read_name(sample, thread);
    if (thread->cpu > before && thread->thread != sample->pid && sample->told & USE_BLOCK)
        sample->block += read_blocked(sample, thread);
}

/* The kernel's own mark is higher than what looks have seen. */
static void read_most_rss(struct proc_sample *sample)
{
    char path[64], text[2 * PROC_TEXT];
    uint64_t kib;
    snprintf(path, sizeof path, "/proc/%u/status", sample->pid);
    size_t len = proc_read(path, text, sizeof text);
    if (named_number(text, len, "\nVmHWM:", &kib)) /* a zombie has none any more */
        sample->most_rss = kib * 1024;
}

void proc_sample_list(struct proc_sample *sample, uint64_t now)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%u/task", sample->pid);
    DIR *folder = opendir(path);
    if (!folder)
        return;
    for (size_t i = 0; i < sample->thread_count; i++)
        sample->threads[i].seen = 0;
    for (struct dirent *entry; (entry = readdir(folder));) {
        uint64_t number;
        if (!parse_u64(entry->d_name, strlen(entry->d_name), &number) || number > UINT32_MAX)
            continue;
        struct proc_thread *thread = find_thread(sample, (uint32_t)number);
        if (thread)
            look_closer(sample, thread);
        else
            add_thread(sample, (uint32_t)number, now);
    }
    closedir(folder);
    size_t kept = 0;
    for (size_t i = 0; i < sample->thread_count; i++) {
        if (sample->threads[i].seen)
            sample->threads[kept++] = sample->threads[i];
        else
            drop_kept(&sample->threads[i].fd, sample->budget);
    }
    sample->thread_count = kept;
    read_most_rss(sample);
}

/* Kernels before 5.14 count whenever they can, and have no switch. */
static int delays_are_counted(void)
{
    char text[16];
    return proc_read("/proc/sys/kernel/task_delayacct", text, sizeof text) == 0 || text[0] != '0';
}

void proc_sample_threads(struct proc_sample *sample, uint64_t now,
                         void (*take)(void *user, uint32_t pid, uint64_t start, uint64_t end,
                                      const struct watch_thread *thread),
                         void *user)
{
    for (size_t i = 0; i < sample->thread_count; i++) {
        struct proc_thread *thread = &sample->threads[i];
        uint64_t cpu, delay;
        if (thread->rest > 0) {
            thread->rest--;
            continue;
        }
        if (!read_thread(sample, thread, &cpu, &delay) || cpu < thread->cpu ||
            delay < thread->delay)
            continue;
        struct watch_thread out = {.thread = thread->thread,
                                   .cpu_ns = cpu - thread->cpu,
                                   .run_delay_ns = delay - thread->delay,
                                   .cpu_sum_ns = cpu - thread->cpu_base,
                                   .run_delay_sum_ns = delay - thread->delay_base,
                                   .state = cpu > thread->cpu ? 'R' : 'S'};
        memcpy(out.name, thread->name, sizeof out.name);
        int is_main = thread->thread == sample->pid;
        thread->quiet = out.cpu_ns || is_main ? 0 : thread->quiet + 1;
        thread->rest = thread->quiet < QUIET_MOST ? thread->quiet : QUIET_MOST;
        /* One that ran most of the time did not wait. */
        if (is_main && sample->told & USE_BLOCK && 2 * out.cpu_ns < now - thread->looked)
            out.block_ns = read_blocked(sample, thread);
        if (out.block_ns)
            out.state = 'D';
        sample->delay += out.run_delay_ns;
        if (out.cpu_ns || out.run_delay_ns || is_main || !thread->is_told)
            take(user, sample->pid, thread->looked, now, &out);
        thread->is_told = 1;
        thread->cpu = cpu;
        thread->delay = delay;
        thread->looked = now;
    }
}

/* --- processes -------------------------------------------------------------------------------- */

static int read_stat(struct proc_sample *sample, struct proc_stat *out)
{
    char path[64], text[PROC_TEXT];
    snprintf(path, sizeof path, "/proc/%u/stat", sample->pid);
    size_t len = read_kept(&sample->stat_fd, sample->budget, path, text, sizeof text);
    return proc_parse_stat(text, len, out);
}

static void read_io(struct proc_sample *sample, struct proc_io *out)
{
    char path[64], text[PROC_TEXT];
    snprintf(path, sizeof path, "/proc/%u/io", sample->pid);
    size_t len = read_kept(&sample->io_fd, sample->budget, path, text, sizeof text);
    if (proc_parse_io(text, len, out))
        sample->told |= USE_IO;
    else
        *out = sample->io; /* a process of another user does not tell */
}

int proc_sample_open(struct proc_sample *sample, uint32_t pid, uint64_t now, int *budget)
{
    *sample = (struct proc_sample){
        .pid = pid, .stat_fd = -1, .io_fd = -1, .main_fd = -1, .looked = now, .budget = budget};
    if (!read_stat(sample, &sample->stat) || sample->stat.state == 'Z') {
        proc_sample_close(sample);
        return 0;
    }
    sample->told = USE_STAT | (delays_are_counted() ? USE_BLOCK : 0);
    read_io(sample, &sample->io);
    proc_sample_list(sample, now);
    sample->delay = 0;
    for (size_t i = 0; i < sample->thread_count; i++) { /* from now on */
        struct proc_thread *thread = &sample->threads[i];
        thread->cpu_base = thread->cpu;
        thread->delay_base = thread->delay;
        if (sample->told & USE_BLOCK)
            (void)read_blocked(sample, thread);
    }
    return 1;
}

void proc_sample_from_birth(struct proc_sample *sample)
{
    struct proc_stat *stat = &sample->stat;
    stat->user = stat->system = stat->children = stat->blocked = 0;
    stat->minor_faults = stat->major_faults = stat->children_faults = 0;
    sample->io = (struct proc_io){0};
    for (size_t i = 0; i < sample->thread_count; i++) {
        struct proc_thread *thread = &sample->threads[i];
        sample->delay += thread->delay_base;
        thread->cpu_base = thread->delay_base = 0;
    }
}

void proc_sample_close(struct proc_sample *sample)
{
    if (!sample->budget)
        return;
    for (size_t i = 0; i < sample->thread_count; i++)
        drop_kept(&sample->threads[i].fd, sample->budget);
    drop_kept(&sample->stat_fd, sample->budget);
    drop_kept(&sample->io_fd, sample->budget);
    drop_kept(&sample->main_fd, sample->budget);
    memory_free(sample->threads);
    *sample = (struct proc_sample){.stat_fd = -1, .io_fd = -1, .main_fd = -1};
}

static uint64_t since(uint64_t now, uint64_t before)
{
    return now > before ? now - before : 0;
}

void proc_sample_child(struct proc_sample *parent, const struct proc_sample *child)
{
    parent->credit.read_calls += child->io.read_calls;
    parent->credit.write_calls += child->io.write_calls;
    parent->credit.read += child->io.read;
    parent->credit.written += child->io.written;
}

/* What a process read or wrote since the last look, less what is known of its children. */
static uint64_t own_bytes(uint64_t now, uint64_t before, uint64_t *credit)
{
    uint64_t grown = since(now, before), known = grown < *credit ? grown : *credit;
    *credit -= known;
    return grown - known;
}

int proc_sample_use(struct proc_sample *sample, uint64_t now, uint64_t *start,
                    struct watch_use *out)
{
    struct proc_stat stat, *last = &sample->stat;
    struct proc_io io = {0}, none = {0};
    uint64_t tick = proc_tick_ns();
    if (!read_stat(sample, &stat) || stat.started != last->started)
        return 0;
    read_io(sample, &io);
    /* Who does not wait for its children never gets what they did. */
    struct proc_io *credit = stat.children_faults > last->children_faults ? &sample->credit : &none;
    *out = (struct watch_use){
        .told = sample->told,
        .cpu_user_ns = since(stat.user, last->user) * tick,
        .cpu_system_ns = since(stat.system, last->system) * tick,
        .run_delay_ns = sample->delay,
        .block_ns = sample->block + since(stat.blocked, last->blocked) * tick,
        .read_calls_bytes = own_bytes(io.read_calls, sample->io.read_calls, &credit->read_calls),
        .write_calls_bytes =
            own_bytes(io.write_calls, sample->io.write_calls, &credit->write_calls),
        .read_bytes = own_bytes(io.read, sample->io.read, &credit->read),
        .written_bytes = own_bytes(io.written, sample->io.written, &credit->written),
        .minor_faults = since(stat.minor_faults, last->minor_faults),
        .major_faults = since(stat.major_faults, last->major_faults),
        .rss_bytes = stat.rss_pages * (uint64_t)sysconf(_SC_PAGESIZE),
        .most_rss_bytes = sample->most_rss,
        .threads = stat.threads,
    };
    *start = sample->looked;
    sample->stat = stat;
    sample->io = io;
    sample->delay = sample->block = 0;
    sample->looked = now;
    return 1;
}
