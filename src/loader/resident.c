/* One of two: tensors that are kept as batches pass, or a series that is sent as it lies. */
#include "loader/resident.h"

#include <assert.h>

#include "base/fail.h"
#include "base/memory.h"
#include "loader/resident_series.h"
#include "loader/resident_tensors.h"

struct resident {
    struct stk_dataset *dataset; /* a reference of its own */
    const struct layout *layout;
    struct resident_tensors *tensors; /* this, or.. */
    struct resident_series *series;   /* ..this */
};

stk_status resident_new(struct resident **out, const struct resident_options *options,
                        struct layout *layout, struct stk_error *err)
{
    *out = NULL;
    struct resident *resident = memory_zero(1, sizeof *resident);
    if (!resident)
        return fail_memory(err, sizeof *resident);
    resident->dataset = stk_dataset_keep(options->dataset);
    resident->layout = layout;
    stk_status status = resident_series_fits(options->dataset)
                            ? resident_series_new(&resident->series, options, layout, err)
                            : resident_tensors_new(&resident->tensors, options, layout, err);
    if (status)
        goto done;
    *out = resident;
    resident = NULL;
done:
    resident_free(resident);
    return status;
}

void resident_free(struct resident *resident)
{
    if (!resident)
        return;
    resident_tensors_free(resident->tensors);
    resident_series_free(resident->series);
    stk_dataset_close(resident->dataset);
    memory_free(resident);
}

uint64_t resident_bytes(const struct resident *resident)
{
    return resident->series ? resident_series_bytes(resident->series)
                            : resident_tensors_bytes(resident->tensors);
}

uint64_t resident_samples(const struct resident *resident)
{
    if (resident->tensors)
        return resident_tensors_samples(resident->tensors);
    return resident_series_whole(resident->series) ? stk_dataset_samples(resident->dataset) : 0;
}

int resident_needs_extents(const struct resident *resident)
{
    return resident->series != NULL;
}

uint32_t resident_find(const struct resident *resident, const struct resident_span *span)
{
    return resident->series ? resident_series_find(resident->series, span)
                            : resident_tensors_find(resident->tensors, span);
}

int resident_has(const struct resident *resident, uint64_t sample)
{
    return resident->tensors && resident_tensors_has(resident->tensors, sample);
}

int resident_land(const struct resident *resident, struct box *box, uint32_t place)
{
    int found = 0;
    for (uint32_t f = 0; f < resident->layout->field_count; f++)
        if (resident->layout->fields[f].resident) {
            found |= box->home[f][place] != STK_NOWHERE;
            box->home[f][place] = STK_NOWHERE;
        }
    return found;
}

stk_status resident_gather(struct resident *resident, const struct resident_batch *batch,
                           struct stk_error *err)
{
    assert(resident->layout->fields[batch->field].resident);
    return resident->series ? resident_series_gather(resident->series, batch, err)
                            : resident_tensors_gather(resident->tensors, batch, err);
}

stk_status resident_keep(struct resident *resident, const struct resident_batch *batch,
                         struct stk_error *err)
{
    return resident->series ? STK_OK : resident_tensors_keep(resident->tensors, batch, err);
}

void resident_found(struct resident *resident, const uint64_t *samples, uint32_t count)
{
    if (resident->tensors)
        resident_tensors_found(resident->tensors, samples, count);
}

int resident_feed(struct resident *resident, struct gpu_stream *stream)
{
    return resident->series && resident_series_feed(resident->series, stream);
}
