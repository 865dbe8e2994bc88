#include "pack/append_series.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fail.h"
#include "base/memory.h"
#include "pack/append_plan.h"
#include "pack/read_all.h"
#include "pack/series_append.h"
#include "pack/series_convert.h"

#define ADDED_ROWS "added.rows" /* what is added, as the array has it */
#define ADDED_TIMES "added.times"

struct appender {
    struct series_pack *pack;
    struct append_plan plan;
    struct append_source old, added; /* the series' files; what is added */
    struct append_source to;         /* where rows go: old, or new files */
    int is_journaled;
};

/* --- what is there --------------------------------------------------------------------------- */

static stk_status differs(struct stk_error *err, const char *what, const char *has,
                          const char *asked)
{
    stk_status status = fail(err, STK_USAGE, "the series has %s %.100s, and %.100s is asked for",
                             what, has ? has : "none", asked);

    fail_remedy(err, "leave the option out, or pack the series anew");
    return status;
}

static stk_status check_scaler(const struct stk_series_options *options,
                               const struct series_meta *meta, struct stk_error *err)
{
    enum scaler_kind kind = series_pack_kind(options->scaler);

    if (!meta->scaler.count && options->scaler != STK_SCALER_NONE) {
        fail(err, STK_USAGE, "the series does not say how its values were scaled");
        fail_remedy(err, "use --scaler none to add rows as they are");
        return STK_USAGE;
    }
    if (meta->scaler.count && options->scaler != STK_SCALER_STANDARD && kind != meta->scaler.kind)
        return differs(err, "the scaler", scaler_kind_name(meta->scaler.kind),
                       scaler_kind_name(kind));
    if (options->scale == STK_SCALE_LATE && !meta->late)
        return differs(err, "values that are", "scaled (stored)", "late");
    return STK_OK;
}

static stk_status check_options(const struct stk_series_options *options,
                                const struct series_meta *meta, struct stk_error *err)
{
    const uint64_t asked[] = {options->window, options->horizon, options->stride, options->gap};
    const uint64_t has[] = {meta->sequence.window, meta->sequence.horizon, meta->sequence.stride,
                            meta->sequence.gap};
    static const char *const names[] = {"the window", "the horizon", "the stride", "the gap"};
    const char *fit_on = meta->fit_on ? meta->fit_on : "all";
    enum stk_dtype dtype = options->dtype ? stk_dtype_parse(options->dtype) : meta->dtype;

    if (dtype != meta->dtype)
        return differs(err, "the type", stk_dtype_name(meta->dtype), stk_dtype_name(dtype));
    if (meta->dtype != STK_F32 && meta->dtype != STK_F16 && meta->dtype != STK_BF16)
        return fail(err, STK_UNSUPPORTED, "rows cannot be added to a series of %s",
                    stk_dtype_name(meta->dtype));
    if (options->split && (!meta->split_text || strcmp(options->split, meta->split_text)))
        return differs(err, "the split", meta->split_text, options->split);
    if (options->fit_on && strcmp(options->fit_on, fit_on))
        return differs(err, "a scaler fitted on", fit_on, options->fit_on);
    for (int i = 0; i < 4; i++) {
        char was[24], wanted[24];
        snprintf(was, sizeof(was), "%" PRIu64, has[i]);
        snprintf(wanted, sizeof(wanted), "%" PRIu64, asked[i]);
        if (asked[i] && asked[i] != has[i])
            return differs(err, names[i], was, wanted);
    }
    return check_scaler(options, meta, err);
}

/* Opens a file with `unit` bytes a row. More than its rows is what a killed append left, or damage.
 */
static stk_status open_rows(const struct appender *appender, const char *name, uint64_t unit,
                            int *fd, struct stk_error *err)
{
    const struct series_folder *folder = appender->pack->folder;
    uint64_t rows = appender->pack->meta.rows, killed;
    struct stat found;
    stk_status status = STK_OK;

    *fd = series_folder_open_file(folder, name, O_RDWR, err);
    if (*fd < 0)
        return STK_IO;
    if (fstat(*fd, &found))
        status = fail_errno(err, errno, "cannot look at a file of the series");
    else if ((uint64_t)found.st_size < rows * unit)
        status = fail(err, STK_TRUNCATED, "the file has %lld bytes, and its rows need %" PRIu64,
                      (long long)found.st_size, rows * unit);
    else if ((uint64_t)found.st_size > rows * unit &&
             series_journal_load(&killed, series_folder_path(folder), NULL))
        status = fail(err, STK_CORRUPT, "the file has %lld bytes, and its rows need only %" PRIu64,
                      (long long)found.st_size, rows * unit);
    if (status)
        fail_at(err, name, STK_NOWHERE);
    return status;
}

