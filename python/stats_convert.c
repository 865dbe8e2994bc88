#include "stats_convert.h"

#include "convert.h"

struct stats_count {
    const char *name;
    uint64_t value;
};

static int stats_put(PyObject *dict, const struct stats_count *counts, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!convert_put(dict, counts[i].name, PyLong_FromUnsignedLongLong(counts[i].value)))
            return 0;
    return 1;
}

static PyObject *stats_waits(const struct stk_wait *waits)
{
    return Py_BuildValue("{sdsdsdsd}", "fetch", waits->fetch, "fill", waits->fill, "ship",
                         waits->ship, "consumer", waits->consumer);
}

static PyObject *stats_device(const struct stk_device_stats *device)
{
    if (!device->name[0])
        Py_RETURN_NONE;
    const struct stats_count counts[] = {
        {"held_bytes", device->held_bytes},
        {"peak_bytes", device->peak_bytes},
        {"caller_bytes", device->caller_bytes},
        {"caller_peak_bytes", device->caller_peak_bytes},
        {"shipped_bytes", device->shipped_bytes},
        {"pinned_bytes", device->pinned_bytes},
        {"pageable_batches", device->pageable_batches},
        {"resident_bytes", device->resident_bytes},
        {"resident_samples", device->resident_samples},
        {"resident_batches", device->resident_batches},
        {"gpu_decoded", device->gpu_decoded},
        {"cpu_decoded", device->cpu_decoded},
        {"decode_bytes", device->decode_bytes},
    };
    PyObject *dict = PyDict_New();
    if (dict && convert_put(dict, "name", convert_path(device->name)) &&
        stats_put(dict, counts, sizeof counts / sizeof *counts) &&
        convert_put(dict, "decode_share", PyFloat_FromDouble(device->decode_share)))
        return dict;
    Py_XDECREF(dict);
    return NULL;
}

PyObject *stats_convert(const struct stk_loader_stats *stats)
{
    const struct stats_count counts[] = {
        {"samples", stats->samples},
        {"batches", stats->batches},
        {"bytes", stats->bytes},
        {"bad", stats->bad},
        {"held_bytes", stats->held_bytes},
        {"peak_bytes", stats->peak_bytes},
        {"caller_bytes", stats->caller_bytes},
        {"caller_peak_bytes", stats->caller_peak_bytes},
        {"reads", stats->reads},
        {"merged_reads", stats->merged_reads},
        {"mapped_copies", stats->mapped_copies},
        {"chunks_decoded", stats->chunks_decoded},
        {"threads", stats->threads},
    };
    PyObject *dict = PyDict_New();
    if (dict && stats_put(dict, counts, sizeof counts / sizeof *counts) &&
        convert_put(dict, "seconds", PyFloat_FromDouble(stats->seconds)) &&
        convert_put(dict, "waits", stats_waits(&stats->waits)) &&
        convert_put(dict, "io", PyUnicode_FromString(stats->io)) &&
        convert_put(dict, "device", stats_device(&stats->device)))
        return dict;
    Py_XDECREF(dict);
    return NULL;
}
