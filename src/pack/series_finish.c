#include "pack/series_finish.h"

#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "base/fail.h"
#include "base/hash.h"
#include "base/memory.h"
#include "format/series_meta.h"
#include "pack/pack_crew.h"
#include "pack/read_all.h"
#include "pack/series_convert.h"
#include "pack/write_all.h"

/* The array is one run of elements, cut into blocks whatever the length of a row: no element lies
 * in two blocks. */
struct finisher {
    const struct series_finish *finish;
    struct series_convert convert;
    uint32_t columns;
    uint64_t elements, block_elements;
    size_t in_size, out_size; /* of an element */
    uint64_t *hashes;
    int is_same; /* the spool is the array as it is: hashes are all that is left to do */
    /* FFILL: values run on from block to block, so that blocks are read and filled as they are
     * claimed, one at a time. In place this also reads a block before anyone writes it. */
    double *carry;       /* [columns]; NaN: nothing was seen yet */
    uint64_t entity;     /* where filling stands */
    uint64_t entity_end; /* in elements */
    struct finish_worker {
        void *in, *out;
    } * workers;
    uint32_t worker_count;
};

static uint64_t block_length(const struct finisher *finisher, uint64_t block)
{
    uint64_t left = finisher->elements - block * finisher->block_elements;

    return left < finisher->block_elements ? left : finisher->block_elements;
}

static stk_status block_read(const struct finisher *finisher, uint64_t block, void *to,
                             struct stk_error *err)
{
    const struct series_finish *finish = finisher->finish;
    const struct read_file file = {row_spool_values_fd(finish->spool), finish->label};
    uint64_t offset = block * finisher->block_elements * finisher->in_size;

    return read_all_at(&file, offset, to, block_length(finisher, block) * finisher->in_size, err);
}

/* --- filling forward ------------------------------------------------------------------------- */

static double element_get(const struct finisher *finisher, const void *in, uint64_t at)
{
    return finisher->in_size == sizeof(float) ? (double)((const float *)in)[at]
                                              : ((const double *)in)[at];
}

static void element_put(const struct finisher *finisher, void *in, uint64_t at, double value)
{
    if (finisher->in_size == sizeof(float))
        ((float *)in)[at] = (float)value;
    else
        ((double *)in)[at] = value;
}

/* To the entity that the element belongs to: nothing of another one is carried into it. */
static stk_status carry_restart(struct finisher *finisher, uint64_t element, struct stk_error *err)
{
    const struct series_finish *finish = finisher->finish;

    while (element >= finisher->entity_end) {
        finisher->entity++;
        finisher->entity_end += finish->entities[finisher->entity].rows * finisher->columns;
    }
    for (uint32_t c = 0; c < finisher->columns; c++)
        finisher->carry[c] = NAN;
    const struct finish_entity *entity = &finish->entities[finisher->entity];
    if (entity->before && finish->last)
        return finish->last(finish->last_user, entity->number, finisher->carry, err);
    return STK_OK;
}

/* What is before the first value stays NaN: the conversion makes the mean of it. */
static stk_status block_carry(struct finisher *finisher, uint64_t block, void *in,
                              struct stk_error *err)
{
    uint64_t first = block * finisher->block_elements, n = block_length(finisher, block);
    uint32_t column = (uint32_t)(first % finisher->columns);

    for (uint64_t i = 0; i < n; i++) {
        if (first + i >= finisher->entity_end) {
            stk_status status = carry_restart(finisher, first + i, err);
            if (status)
                return status;
        }
        double value = element_get(finisher, in, i);
        if (value == value)
            finisher->carry[column] = value;
        else
            element_put(finisher, in, i, finisher->carry[column]);
        column = column + 1 == finisher->columns ? 0 : column + 1;
    }
    return STK_OK;
}

/* --- a block --------------------------------------------------------------------------------- */

static stk_status fail_value(const struct finisher *finisher, uint64_t element, double value,
                             struct stk_error *err)
{
    const struct series_finish *finish = finisher->finish;
    uint64_t row = element / finisher->columns, at = 0;
    stk_status status;

    while (row >= finish->entities[at].rows)
        row -= finish->entities[at++].rows;
    status =
        fail(err, STK_CORRUPT,
             "entity '%.80s', row %" PRIu64 ", column '%.60s': the value %g does not fit %s",
             finish->entities[at].name, finish->entities[at].before + row,
             finish->columns[element % finisher->columns], value, stk_dtype_name(finish->dtype));
    fail_at(err, finish->label, STK_NOWHERE);
    fail_field(err, finish->columns[element % finisher->columns]);
    if (finish->dtype != STK_F32)
        fail_remedy(err, "use --dtype f32%s",
                    finish->scaler ? ", or another scaler" : ", or --scale stored");
    else
        fail_remedy(err, finish->scaler ? "use another scaler, or leave the column out"
                                        : "use --scale stored, or leave the column out");
    return status;
}

static stk_status finish_claim(void *user, uint32_t worker, uint64_t block, struct stk_error *err)
{
    struct finisher *finisher = user;

    if (block * finisher->block_elements >= finisher->elements)
        return STK_END;
    if (!finisher->carry)
        return STK_OK;
    stk_status status = block_read(finisher, block, finisher->workers[worker].in, err);
    return status ? status : block_carry(finisher, block, finisher->workers[worker].in, err);
}

static stk_status finish_run(void *user, uint32_t worker, uint64_t block, uint64_t *done,
                             struct stk_error *err)
{
    struct finisher *finisher = user;
    const struct series_finish *finish = finisher->finish;
    const struct finish_worker *own = &finisher->workers[worker];
    uint64_t first = block * finisher->block_elements, n = block_length(finisher, block);
    uint64_t offset = first * finisher->out_size, len = n * finisher->out_size;
    stk_status status = finisher->carry ? STK_OK : block_read(finisher, block, own->in, err);
    double value;