static stk_status open_series(struct appender *appender, struct stk_error *err)
{
    struct series_pack *pack = appender->pack;
    struct series_meta *meta = &pack->meta;
    stk_status status =
        series_folder_open(&pack->folder, pack->options->out, SERIES_FOLDER_CHANGE, err);

    if (!status)
        status = series_meta_load(meta, series_folder_path(pack->folder), err);
    if (!status)
        status = check_options(pack->options, meta, err);
    if (!status)
        status = open_rows(appender, SERIES_ARRAY, series_row_bytes(meta), &appender->old.values_fd,
                           err);
    if (!status && meta->time_column)
        status = open_rows(appender, SERIES_TIME, sizeof(int64_t), &appender->old.times_fd, err);
    if (!status)
        appender->old.label = series_folder_path(pack->folder);
    return status;
}

/* --- what is added --------------------------------------------------------------------------- */

static stk_status fail_older(const struct appender *appender, const char *name, int64_t last,
                             int64_t first, struct stk_error *err)
{
    char has[64], comes[64];
    const char *unit = appender->pack->meta.time_unit ? appender->pack->meta.time_unit : "";

    series_time_format(last, unit, has, sizeof(has));
    series_time_format(first, unit, comes, sizeof(comes));
    fail(err, STK_CORRUPT, "entity '%.80s' ends at %s, and a row of %s is to be added", name, has,
         comes);
    fail_remedy(err, "only newer rows can be added: leave the others out, or pack the series anew");
    return STK_CORRUPT;
}

static stk_status check_newer(const struct appender *appender, struct stk_error *err)
{
    struct series_time_file old = {appender->old.times_fd, SERIES_TIME};
    struct series_time_file spool = {row_spool_times_fd(appender->pack->ingest.spool), ADDED_TIMES};
    stk_status status = STK_OK;

    if (appender->old.times_fd < 0)
        return STK_OK;
    for (uint64_t i = 0; !status && i < appender->plan.count; i++) {
        const struct append_entity *entity = &appender->plan.entities[i];
        int64_t last, first;
        if (!entity->new_rows || !entity->old_rows)
            continue;
        status =
            series_time_file_read(&old, entity->old_start + entity->old_rows - 1, 1, &last, err);
        if (!status)
            status = series_time_file_read(&spool, entity->new_start, 1, &first, err);
        if (!status && first <= last)
            status = fail_older(appender, entity->name, last, first, err);
    }
    return status;
}

/* For FFILL: the last row that is there, as it was before scaling. */
static stk_status last_row(void *user, uint64_t number, double *out, struct stk_error *err)
{
    const struct appender *appender = user;
    const struct series_meta *meta = &appender->pack->meta;
    const struct append_entity *entity = &appender->plan.entities[number];
    uint64_t bytes = series_row_bytes(meta);
    uint64_t row = entity->old_start + entity->old_rows - 1;
    uint8_t *raw = memory_alloc(bytes);
    float *values = memory_alloc(meta->column_count * sizeof(*values));
    stk_status status = STK_OK;

    if (!raw || !values)
        status = fail_memory(err, bytes);
    else
        status = read_all_at(&(struct read_file){appender->old.values_fd, SERIES_ARRAY},
                             row * bytes, raw, bytes, err);
    if (!status)
        series_convert_back(raw, meta->dtype, meta->column_count, values);
    for (uint32_t i = 0; !status && i < meta->column_count; i++) {
        int is_scaled = !meta->late && meta->scaler.count;
        out[i] = is_scaled
                     ? values[i] * meta->scaler.columns[i].scale + meta->scaler.columns[i].center
                     : values[i];
    }
    memory_free(raw);
    memory_free(values);
    return status;
}

static int open_added(const struct appender *appender, const char *name, struct stk_error *err)
{
    int fd = openat(series_folder_fd(appender->pack->folder), name, O_RDONLY | O_CLOEXEC);

    if (fd < 0) {
        (void)fail_errno(err, errno, "cannot open the rows that are added");
        fail_at(err, name, STK_NOWHERE);
    }
    return fd;
}

