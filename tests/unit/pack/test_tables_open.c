#include "base/testing.h"

#include "stoker/series.h"

#include "base/fail.h"

struct opener {
    stk_status status;
    uint32_t sources;
    uint64_t memory;
    char entity[16];
};

static stk_status open_hook(void *user, const char *const *sources, uint32_t source_count,
                            const struct stk_tables_options *options, struct stk_tables *tables,
                            struct stk_error *err)
{
    struct opener *opener = user;
    (void)sources;
    opener->sources = source_count;
    opener->memory = options->memory;
    snprintf(opener->entity, sizeof(opener->entity), "%s", options->entity ? options->entity : "");
    tables->rows = 17;
    return opener->status ? fail(err, opener->status, "no such table") : STK_OK;
}

static const char *const sources[] = {"a.parquet", "b.csv"};
static const struct stk_tables_options options = {.memory = 5};

static void without_a_hook_the_error_says_what_to_install(void **state)
{
    (void)state;
    struct stk_context *context;
    struct stk_tables tables = {.rows = 1};
    struct stk_error err;
    assert_int_equal(stk_context_new(&context, NULL, &err), STK_OK);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(stk_tables_open(i ? context : NULL, sources, 2, &options, &tables, &err),
                         STK_UNSUPPORTED);
        assert_string_equal(err.object, "a.parquet");
        assert_non_null(strstr(err.remedy, "pip install 'stoker[arrow]'"));
        assert_true(tables.rows == 0 && !tables.next && !tables.close);
    }
    stk_context_free(context);
}

static void the_hook_opens_and_its_failure_leaves_nothing(void **state)
{
    (void)state;
    struct opener opener = {0};
    struct stk_hooks hooks = {.user = &opener, .open_tables = open_hook};
    struct stk_context *context;
    struct stk_tables tables;
    struct stk_error err;
    assert_int_equal(stk_context_new(&context, &hooks, &err), STK_OK);
    assert_int_equal(stk_tables_open(context, sources, 2, &options, &tables, &err), STK_OK);
    assert_true(tables.rows == 17 && opener.sources == 2 && opener.memory == 5);
    opener.status = STK_NOT_FOUND;
    assert_int_equal(stk_tables_open(context, sources, 2, &options, &tables, &err), STK_NOT_FOUND);
    assert_int_equal(tables.rows, 0);
    assert_int_equal(stk_tables_open(context, sources, 0, &options, &tables, &err), STK_USAGE);
    stk_context_free(context);
}

static void the_entity_column_is_the_one_named_or_that_of_the_series_added_to(void **state)
{
    (void)state;
    static const char text[] = "{\"features\": [\"a\"], \"entity\": \"shop\","
                               " \"entities\": {\"x\": [0, 1]}, \"rows\": 1}";
    const float row = 1;
    struct opener opener = {0};
    struct stk_hooks hooks = {.user = &opener, .open_tables = open_hook};
    struct stk_context *context;
    struct stk_tables tables;
    char folder[PATH_MAX];
    folder_new(folder);
    file_write(path_in(folder, "metadata.json"), text, sizeof(text) - 1);
    file_write(path_in(folder, "all_features.mmap"), &row, sizeof(row));
    const struct {
        const char *entity, *append_to, *wanted;
    } cases[] = {{NULL, NULL, ""},
                 {"given", NULL, "given"},
                 {NULL, folder, "shop"},
                 {"given", folder, "given"},
                 {NULL, "/nowhere", ""}};
    assert_int_equal(stk_context_new(&context, &hooks, NULL), STK_OK);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct stk_tables_options asked = {.entity = cases[i].entity,
                                                 .append_to = cases[i].append_to};
        assert_int_equal(stk_tables_open(context, sources, 2, &asked, &tables, NULL), STK_OK);
        assert_string_equal(opener.entity, cases[i].wanted);
    }
    stk_context_free(context);
    folder_remove(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_a_hook_the_error_says_what_to_install),
        cmocka_unit_test(the_hook_opens_and_its_failure_leaves_nothing),
        cmocka_unit_test(the_entity_column_is_the_one_named_or_that_of_the_series_added_to),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
