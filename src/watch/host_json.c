#include "watch/host_json.h"

#include "watch/event.h"
#include "watch/secret_mask.h"

static void put_told(struct json_pen *pen, const char *name, unsigned told, uint64_t value)
{
    if (told)
        json_pen_u64(pen, name, value);
    else
        json_pen_null(pen, name);
}

static void put_told_seconds(struct json_pen *pen, const char *name, unsigned told, uint64_t ns)
{
    if (told)
        json_pen_seconds(pen, name, ns);
    else
        json_pen_null(pen, name);
}

static void put_process(struct json_pen *pen, const struct summary_process *process)
{
    struct text name = {0};
    unsigned told = process->told;
    secret_mask_line(&name, process->name);
    json_pen_open(pen, NULL, '{');
    json_pen_u64(pen, "pid", process->pid);
    json_pen_text(pen, "role", process->role);
    json_pen_text(pen, "name", name.data ? name.data : "");
    json_pen_count(pen, "rank", process->rank);
    json_pen_count(pen, "worker", process->worker);
    put_told_seconds(pen, "cpu_s", told & USE_STAT, process->cpu_ns);
    put_told_seconds(pen, "run_delay_s", told & USE_DELAY, process->run_delay_ns);
    put_told_seconds(pen, "io_wait_s", told & USE_BLOCK, process->block_ns);
    put_told(pen, "read_bytes", told & USE_IO, process->read_bytes);
    put_told(pen, "written_bytes", told & USE_IO, process->written_bytes);
    put_told(pen, "read_calls_bytes", told & USE_IO, process->read_calls_bytes);
    put_told(pen, "write_calls_bytes", told & USE_IO, process->write_calls_bytes);
    put_told(pen, "minor_faults", told & USE_STAT, process->minor_faults);
    put_told(pen, "major_faults", told & USE_STAT, process->major_faults);
    put_told(pen, "max_rss_bytes", told & USE_STAT, process->max_rss);
    json_pen_close(pen, '}');
    pen->text.failed |= name.failed;
    text_free(&name);
}

static void put_thread(struct json_pen *pen, const struct summary_thread *thread)
{
    json_pen_open(pen, NULL, '{');
    json_pen_u64(pen, "pid", thread->pid);
    json_pen_u64(pen, "thread", thread->thread);
    json_pen_text(pen, "name", thread->name);
    json_pen_seconds(pen, "cpu_s", thread->cpu_ns);
    json_pen_seconds(pen, "run_delay_s", thread->run_delay_ns);
    json_pen_close(pen, '}');
}

static void put_machine_io(struct json_pen *pen, const struct summary_machine_io *io)
{
    json_pen_open(pen, "machine_io", '{');
    put_told(pen, "disk_read_bytes", io->told & MACHINE_DISKS, io->disk_read);
    put_told(pen, "disk_written_bytes", io->told & MACHINE_DISKS, io->disk_written);
    put_told(pen, "network_received_bytes", io->told & MACHINE_NETWORK, io->network_in);
    put_told(pen, "network_sent_bytes", io->told & MACHINE_NETWORK, io->network_out);
    json_pen_close(pen, '}');
}

static void put_rate(struct json_pen *pen, const char *name, const struct summary_rate *rate)
{
    json_pen_open(pen, name, '{');
    put_told(pen, "mean", (unsigned)rate->told, rate->mean);
    put_told(pen, "peak", (unsigned)rate->told, rate->most);
    json_pen_close(pen, '}');
}

static void put_device(struct json_pen *pen, const struct summary_device *device)
{
    json_pen_open(pen, NULL, '{');
    json_pen_u64(pen, "device", device->device);
    put_rate(pen, "pcie_received_bytes_s", &device->pcie_in);
    put_rate(pen, "pcie_sent_bytes_s", &device->pcie_out);
    json_pen_close(pen, '}');
}

void host_json_put(struct json_pen *pen, const struct summary *summary)
{
    json_pen_open(pen, "processes", '[');
    for (size_t i = 0; i < summary->process_count; i++)
        put_process(pen, &summary->processes[i]);
    json_pen_close(pen, ']');
    json_pen_open(pen, "threads", '[');
    for (size_t i = 0; i < summary->thread_count; i++)
        put_thread(pen, &summary->threads[i]);
    json_pen_close(pen, ']');
    put_machine_io(pen, &summary->machine_io);
    json_pen_open(pen, "devices", '[');
    for (size_t i = 0; i < summary->device_count; i++)
        put_device(pen, &summary->devices[i]);
    json_pen_close(pen, ']');
}