static stk_status make_values(struct appender *appender, struct stk_error *err)
{
    struct series_pack *pack = appender->pack;
    struct finish_entity *entities = memory_zero(appender->plan.count, sizeof(*entities));
    struct series_pack_values values = {
        .meta = &pack->meta, .entities = entities, .last = last_row, .last_user = appender};
    stk_status status;

    if (!entities)
        return fail_memory(err, appender->plan.count * sizeof(*entities));
    for (uint64_t i = 0; i < appender->plan.count; i++) {
        const struct append_entity *entity = &appender->plan.entities[i];
        if (entity->new_rows)
            entities[values.entity_count++] =
                (struct finish_entity){entity->name, entity->new_rows, entity->old_rows, i};
    }
    status = series_pack_values(pack, &values, ADDED_ROWS, ADDED_TIMES, err);
    memory_free(entities);
    memory_free(pack->hashes.blocks); /* of a file that does not stay */
    pack->hashes = (struct series_hashes){0};
    if (status)
        return status;
    appender->added.label = series_folder_hidden(pack->folder);
    appender->added.values_fd = open_added(appender, ADDED_ROWS, err);
    if (appender->added.values_fd >= 0 && appender->old.times_fd >= 0)
        appender->added.times_fd = open_added(appender, ADDED_TIMES, err);
    if (appender->added.values_fd < 0 ||
        (appender->old.times_fd >= 0 && appender->added.times_fd < 0))
        return STK_IO;
    return STK_OK;
}

/* --- where rows go --------------------------------------------------------------------------- */

/* Links in the hidden folder: what is written through the old names appears with the new series. */
static stk_status link_files(const struct appender *appender, struct stk_error *err)
{
    const struct series_folder *folder = appender->pack->folder;
    stk_status status = series_folder_link(folder, SERIES_ARRAY, err);

    if (!status && appender->old.times_fd >= 0)
        status = series_folder_link(folder, SERIES_TIME, err);
    return status;
}

/* Cuts the files to the rows of the series. */
static int cut_files(const struct appender *appender)
{
    uint64_t rows = appender->plan.old_rows;
    uint64_t bytes = rows * series_row_bytes(&appender->pack->meta);

    if (ftruncate(appender->old.values_fd, (off_t)bytes))
        return errno;
    if (appender->old.times_fd >= 0 &&
        ftruncate(appender->old.times_fd, (off_t)(rows * sizeof(int64_t))))
        return errno;
    return 0;
}

static stk_status begin_in_place(struct appender *appender, struct stk_error *err)
{
    const struct series_folder *folder = appender->pack->folder;
    struct text journal = {0};
    stk_status status = STK_OK;

    series_journal_write(appender->plan.old_rows, &journal);
    if (journal.failed)
        status = fail_memory(err, journal.len);
    if (!status) {
        appender->is_journaled = 1; /* it may be there also when this fails */
        status = series_folder_rewrite(folder, SERIES_JOURNAL, journal.data, journal.len, err);
    }
    text_free(&journal);
    if (status)
        return status;
    int number = cut_files(appender);
    if (number)
        return fail_errno(err, number, "cannot cut what a killed run left in the array");
    appender->to = appender->old;
    return STK_OK;
}

static stk_status make_file(const struct appender *appender, const char *name, int *fd,
                            struct stk_error *err)
{
    *fd = openat(series_folder_fd(appender->pack->folder), name,
                 O_RDWR | O_CREAT | O_TRUNC | O_EXCL | O_CLOEXEC, 0666);
    if (*fd >= 0)
        return STK_OK;
    stk_status status = fail_errno(err, errno, "cannot make a file");
    fail_at(err, name, STK_NOWHERE);
    return status;
}

static stk_status begin_anew(struct appender *appender, struct stk_error *err)
{
    stk_status status = make_file(appender, SERIES_ARRAY, &appender->to.values_fd, err);

    if (!status && appender->old.times_fd >= 0)
        status = make_file(appender, SERIES_TIME, &appender->to.times_fd, err);
    appender->to.label = series_folder_hidden(appender->pack->folder);
    appender->pack->meta.has_hashes = 1;
    return status;
}

