/* stk_gen_series: one table an entity, made whole in memory and written in one go. */
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <locale.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "stoker/series.h"

#include "base/checked.h"
#include "base/context.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/text.h"
#include "pack/numbered.h"
#include "pack/series_pattern.h"
#include "pack/series_split.h"
#include "pack/staging.h"
#include "pack/write_all.h"

#define MAX_ROWS 60000000 /* hours: times stay within years of four digits */
#define FLUSH (1u << 20)
#define NAME_CAP 64

static const struct numbered any_parquet = {"entity-", ".parquet", 4};
static const struct numbered any_csv = {"entity-", ".csv", 4};

struct gen {
    struct stk_context *context;
    const struct stk_gen_series_options *options;
    struct series_pattern pattern;
    struct staging *staging;
    struct numbered names;
    int is_csv;
    uint32_t columns; /* time, value, f1, ... */
    struct stk_column *table;
    char (*column_names)[16];
    int64_t *times;
    float *values; /* [features][rows] */
    float **features;
    double *scratch;
    struct text text; /* of a CSV file, on its way */
    locale_t locale;  /* numbers have points, whatever the user's language has */
    struct context_timer timer;
    uint64_t done, bytes;
};

/* --- one table ------------------------------------------------------------------------------- */

static stk_status fail_file(const struct gen *gen, const char *name, int number,
                            struct stk_error *err)
{
    stk_status status = fail_errno(err, number, "writing failed");
    char path[PATH_MAX];

    snprintf(path, sizeof(path), "%s/%s", staging_target(gen->staging), name);
    fail_at(err, path, STK_NOWHERE);
    return status;
}

static stk_status report(struct gen *gen, uint64_t rows, struct stk_error *err)
{
    struct stk_progress progress = {.what = "generating",
                                    .unit = "rows",
                                    .done = gen->done + rows,
                                    .total = gen->options->entities * gen->options->rows,
                                    .bytes = gen->bytes};

    if (context_progress(gen->context, &gen->timer, &progress))
        return fail(err, STK_CANCELLED, "stopped on request");
    return STK_OK;
}

static void add_row(struct gen *gen, uint64_t row)
{
    locale_t outer = uselocale(gen->locale);
    char field[40];

    series_time_format(gen->times[row], "s", field, sizeof(field));
    text_add(&gen->text, field, strlen(field));
    for (uint32_t i = 0; i < gen->options->features; i++) {
        int len = snprintf(field, sizeof(field), ",%.9g", (double)gen->features[i][row]);
        text_add(&gen->text, field, (size_t)len);
    }
    text_add(&gen->text, "\n", 1);
    uselocale(outer);
}

static stk_status flush_text(struct gen *gen, int fd, const char *name, struct stk_error *err)
{
    if (gen->text.failed)
        return fail_memory(err, gen->text.cap);
    int number = write_all(fd, gen->text.data, gen->text.len);
    gen->text.len = 0;
    return number ? fail_file(gen, name, number, err) : STK_OK;
}

static stk_status write_rows(struct gen *gen, int fd, const char *name, struct stk_error *err)
{
    stk_status status = STK_OK;

    gen->text.len = 0;
    for (uint32_t i = 0; i < gen->columns; i++)
        text_format(&gen->text, "%s%s", i ? "," : "", gen->table[i].name);
    text_add(&gen->text, "\n", 1);
    for (uint64_t row = 0; row < gen->options->rows && !status; row++) {
        add_row(gen, row);
        if (gen->text.len < FLUSH && !gen->text.failed)
            continue;
        status = flush_text(gen, fd, name, err);
        if (!status)
            status = report(gen, row, err);
    }
    return status ? status : flush_text(gen, fd, name, err);
}

static stk_status write_csv(struct gen *gen, const char *name, struct stk_error *err)
{
    int fd = openat(staging_fd(gen->staging), name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);

    if (fd < 0)
        return fail_file(gen, name, errno, err);
    stk_status status = write_rows(gen, fd, name, err);
    if (close(fd) && !status)
        status = fail_file(gen, name, errno, err);
    return status;
}

static stk_status write_parquet(struct gen *gen, const char *name, struct stk_error *err)
{
    const struct stk_hooks *hooks = &gen->context->hooks;
    struct text path = {0};
    stk_status status;

    text_format(&path, "%s/%s", staging_path(gen->staging), name);
    if (path.failed)
        status = fail_memory(err, PATH_MAX);
    else
        status = hooks->write_table(hooks->user, path.data, gen->table, gen->columns,
                                    gen->options->rows, err);
    text_free(&path);
    return status;
}

static stk_status write_entity(struct gen *gen, uint64_t entity, struct stk_error *err)
{
    char name[NAME_CAP];
    struct stat file;

    numbered_name(&gen->names, entity, name, sizeof(name));
    series_pattern_fill(&gen->pattern, entity, gen->options->rows, gen->features, gen->scratch);
    stk_status status = (gen->is_csv ? write_csv : write_parquet)(gen, name, err);
    if (status)
        return status;
    if (fstatat(staging_fd(gen->staging), name, &file, 0))
        return fail_file(gen, name, errno, err);
    gen->bytes += (uint64_t)file.st_size;
    status = report(gen, gen->options->rows, err);
    gen->done += gen->options->rows;
    return status;
}

/* --- the whole ------------------------------------------------------------------------------- */

