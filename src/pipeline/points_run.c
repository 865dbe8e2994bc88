/* A cloud's bytes -> (N, columns) float32: probe, choose, and decode only what was chosen. */
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "base/fail.h"
#include "base/random.h"
#include "codec/points_codec.h"
#include "pipeline/pipeline_impl.h"
#include "transform/points_choose.h"

struct points_work {
    const struct decode_points_args *args;
    struct decode_points_params params;
    const struct stk_bytes *bytes;
    struct points_header header;
    struct scratch *scratch;
    uint64_t columns;
    uint64_t count; /* points to take from; without those that were dropped */
    uint64_t taken; /* of them */
    uint32_t *kept; /* nan="drop": rows that are left; NULL: all */
    uint32_t *rows; /* which are taken, of those that are left; NULL: the first `taken` */
    float *all;     /* nan="drop": all rows, `wide` columns each */
    uint64_t wide;
};

/* Room for so many values of float32, or of uint32_t. */
static void *room_for(struct scratch *scratch, uint64_t rows, uint64_t columns,
                      struct stk_error *err)
{
    uint64_t bytes;
    if (!checked_mul(rows, columns * sizeof(float), &bytes)) {
        fail_memory(err, UINT64_MAX);
        return NULL;
    }
    void *room = scratch_take(scratch, bytes);
    if (!room)
        fail_memory(err, bytes);
    return room;
}

/* Only reading tells which points are NaN, so all are read. */
static stk_status drop_nan(struct points_work *work, struct stk_error *err)
{
    uint64_t stored = (uint64_t)work->header.columns, n = work->count, kept = 0;
    uint64_t checked = stored < 3 ? stored : 3;
    work->wide = work->columns > checked ? work->columns : checked;
    work->all = room_for(work->scratch, n, work->wide, err);
    work->kept = work->all ? room_for(work->scratch, n, 1, err) : NULL;
    if (!work->kept)
        return STK_MEMORY;
    stk_status status = points_read(work->bytes, &work->header, NULL, (int64_t)n,
                                    (int32_t)work->wide, work->all, work->scratch, err);
    for (uint64_t i = 0; !status && i < n; i++) {
        int is_nan = 0;
        for (uint64_t k = 0; k < checked; k++)
            is_nan |= isnan(work->all[i * work->wide + k]) != 0;
        work->kept[kept] = (uint32_t)i;
        kept += !is_nan;
    }
    work->count = kept;
    return status;
}

static stk_status choose(struct points_work *work, struct stk_error *err)
{
    uint64_t wanted = (uint64_t)work->args->count;
    work->taken = !wanted || work->count < wanted ? work->count : wanted;
    if (work->taken == work->count || work->args->sample == POINTS_SAMPLE_FIRST)
        return STK_OK;
    uint64_t *bits = room_for(work->scratch, POINTS_CHOOSE_BITS(work->count), 2, err);
    work->rows = bits ? room_for(work->scratch, work->taken, 1, err) : NULL;
    if (!work->rows)
        return STK_MEMORY;
    points_choose(work->params.key, work->count, work->taken, bits, work->rows);
    return STK_OK;
}

static stk_status take(struct points_work *work, float *to, struct stk_error *err)
{
    if (!work->kept)
        return points_read(work->bytes, &work->header, work->rows, (int64_t)work->taken,
                           (int32_t)work->columns, to, work->scratch, err);
    for (uint64_t i = 0; i < work->taken; i++) {
        uint64_t row = work->kept[work->rows ? work->rows[i] : i];
        memcpy(to + i * work->columns, work->all + row * work->wide, work->columns * sizeof *to);
    }
    return STK_OK;
}

/* Rows from `taken` up to the fixed number: zeros, or points again. */
static stk_status fill_up(const struct points_work *work, float *to, struct stk_error *err)
{
    uint64_t wanted = (uint64_t)work->args->count, size = work->columns * sizeof *to;
    if (wanted <= work->taken)
        return STK_OK;
    if (work->args->pad) {
        memset(to + work->taken * work->columns, 0, (wanted - work->taken) * size);
        return STK_OK;
    }
    if (!work->taken) {
        fail(err, STK_SHAPE, "the cloud has no point that could be repeated");
        fail_remedy(err, "pad with zeros: DecodePoints(pad=True)");
        return STK_SHAPE;
    }
    for (uint64_t i = work->taken; i < wanted; i++)
        memcpy(to + i * work->columns,
               to + random_below(work->params.key, i, work->taken) * work->columns, size);
    return STK_OK;
}

static stk_status begin(struct points_work *work, const struct pipeline *pipeline, uint64_t key,
                        struct stk_flow *flow, struct stk_error *err)
{
    struct step_params params;
    stk_status status = points_probe(work->bytes, &work->header, err);
    if (status)
        return status;
    *flow = (struct stk_flow){.media = STK_MEDIA_POINTS,
                              .tensor = {.dtype = STK_F32,
                                         .rank = 2,
                                         .shape = {work->header.count, work->header.columns}},
                              .real = -1};
    pipeline_draw(pipeline, 0, key, flow, &params);
    memcpy(&work->params, params.bytes, sizeof work->params);
    status = decode_points_transform.shape(work->args, params.bytes, flow, err);
    work->columns = (uint64_t)flow->tensor.shape[1];
    work->count = (uint64_t)work->header.count;
    return status;
}

stk_status points_run(const struct pipeline *pipeline, struct pipeline_state *state,
                      const struct pipeline_input *input, void *place, struct stk_flow *flow,
                      struct stk_error *err)
{
    struct points_work work = {
        .args = pipeline_decode_args(pipeline), .bytes = &input->bytes, .scratch = &state->scratch};
    stk_status status = begin(&work, pipeline, input->key, flow, err);
    if (!status && work.args->nan == POINTS_NAN_DROP)
        status = drop_nan(&work, err);
    if (!status)
        status = choose(&work, err);
    if (status)
        return status;
    uint64_t made = work.args->count ? (uint64_t)work.args->count : work.taken;
    float *to = place ? place : room_for(work.scratch, made, work.columns, err);
    if (!to)
        return STK_MEMORY;
    status = take(&work, to, err);
    if (!status)
        status = fill_up(&work, to, err);
    flow->tensor.data = to;
    flow->tensor.shape[0] = (int64_t)made;
    if (flow->real >= 0)
        flow->real = (int64_t)work.taken;
    return status;
}