static stk_status load_hashes(struct appender *appender, struct stk_error *err)
{
    struct series_pack *pack = appender->pack;
    uint64_t kept = appender->plan.first_row * series_row_bytes(&pack->meta) / SERIES_BLOCK;

    if (!pack->meta.has_hashes)
        return STK_OK;
    pack->hashes.count = series_block_count(&pack->meta, appender->plan.rows);
    pack->hashes.blocks = memory_zero(pack->hashes.count, sizeof(uint64_t));
    if (!pack->hashes.blocks)
        return fail_memory(err, pack->hashes.count * sizeof(uint64_t));
    return kept ? series_files_read(pack->folder, SERIES_HASHES, pack->hashes.blocks,
                                    kept * sizeof(uint64_t), err)
                : STK_OK;
}

static stk_status write_rows(struct appender *appender, struct stk_error *err)
{
    struct append_plan *plan = &appender->plan;
    stk_status status = plan->is_compact ? STK_UNSUPPORTED : link_files(appender, err);

    if (status == STK_UNSUPPORTED) { /* or this file system has no links */
        append_plan_compact(plan);
        status = begin_anew(appender, err);
    } else if (!status) {
        status = begin_in_place(appender, err);
    }
    if (!status)
        status = load_hashes(appender, err);
    if (!status)
        status = append_plan_pieces(plan, &appender->old, &appender->added, err);
    const struct series_append append = {.context = appender->pack->context,
                                         .row_bytes = series_row_bytes(&appender->pack->meta),
                                         .pieces = plan->pieces,
                                         .piece_count = plan->piece_count,
                                         .to = appender->to,
                                         .first_row = plan->first_row,
                                         .hashes = appender->pack->hashes.blocks};
    return status ? status : series_append_run(&append, err);
}

/* --- the end --------------------------------------------------------------------------------- */

static stk_status finish_files(struct appender *appender, struct stk_error *err)
{
    struct series_pack *pack = appender->pack;
    struct series_time_file file = {appender->to.times_fd, SERIES_TIME};
    const struct series_times times = {series_time_file_read, &file, appender->plan.rows};
    stk_status status =
        append_plan_meta(&appender->plan, pack, appender->to.times_fd >= 0 ? &times : NULL, err);

    if (!status)
        series_fingerprint(&pack->meta, &pack->hashes);
    if (!status)
        status = series_files_write(pack->folder, &pack->meta, &pack->hashes, pack->statics, err);
    if (status)
        return status;
    (void)unlinkat(series_folder_fd(pack->folder), ADDED_ROWS, 0);
    (void)unlinkat(series_folder_fd(pack->folder), ADDED_TIMES, 0);
    status = series_folder_inherit(pack->folder, err);
    return status ? status : series_folder_commit(pack->folder, err);
}

static void close_sources(struct appender *appender)
{
    const int fds[] = {appender->old.values_fd, appender->old.times_fd, appender->added.values_fd,
                       appender->added.times_fd};

    if (appender->to.values_fd >= 0 && appender->to.values_fd != appender->old.values_fd)
        close(appender->to.values_fd);
    if (appender->to.times_fd >= 0 && appender->to.times_fd != appender->old.times_fd)
        close(appender->to.times_fd);
    for (int i = 0; i < 4; i++)
        if (fds[i] >= 0)
            close(fds[i]);
}

stk_status append_series_run(struct series_pack *pack, struct stk_series_result *result,
                             struct stk_error *err)
{
    const struct append_source none = {.values_fd = -1, .times_fd = -1};
    struct appender appender = {.pack = pack, .old = none, .added = none, .to = none};
    stk_status status = open_series(&appender, err);

    if (!status)
        status = series_pack_rows(pack, &pack->meta, err);
    if (!status)
        status = append_plan_make(&appender.plan, &pack->meta, &pack->ingest, err);
    if (!status)
        status = check_newer(&appender, err);
    if (!status)
        status = make_values(&appender, err);
    if (!status)
        status = write_rows(&appender, err);
    if (!status)
        status = finish_files(&appender, err);
    if (status && appender.is_journaled && !series_folder_is_committed(pack->folder) &&
        !cut_files(&appender))
        series_folder_remove(pack->folder, SERIES_JOURNAL);
    if (!status)
        *result =
            (struct stk_series_result){.rows = pack->meta.rows - pack->meta.unused_rows,
                                       .entities = pack->meta.entity_count,
                                       .added_rows = appender.plan.added_rows,
                                       .dropped_rows = pack->ingest.dropped_rows,
                                       .missing = pack->missing,
                                       .bytes = pack->meta.rows * series_row_bytes(&pack->meta),
                                       .sorted = pack->was_sorted};
    close_sources(&appender);
    append_plan_reset(&appender.plan);
    return status;
}