    if (status)
        return status;
    *done = (first + n) / finisher->columns - first / finisher->columns;
    if (finisher->is_same) {
        finisher->hashes[block] = hash_bytes(own->in, len, block);
        return STK_OK;
    }
    uint64_t good = series_convert_run(&finisher->convert, first, n, own->in, own->out, &value);
    if (good < n)
        return fail_value(finisher, first + good, value, err);
    finisher->hashes[block] = hash_bytes(own->out, len, block);
    int number = write_all_at(finish->array_fd, own->out, len, offset);
    if (number) {
        status = fail_errno(err, number, "writing the array failed");
        fail_at(err, finish->label, offset);
        return status;
    }
    /* A hint, so that the last fsync is short. */
    (void)sync_file_range(finish->array_fd, (off_t)offset, (off_t)len, SYNC_FILE_RANGE_WRITE);
    return STK_OK;
}

/* --- all ------------------------------------------------------------------------------------- */

static void workers_close(struct finisher *finisher)
{
    size_t in = finisher->block_elements * finisher->in_size;

    for (uint32_t i = 0; finisher->workers && i < finisher->worker_count; i++) {
        if (finisher->workers[i].out != finisher->workers[i].in)
            memory_unmap(finisher->workers[i].out, SERIES_BLOCK);
        memory_unmap(finisher->workers[i].in, in);
    }
    memory_free(finisher->workers);
}

/* Memory of the threads: one is always had, more only within the budget. */
static stk_status workers_open(struct finisher *finisher, struct stk_error *err)
{
    const struct series_finish *finish = finisher->finish;
    size_t in = finisher->block_elements * finisher->in_size;
    int in_place = finisher->in_size == finisher->out_size;
    uint64_t most = finish->memory / 2 / (in + (in_place ? 0 : SERIES_BLOCK));
    uint32_t count = pack_crew_threads(finish->threads);

    count = count > most ? (uint32_t)most : count;
    count = count ? count : 1;
    finisher->workers = memory_zero(count, sizeof(*finisher->workers));
    if (!finisher->workers)
        return fail_memory(err, count * sizeof(*finisher->workers));
    for (; finisher->worker_count < count; finisher->worker_count++) {
        struct finish_worker *own = &finisher->workers[finisher->worker_count];
        own->in = memory_map(in);
        own->out = in_place ? own->in : memory_map(SERIES_BLOCK);
        if (!own->in || !own->out) {
            finisher->worker_count++; /* to be closed too */
            return fail_memory(err, in + SERIES_BLOCK);
        }
    }
    return STK_OK;
}

static stk_status fills_open(struct finisher *finisher, struct stk_error *err)
{
    const struct series_finish *finish = finisher->finish;
    const double *means = finish->means;
    double *zeros = NULL;
    stk_status status = STK_OK;

    if (finish->has_missing) {
        zeros = memory_zero(finisher->columns, sizeof(*zeros));
        if (!zeros)
            return fail_memory(err, finisher->columns * sizeof(*zeros));
    }
    if (finish->has_missing && finish->missing == STK_MISSING_FFILL) {
        finisher->carry = memory_zero(finisher->columns, sizeof(double));
        if (!finisher->carry)
            status = fail_memory(err, finisher->columns * sizeof(double));
        finisher->entity = UINT64_MAX; /* the first element brings it to 0 */
    }
    if (!status)
        status =
            series_convert_init(&finisher->convert, finisher->columns, finish->scaler,
                                finish->missing == STK_MISSING_ZERO || !zeros ? zeros : means, err);
    memory_free(zeros);
    return status;
}

stk_status series_finish_run(const struct series_finish *finish, uint64_t **hashes,
                             uint64_t *hash_count, struct stk_error *err)
{
    struct finisher finisher = {.finish = finish};
    uint64_t rows = row_spool_rows(finish->spool), blocks;
    stk_status status;

    *hashes = NULL;
    *hash_count = 0;
    finisher.columns = row_spool_columns(finish->spool);
    finisher.convert.from = row_spool_dtype(finish->spool);
    finisher.convert.to = finish->dtype;
    finisher.in_size = stk_dtype_size(finisher.convert.from);
    finisher.out_size = stk_dtype_size(finish->dtype);
    finisher.elements = rows * finisher.columns;
    finisher.block_elements = SERIES_BLOCK / finisher.out_size;
    finisher.is_same = !finish->scaler && !finish->has_missing &&
                       finisher.convert.from == finish->dtype &&
                       finish->array_fd == row_spool_values_fd(finish->spool);
    blocks = (finisher.elements + finisher.block_elements - 1) / finisher.block_elements;
    finisher.hashes = memory_alloc(blocks * sizeof(*finisher.hashes));
    status = finisher.hashes ? fills_open(&finisher, err) : fail_memory(err, blocks * 8);
    if (!status)
        status = workers_open(&finisher, err);
    if (!status) {
        const struct pack_crew_job job = {.context = finish->context,
                                          .what = "scaling",
                                          .unit = "rows",
                                          .total = rows,
                                          .threads = finisher.worker_count,
                                          .user = &finisher,
                                          .claim = finish_claim,
                                          .run = finish_run};
        status = pack_crew_run(&job, err);
    }
    if (!status) {
        *hashes = finisher.hashes;
        *hash_count = blocks;
        finisher.hashes = NULL;
    }
    workers_close(&finisher);
    series_convert_reset(&finisher.convert);
    memory_free(finisher.carry);
    memory_free(finisher.hashes);
    return status;
}