static stk_status check_options(const struct stk_gen_series_options *options, struct stk_error *err)
{
    uint64_t rows;

    if (!options->out || !*options->out)
        return fail(err, STK_USAGE, "there is no folder to write to");
    if (options->entities == 0 || options->rows == 0 || options->features == 0)
        return fail(err, STK_USAGE, "entities, rows and features must be at least 1");
    if (options->features > SERIES_MAX_COLUMNS)
        return fail(err, STK_LIMIT, "more than %d features", SERIES_MAX_COLUMNS);
    if (options->rows > MAX_ROWS)
        return fail(err, STK_LIMIT, "an entity has at most %d rows", MAX_ROWS);
    if (!checked_mul(options->entities, options->rows, &rows))
        return fail(err, STK_LIMIT, "so many rows cannot be counted");
    return STK_OK;
}

static stk_status check_free(const struct gen *gen, struct stk_error *err)
{
    int target = staging_target_fd(gen->staging);

    if (gen->options->force ||
        (!numbered_any(&any_parquet, target) && !numbered_any(&any_csv, target)))
        return STK_OK;
    stk_status status = fail(err, STK_USAGE, "the folder has generated files already");
    fail_at(err, gen->options->out, STK_NOWHERE);
    fail_remedy(err, "choose another folder, or replace them with --force");
    return status;
}

static stk_status make_room(struct gen *gen, struct stk_error *err)
{
    uint64_t rows = gen->options->rows, features = gen->options->features;

    gen->columns = (uint32_t)features + 1;
    gen->table = memory_zero(gen->columns, sizeof(*gen->table));
    gen->column_names = memory_zero(gen->columns, sizeof(*gen->column_names));
    gen->features = memory_zero(features, sizeof(*gen->features));
    gen->times = memory_zero(rows, sizeof(*gen->times));
    gen->scratch = memory_zero(rows, sizeof(*gen->scratch));
    gen->values = memory_zero(features * rows, sizeof(*gen->values));
    if (!gen->table || !gen->column_names || !gen->features || !gen->times || !gen->scratch ||
        !gen->values) {
        stk_status status = fail_memory(err, rows * (features * sizeof(float) + 16));
        fail_remedy(err, "one entity is held in memory at a time: ask for fewer rows or features");
        return status;
    }
    for (uint64_t i = 0; i < rows; i++)
        gen->times[i] = SERIES_PATTERN_START + (int64_t)i * SERIES_PATTERN_STEP;
    gen->table[0] = (struct stk_column){"time", STK_COLUMN_TIME_S, gen->times};
    for (uint32_t i = 0; i < features; i++) {
        char *name = gen->column_names[i];
        gen->features[i] = gen->values + i * rows;
        if (i == 0)
            snprintf(name, sizeof(gen->column_names[0]), "value");
        else
            snprintf(name, sizeof(gen->column_names[0]), "f%" PRIu32, i);
        gen->table[i + 1] = (struct stk_column){name, STK_COLUMN_F32, gen->features[i]};
    }
    return STK_OK;
}

static stk_status prepare(struct gen *gen, struct stk_error *err)
{
    const struct stk_gen_series_options *options = gen->options;
    stk_status status = check_options(options, err);

    if (status)
        return status;
    gen->pattern = (struct series_pattern){options->seed, options->features};
    gen->is_csv = options->csv || !gen->context || !gen->context->hooks.write_table;
    gen->names = gen->is_csv ? any_csv : any_parquet;
    gen->names.digits = numbered_digits(options->entities, 4);
    gen->locale = newlocale(LC_NUMERIC_MASK, "C", (locale_t)0);
    if (!gen->locale)
        return fail_memory(err, 0);
    status = staging_open(&gen->staging, options->out, "series", err);
    if (!status)
        status = check_free(gen, err);
    if (!status)
        status = make_room(gen, err);
    return status;
}

/* Tables of the other kind, or of a longer list, would be taken for part of these. */
static stk_status publish(struct gen *gen, struct stk_error *err)
{
    stk_status status = STK_OK;
    char name[NAME_CAP];

    numbered_remove(&any_parquet, staging_target_fd(gen->staging));
    numbered_remove(&any_csv, staging_target_fd(gen->staging));
    for (uint64_t i = 0; i < gen->options->entities && !status; i++) {
        numbered_name(&gen->names, i, name, sizeof(name));
        status = staging_publish(gen->staging, name, name, err);
    }
    return status;
}

static void gen_reset(struct gen *gen)
{
    staging_close(gen->staging);
    memory_free(gen->table);
    memory_free(gen->column_names);
    memory_free(gen->features);
    memory_free(gen->times);
    memory_free(gen->scratch);
    memory_free(gen->values);
    text_free(&gen->text);
    if (gen->locale)
        freelocale(gen->locale);
}

stk_status stk_gen_series(struct stk_context *context, const struct stk_gen_series_options *options,
                          struct stk_gen_series_result *result, struct stk_error *err)
{
    struct gen gen = {.context = context, .options = options};

    *result = (struct stk_gen_series_result){0};
    stk_status status = prepare(&gen, err);
    for (uint64_t i = 0; i < options->entities && !status; i++)
        status = write_entity(&gen, i, err);
    if (!status)
        status = publish(&gen, err);
    if (!status)
        *result = (struct stk_gen_series_result){options->entities, gen.done, gen.bytes};
    gen_reset(&gen);
    return status;
}
