#include "watch/machine_sample.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "watch/proc_sample.h"

#define FAR_NS UINT64_C(1000000000)
#define TEXT_MOST 65536

/* --- texts ------------------------------------------------------------------------------------ */

int machine_parse_cpu(const char *text, size_t len, uint64_t *busy, uint64_t *iowait)
{
    uint64_t user, nice, system, idle, wait, irq, soft, stolen;
    if (len < 5 || strncmp(text, "cpu ", 4) ||
        sscanf(text + 4,
               "%" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64
               " %" SCNu64,
               &user, &nice, &system, &idle, &wait, &irq, &soft, &stolen) != 8)
        return 0;
    *busy = user + nice + system + irq + soft;
    *iowait = wait;
    return 1;
}

/* sda, vda, nvme0n1, mmcblk0; not sda1, nvme0n1p1, dm-0, loop0, ram0, md0. */
static int is_whole_disk(const char *name)
{
    size_t len = strlen(name);
    if (!strncmp(name, "nvme", 4))
        return strchr(name, 'n') && strchr(name + 1, 'n') && !strchr(name + 4, 'p');
    if (!strncmp(name, "mmcblk", 6))
        return !strchr(name + 6, 'p');
    if (!strncmp(name, "sd", 2) || !strncmp(name, "vd", 2) || !strncmp(name, "xvd", 3) ||
        !strncmp(name, "hd", 2))
        return len > 0 && !isdigit((unsigned char)name[len - 1]);
    return 0;
}

static const char *next_line(const char *line, const char *end)
{
    const char *newline = memchr(line, '\n', (size_t)(end - line));
    return newline ? newline + 1 : end;
}

/* A line of a text in a buffer of its own; 0: it is too long. */
static int copy_line(const char *line, const char *end, char out[256])
{
    size_t len = (size_t)(next_line(line, end) - line);
    if (len >= 256)
        return 0;
    memcpy(out, line, len);
    out[len] = '\0';
    return 1;
}

int machine_parse_disks(const char *text, size_t len, uint64_t *read, uint64_t *written)
{
    const char *end = text + len;
    char line[256], name[64];
    int found = 0;
    *read = *written = 0;
    for (; text < end; text = next_line(text, end)) {
        uint64_t sectors_read, sectors_written;
        if (copy_line(text, end, line) &&
            sscanf(line, "%*u %*u %63s %*u %*u %" SCNu64 " %*u %*u %*u %" SCNu64, name,
                   &sectors_read, &sectors_written) == 3 &&
            is_whole_disk(name)) {
            *read += sectors_read * 512; /* the kernel's unit, whatever the disk's */
            *written += sectors_written * 512;
            found = 1;
        }
    }
    return found;
}

int machine_parse_network(const char *text, size_t len, uint64_t *in, uint64_t *out)
{
    const char *end = text + len;
    char line[256];
    int found = 0;
    *in = *out = 0;
    for (; text < end; text = next_line(text, end)) {
        uint64_t received, sent;
        char *colon = copy_line(text, end, line) ? strchr(line, ':') : NULL;
        if (!colon)
            continue;
        *colon = '\0';
        const char *name = line + strspn(line, " ");
        if (sscanf(colon + 1, "%" SCNu64 " %*u %*u %*u %*u %*u %*u %*u %" SCNu64, &received,
                   &sent) != 2)
            continue;
        found = 1;
        if (strcmp(name, "lo")) {
            *in += received;
            *out += sent;
        }
    }
    return found;
}

uint64_t machine_parse_memory(const char *text, size_t len, const char *name)
{
    const char *found = memmem(text, len, name, strlen(name));
    uint64_t kib;
    if (!found || sscanf(found + strlen(name), " %" SCNu64, &kib) != 1)
        return 0;
    return kib * 1024;
}

uint64_t machine_memory(void)
{
    char text[TEXT_MOST];
    size_t len = proc_read("/proc/meminfo", text, sizeof text);
    return machine_parse_memory(text, len, "MemTotal:");
}

/* --- looks ------------------------------------------------------------------------------------ */

static uint64_t since(uint64_t now, uint64_t before)
{
    return now > before ? now - before : 0;
}

static void look_near(struct machine_sample *sample)
{
    char text[512]; /* the first line is all that is wanted */
    size_t len = proc_read("/proc/stat", text, sizeof text);
    (void)machine_parse_cpu(text, len, &sample->busy, &sample->iowait);
}

static void look_far(struct machine_sample *sample)
{
    char text[TEXT_MOST];
    size_t len = proc_read_lines("/proc/diskstats", text, sizeof text);
    sample->told = 0;
    if (machine_parse_disks(text, len, &sample->disk_read, &sample->disk_written))
        sample->told |= MACHINE_DISKS;
    len = proc_read_lines("/proc/net/dev", text, sizeof text);
    if (machine_parse_network(text, len, &sample->network_in, &sample->network_out))
        sample->told |= MACHINE_NETWORK;
    len = proc_read("/proc/meminfo", text, sizeof text);
    sample->memory_free = machine_parse_memory(text, len, "MemAvailable:");
}

void machine_sample_open(struct machine_sample *sample, uint64_t now)
{
    *sample = (struct machine_sample){.looked = now, .looked_far = now};
    look_near(sample);
    look_far(sample);
}

void machine_sample_take(struct machine_sample *sample, uint64_t now, enum machine_look_kind kind,
                         struct watch_machine *out)
{
    struct machine_sample last = *sample;
    uint64_t tick = proc_tick_ns();
    look_near(sample);
    sample->looked = now;
    int is_far = kind == MACHINE_LOOK_LAST || now - sample->looked_far >= FAR_NS;
    if (is_far) {
        look_far(sample);
        sample->looked_far = now;
    }
    *out = (struct watch_machine){
        .cpu_busy_ns = since(sample->busy, last.busy) * tick,
        .cpu_iowait_ns = since(sample->iowait, last.iowait) * tick,
        .memory_free_bytes = sample->memory_free,
        .told = is_far ? sample->told & last.told : 0,
        .io_ns = now - last.looked_far,
    };
    if (out->told & MACHINE_DISKS) {
        out->disk_read_bytes = since(sample->disk_read, last.disk_read);
        out->disk_written_bytes = since(sample->disk_written, last.disk_written);
    }
    if (out->told & MACHINE_NETWORK) {
        out->network_in_bytes = since(sample->network_in, last.network_in);
        out->network_out_bytes = since(sample->network_out, last.network_out);
    }
}
