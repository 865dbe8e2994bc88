/* ingest_fixture.h -- runs the ingest over tables made in memory, and reads its rows back.
 * Owns: a folder a run, until run_end.   Threads: one.   Errors: a failed assertion.
 * Not here: any test. */
#ifndef TESTS_PACK_INGEST_FIXTURE_H
#define TESTS_PACK_INGEST_FIXTURE_H

#include "pack/arrow_maker.h"

#include <math.h>

#include "stoker/context.h"
#include "pack/series_ingest.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define CAP 64 /* rows that a test reads back */

/* One run: options in, rows and words out. */
struct run {
    struct stk_series_options options;
    struct series_meta *known;
    struct stk_context *context;
    int fit_all;
    struct series_ingest ingest;
    struct stk_error err;
    stk_status status;
    char folder[PATH_MAX];
    int fd;
    uint64_t total;
};

TESTING void run_tables(struct run *run, const struct made_table *tables, size_t count)
{
    struct made_tables made = {tables, (uint32_t)count, 0};
    struct stk_tables given = {.user = &made, .next = made_tables_next, .rows = run->total};

    folder_new(run->folder);
    run->fd = open(run->folder, O_RDONLY | O_DIRECTORY);
    assert_true(run->fd >= 0);
    run->ingest = (struct series_ingest){.options = &run->options,
                                         .context = run->context,
                                         .folder_fd = run->fd,
                                         .label = run->folder,
                                         .known = run->known,
                                         .fit_all = run->fit_all};
    run->status = series_ingest_run(&run->ingest, &given, &run->err);
    assert_int_equal(made_live, 0);
}

TESTING void run_end(struct run *run)
{
    series_ingest_reset(&run->ingest);
    close(run->fd);
    assert_int_equal(rmdir(run->folder), 0); /* nothing is left behind */
}

TESTING void assert_good(struct run *run)
{
    char words[2048];
    if (!run->status)
        return;
    stk_error_format(&run->err, words, sizeof(words));
    print_message("%s\n", words);
    assert_int_equal(run->status, STK_OK);
}

/* The error's words hold all of the parts, which end with NULL. */
TESTING void assert_refused(struct run *run, stk_status status, const char *const *parts)
{
    char words[2048];

    assert_int_equal(run->status, status);
    stk_error_format(&run->err, words, sizeof(words));
    for (; *parts; parts++) {
        if (!strstr(words, *parts))
            print_message("no '%s' in: %s\n", *parts, words);
        assert_non_null(strstr(words, *parts));
    }
}
#define REFUSED(run, status, ...)                                                                  \
    assert_refused(run, status, (const char *const[]){__VA_ARGS__, NULL})

TESTING void read_f32(struct run *run, float *out, int64_t *times, uint32_t *entities)
{
    struct row_block block = {(uint32_t)row_spool_rows(run->ingest.spool), out, times, entities};
    assert_int_equal(row_spool_row_bytes(run->ingest.spool),
                     run->ingest.column_count * sizeof(float));
    assert_int_equal(row_spool_read(run->ingest.spool, 0, &block, &run->err), STK_OK);
}

TESTING void read_f64(struct run *run, double *out)
{
    struct row_block block = {(uint32_t)row_spool_rows(run->ingest.spool), out, NULL, NULL};
    assert_int_equal(row_spool_row_bytes(run->ingest.spool),
                     run->ingest.column_count * sizeof(double));
    assert_int_equal(row_spool_read(run->ingest.spool, 0, &block, &run->err), STK_OK);
}

/* Rows and columns that most tests use. */
TESTING const float ones[] = {1, 2, 3, 4, 5, 6}, tens[] = {10, 20, 30, 40, 50, 60};
TESTING const int64_t days[] = {1, 2, 3, 4, 5, 6};
TESTING const struct made_column plain_columns[] = {{.name = "a", .format = "f", .values = ones},
                                                    {.name = "b", .format = "f", .values = tens}};
TESTING const struct made_column timed_columns[] = {
    {.name = "day", .format = "tss:UTC", .values = days},
    {.name = "a", .format = "f", .values = ones},
    {.name = "b", .format = "f", .values = tens}};

#endif
