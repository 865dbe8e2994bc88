#include "pack/series_fit.h"

#include "base/fail.h"
#include "base/memory.h"
#include "pack/pack_crew.h"
#include "pack/read_all.h"
#include "pack/series_convert.h"

#define PIECE_ROWS UINT64_C(65536)     /* of one fit before it is merged */
#define READ_BYTES (UINT64_C(1) << 20) /* of rows at a time, about */

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
    size_t row_bytes;
    struct fit_worker *workers;
    uint32_t worker_count;
};

static stk_status rows_read(const struct fitter *fitter, uint64_t row, uint64_t n, void *to,
                            struct stk_error *err)
{
    const struct read_file file = {fitter->spec->fd, fitter->spec->label};

    return read_all_at(&file, row * fitter->row_bytes, to, n * fitter->row_bytes, err);
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
            series_convert_back(own->rows, spec->dtype, n * spec->columns, own->floats);
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

static void workers_close(struct fitter *fitter)
{
    for (uint32_t i = 0; fitter->workers && i < fitter->worker_count; i++) {
        fit_free(fitter->workers[i].fit);
        memory_free(fitter->workers[i].rows);
        memory_free(fitter->workers[i].floats);
    }
    memory_free(fitter->workers);
}

static stk_status workers_open(struct fitter *fitter, struct stk_error *err)
{
    const struct series_fit *spec = fitter->spec;
    size_t bytes = (size_t)fitter->read_rows * fitter->row_bytes;
    uint64_t most = spec->memory / 4 / bytes;
    uint32_t count = pack_crew_threads(spec->threads);
    stk_status status = STK_OK;

    count = count > most ? (uint32_t)most : count;
    count = count ? count : 1;
    fitter->workers = memory_zero(count, sizeof(*fitter->workers));
    if (!fitter->workers)
        return fail_memory(err, count * sizeof(*fitter->workers));
    fitter->worker_count = count;
    for (uint32_t i = 0; !status && i < count; i++) {
        struct fit_worker *own = &fitter->workers[i];
        int is_short = stk_dtype_size(spec->dtype) == 2;
        own->rows = memory_alloc(bytes);
        own->floats = is_short ? memory_alloc(2 * bytes) : NULL;
        if (!own->rows || (is_short && !own->floats))
            status = fail_memory(err, bytes);
        else
            status = fit_new(&own->fit, spec->kind, spec->columns, spec->skip, err);
    }
    return status;
}

stk_status series_fit_run(const struct series_fit *spec, struct scaler *out, struct stk_error *err)
{
    struct fitter fitter = {.spec = spec};
    stk_status status = fit_new(&fitter.all, spec->kind, spec->columns, spec->skip, err);
    uint64_t rows = 0;

    for (uint64_t i = 0; i < spec->range_count; i++)
        rows += spec->ranges[i].end - spec->ranges[i].start;
    fitter.row_bytes = spec->columns * stk_dtype_size(spec->dtype);
    /* In whole blocks of a fit, so that where reads begin does not show in the result. */
    fitter.read_rows = READ_BYTES / fitter.row_bytes / FIT_BLOCK * FIT_BLOCK;
    fitter.read_rows = fitter.read_rows ? fitter.read_rows : FIT_BLOCK;
    if (!status)
        status = workers_open(&fitter, err);
    if (!status) {
        const struct pack_crew_job job = {.context = spec->context,
                                          .what = "fitting",
                                          .unit = "rows",
                                          .total = rows,
                                          .threads = fitter.worker_count,
                                          .user = &fitter,
                                          .claim = fit_claim,
                                          .run = fit_piece,
                                          .join = fit_join};
        status = pack_crew_run(&job, err);
    }
    if (!status)
        status = fit_scaler(fitter.all, spec->names, out, err);
    workers_close(&fitter);
    fit_free(fitter.all);
    return status;
}
