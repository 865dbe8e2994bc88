#include "pack/series_fit.h"

#include <string.h>

#include "base/fail.h"
#include "base/memory.h"
#include "pack/pack_crew.h"
#include "pack/read_all.h"
#include "pack/series_convert.h"

#define PIECE_ROWS UINT64_C(65536)      /* of one fit before it is merged */
#define READ_BYTES (UINT64_C(1) << 20)  /* of rows at a time, about */
#define FITS_BYTES (UINT64_C(16) << 20) /* that fits may take however small the budget is */
/* A pass is of so many columns, before another thread is worth its memory: reading a part of a row
 * costs as much as looking at some forty values. */
#define PASS_COLUMNS 64u

/* A place in the ranges. */
struct fit_place {
    uint64_t range, row; /* row: from the range's start */
};

struct fit_worker {
    struct fit *fit;
    struct fit_place from; /* of the piece that was claimed */
    void *rows;            /* [read_rows] as they are in the file */
    float *floats;         /* [read_rows]: of 16-bit types; else NULL */
};

struct fitter {
    const struct series_fit *spec;
    struct fit *all;
    struct fit_place next; /* what is claimed next */
    uint64_t read_rows;
    uint32_t width;          /* columns of a pass, at most */
    uint32_t first, columns; /* those of this one */
    size_t value_bytes;
    struct fit_worker *workers;
    uint32_t worker_count;
};

/* The columns of this pass, of n rows. */
static stk_status rows_read(const struct fitter *fitter, uint64_t row, uint64_t n, void *to,
                            struct stk_error *err)
{
    const struct read_file file = {fitter->spec->fd, fitter->spec->label};
    size_t row_bytes = fitter->spec->columns * fitter->value_bytes;
    size_t part_bytes = fitter->columns * fitter->value_bytes;
    uint64_t at = row * row_bytes + fitter->first * fitter->value_bytes;
    stk_status status = STK_OK;

    if (part_bytes == row_bytes)
        return read_all_at(&file, at, to, n * row_bytes, err);
    for (uint64_t i = 0; i < n && !status; i++)
        status =
            read_all_at(&file, at + i * row_bytes, (char *)to + i * part_bytes, part_bytes, err);
    return status;
}

/* Moves on over at most `most` rows of one range: *row is the first of them. 0: there are none. */
static uint64_t place_take(const struct series_fit *spec, struct fit_place *place, uint64_t most,
                           uint64_t *row)
{
    for (; place->range < spec->range_count; place->range++, place->row = 0) {
        const struct series_range *range = &spec->ranges[place->range];
        uint64_t left = range->end - range->start - place->row;
        if (!left)
            continue;
        left = left < most ? left : most;
        *row = range->start + place->row;
        place->row += left;
        return left;
    }
    return 0;
}

/* A piece: the next PIECE_ROWS rows, of as many ranges as it takes. */
static stk_status fit_claim(void *user, uint32_t worker, uint64_t step, struct stk_error *err)
{
    struct fitter *fitter = user;
    uint64_t rows = 0, row;

    (void)step;
    (void)err;
    fitter->workers[worker].from = fitter->next;
    while (rows < PIECE_ROWS) {
        uint64_t n = place_take(fitter->spec, &fitter->next, PIECE_ROWS - rows, &row);
        if (!n)
            break;
        rows += n;
    }
    return rows ? STK_OK : STK_END;
}

static stk_status fit_piece(void *user, uint32_t worker, uint64_t step, uint64_t *done,
                            struct stk_error *err)
{
    struct fitter *fitter = user;
    struct fit_worker *own = &fitter->workers[worker];
    const struct series_fit *spec = fitter->spec;
    uint64_t row, n;

    (void)step;
    fit_reset(own->fit);
    while (*done < PIECE_ROWS) {
        uint64_t most = PIECE_ROWS - *done;
        n = place_take(spec, &own->from, most < fitter->read_rows ? most : fitter->read_rows, &row);
        if (!n)
            break;
        stk_status status = rows_read(fitter, row, n, own->rows, err);
        if (status)
            return status;
        if (own->floats) {
            series_convert_back(own->rows, spec->dtype, n * fitter->columns, own->floats);
            fit_add_rows(own->fit, own->floats, STK_F32, n);
        } else {
            fit_add_rows(own->fit, own->rows, spec->dtype, n);
        }
        *done += n;
    }
    return STK_OK;
}

static void fit_join(void *user, uint32_t worker, uint64_t step)
{
    struct fitter *fitter = user;

    (void)step;
    fit_merge(fitter->all, fitter->workers[worker].fit);
}

/* --- passes ---------------------------------------------------------------------------------- */

/* Buffers of a worker: rows, and the floats that 16-bit ones become. */
static size_t worker_bytes(const struct fitter *fitter)
{
    size_t bytes = (size_t)fitter->read_rows * fitter->width * fitter->value_bytes;

    return fitter->value_bytes == 2 ? 3 * bytes : bytes;
}

static uint32_t at_most(uint32_t count, uint64_t most)
{
    count = count > most ? (uint32_t)most : count;
    return count ? count : 1;
}

