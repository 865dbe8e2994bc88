#include "watch/host_sums.h"

#include <string.h>

void host_sums_use(struct watch_use *sum, const struct watch_use *use)
{
    uint64_t most = use->rss_bytes > use->most_rss_bytes ? use->rss_bytes : use->most_rss_bytes;
    sum->told |= use->told;
    sum->cpu_user_ns += use->cpu_user_ns;
    sum->cpu_system_ns += use->cpu_system_ns;
    sum->run_delay_ns += use->run_delay_ns;
    sum->block_ns += use->block_ns;
    sum->read_calls_bytes += use->read_calls_bytes;
    sum->write_calls_bytes += use->write_calls_bytes;
    sum->read_bytes += use->read_bytes;
    sum->written_bytes += use->written_bytes;
    sum->minor_faults += use->minor_faults;
    sum->major_faults += use->major_faults;
    sum->rss_bytes = use->rss_bytes;
    if (most > sum->most_rss_bytes)
        sum->most_rss_bytes = most;
}

/* The entry of a thread; else a free one, or that of the least. Sums only grow: a smaller one is of
 * another thread that got the same number. */
static struct summary_thread *find_entry(struct host_sums *sums, uint32_t pid,
                                         const struct watch_thread *thread)
{
    struct summary_thread *least = &sums->threads[0];
    for (size_t i = 0; i < sums->thread_count; i++) {
        struct summary_thread *one = &sums->threads[i];
        if (one->pid == pid && one->thread == thread->thread && one->cpu_ns <= thread->cpu_sum_ns)
            return one;
        if (one->cpu_ns < least->cpu_ns)
            least = one;
    }
    if (sums->thread_count < SUMMARY_THREADS)
        return &sums->threads[sums->thread_count++];
    return least->cpu_ns < thread->cpu_sum_ns ? least : NULL;
}

void host_sums_thread(struct host_sums *sums, uint32_t pid, const struct watch_thread *thread)
{
    struct summary_thread *entry = find_entry(sums, pid, thread);
    if (!entry)
        return;
    *entry = (struct summary_thread){.pid = pid,
                                     .thread = thread->thread,
                                     .cpu_ns = thread->cpu_sum_ns,
                                     .run_delay_ns = thread->run_delay_sum_ns};
    memcpy(entry->name, thread->name, sizeof entry->name);
}

void host_sums_machine(struct host_sums *sums, const struct watch_machine *machine)
{
    struct watch_machine *sum = &sums->machine;
    sum->told |= machine->told;
    sum->disk_read_bytes += machine->disk_read_bytes;
    sum->disk_written_bytes += machine->disk_written_bytes;
    sum->network_in_bytes += machine->network_in_bytes;
    sum->network_out_bytes += machine->network_out_bytes;
}

static void add_rate(struct pcie_sum *sum, uint64_t rate)
{
    if (rate == STK_DEVICE_UNKNOWN)
        return;
    sum->samples++;
    sum->sum += rate;
    if (rate > sum->most)
        sum->most = rate;
}

void host_sums_device(struct host_sums *sums, const struct watch_device *device)
{
    if (device->device >= SUMMARY_DEVICES)
        return;
    sums->devices[device->device].seen = 1;
    add_rate(&sums->devices[device->device].in, device->pcie_in_bytes_s);
    add_rate(&sums->devices[device->device].out, device->pcie_out_bytes_s);
}

static struct summary_rate rate_of(const struct pcie_sum *sum)
{
    return (struct summary_rate){.told = sum->samples > 0,
                                 .mean = sum->samples ? sum->sum / sum->samples : 0,
                                 .most = sum->most};
}

static void devices_fill(const struct host_sums *sums, struct summary *out)
{
    for (uint32_t i = 0; i < SUMMARY_DEVICES; i++)
        if (sums->devices[i].seen)
            out->devices[out->device_count++] =
                (struct summary_device){.device = i,
                                        .pcie_in = rate_of(&sums->devices[i].in),
                                        .pcie_out = rate_of(&sums->devices[i].out)};
}

void host_sums_summary(const struct host_sums *sums, struct summary *out)
{
    const struct watch_machine *machine = &sums->machine;
    out->machine_io = (struct summary_machine_io){.told = machine->told,
                                                  .disk_read = machine->disk_read_bytes,
                                                  .disk_written = machine->disk_written_bytes,
                                                  .network_in = machine->network_in_bytes,
                                                  .network_out = machine->network_out_bytes};
    devices_fill(sums, out);
    out->thread_count = sums->thread_count;
    for (size_t i = 0; i < sums->thread_count; i++) { /* the most first */
        size_t at = i;
        for (; at > 0 && out->threads[at - 1].cpu_ns < sums->threads[i].cpu_ns; at--)
            out->threads[at] = out->threads[at - 1];
        out->threads[at] = sums->threads[i];
    }
}