/* How many threads, and how many columns a pass: each thread has a fit, and one is for all. */
static void plan_passes(struct fitter *fitter)
{
    const struct series_fit *spec = fitter->spec;
    uint64_t share = spec->memory / 2 > FITS_BYTES ? spec->memory / 2 : FITS_BYTES;
    uint64_t fits = share / fit_column_bytes(spec->kind); /* of one column */
    uint32_t narrow = spec->columns < PASS_COLUMNS ? spec->columns : PASS_COLUMNS;

    fitter->worker_count = at_most(pack_crew_threads(spec->threads), fits / narrow - 1);
    fitter->width = at_most(spec->columns, fits / (fitter->worker_count + 1));
    fitter->value_bytes = stk_dtype_size(spec->dtype);
    /* In whole blocks of a fit, so that where reads begin does not show in the result. */
    fitter->read_rows = READ_BYTES / (fitter->width * fitter->value_bytes) / FIT_BLOCK * FIT_BLOCK;
    fitter->read_rows = fitter->read_rows ? fitter->read_rows : FIT_BLOCK;
    fitter->worker_count = at_most(fitter->worker_count, spec->memory / 4 / worker_bytes(fitter));
}

static void workers_close(struct fitter *fitter)
{
    for (uint32_t i = 0; fitter->workers && i < fitter->worker_count; i++) {
        memory_free(fitter->workers[i].rows);
        memory_free(fitter->workers[i].floats);
    }
    memory_free(fitter->workers);
}

static stk_status workers_open(struct fitter *fitter, struct stk_error *err)
{
    uint32_t count = fitter->worker_count;
    size_t values = (size_t)fitter->read_rows * fitter->width;
    int is_short = fitter->value_bytes == 2;

    fitter->workers = memory_zero(count, sizeof(*fitter->workers));
    if (!fitter->workers)
        return fail_memory(err, count * sizeof(*fitter->workers));
    for (uint32_t i = 0; i < count; i++) {
        struct fit_worker *own = &fitter->workers[i];
        own->rows = memory_alloc(values * fitter->value_bytes);
        own->floats = is_short ? memory_alloc(values * sizeof(*own->floats)) : NULL;
        if (!own->rows || (is_short && !own->floats))
            return fail_memory(err, worker_bytes(fitter));
    }
    return STK_OK;
}

static void fits_free(struct fitter *fitter)
{
    fit_free(fitter->all);
    fitter->all = NULL;
    for (uint32_t i = 0; i < fitter->worker_count; i++) {
        fit_free(fitter->workers[i].fit);
        fitter->workers[i].fit = NULL;
    }
}

static stk_status fits_new(struct fitter *fitter, struct stk_error *err)
{
    const struct series_fit *spec = fitter->spec;
    const uint8_t *skip = spec->skip ? spec->skip + fitter->first : NULL;
    stk_status status = fit_new(&fitter->all, spec->kind, fitter->columns, skip, err);

    for (uint32_t i = 0; i < fitter->worker_count && !status; i++)
        status = fit_new(&fitter->workers[i].fit, spec->kind, fitter->columns, skip, err);
    return status;
}

/* The columns from fitter->first on, as far as one pass goes. */
static stk_status fit_pass(struct fitter *fitter, const struct pack_crew_job *job,
                           struct scaler *out, struct stk_error *err)
{
    const struct series_fit *spec = fitter->spec;
    uint32_t left = spec->columns - fitter->first;
    struct scaler part = {0};
    stk_status status;

    fitter->columns = left < fitter->width ? left : fitter->width;
    fitter->next = (struct fit_place){0};
    status = fits_new(fitter, err);
    if (!status)
        status = pack_crew_run(job, err);
    if (!status)
        status = fit_scaler(fitter->all, spec->names + fitter->first, &part, err);
    if (!status)
        memcpy(out->columns + fitter->first, part.columns, part.count * sizeof(*part.columns));
    scaler_reset(&part);
    fits_free(fitter);
    return status;
}

stk_status series_fit_run(const struct series_fit *spec, struct scaler *out, struct stk_error *err)
{
    struct fitter fitter = {.spec = spec};
    uint64_t rows = 0;

    for (uint64_t i = 0; i < spec->range_count; i++)
        rows += spec->ranges[i].end - spec->ranges[i].start;
    plan_passes(&fitter);
    struct pack_crew_job job = {.context = spec->context,
                                .what = "fitting",
                                .unit = "rows",
                                .total = (spec->columns - 1) / fitter.width * rows + rows,
                                .threads = fitter.worker_count,
                                .user = &fitter,
                                .claim = fit_claim,
                                .run = fit_piece,
                                .join = fit_join};
    stk_status status = scaler_init(out, spec->kind, spec->columns, err);
    if (!status)
        status = workers_open(&fitter, err);
    while (!status && fitter.first < spec->columns) {
        status = fit_pass(&fitter, &job, out, err);
        fitter.first += fitter.columns;
        job.before += rows;
    }
    if (status)
        scaler_reset(out);
    workers_close(&fitter);
    return status;
}
