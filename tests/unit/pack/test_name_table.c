#include "base/testing.h"

#include "pack/name_table.h"

static void add(struct name_table *table, const char *name)
{
    assert_int_equal(name_table_add(table, name, strlen(name), NULL), STK_OK);
}

static void names_that_begin_alike_are_different(void **state)
{
    struct name_table table = {0};

    (void)state;
    assert_int_equal(name_table_find(&table, "a", 1), NAME_NONE);
    add(&table, "ab");
    add(&table, "a");
    add(&table, "");
    add(&table, "abc");
    assert_int_equal(name_table_find(&table, "ab", 2), 0);
    assert_int_equal(name_table_find(&table, "abx", 1), 1);
    assert_int_equal(name_table_find(&table, "", 0), 2);
    assert_int_equal(name_table_find(&table, "abcd", 3), 3);
    assert_int_equal(name_table_find(&table, "abcd", 4), NAME_NONE);
    assert_int_equal(name_table_find(&table, "ab\0zzzzzzzzzzzzzzzzzzzzzzzzzz", 29), NAME_NONE);
    name_table_reset(&table);
}

static void many_names_keep_their_numbers(void **state)
{
    enum { COUNT = 20000 };
    struct name_table table = {0};
    char name[24];

    (void)state;
    for (int i = 0; i < COUNT; i++) {
        snprintf(name, sizeof(name), "name %d", i * 7);
        add(&table, name);
    }
    for (int i = 0; i < COUNT; i++) {
        int len = snprintf(name, sizeof(name), "name %d", i * 7);
        assert_int_equal(name_table_find(&table, name, (size_t)len), i);
        len = snprintf(name, sizeof(name), "name %d", i * 7 + 1);
        assert_int_equal(name_table_find(&table, name, (size_t)len), NAME_NONE);
    }
    char **names = name_table_take(&table);
    assert_int_equal(table.count, 0);
    assert_string_equal(names[3], "name 21");
    for (int i = 0; i < COUNT; i++)
        memory_free(names[i]);
    memory_free(names);
    name_table_reset(&table);
}

static int fill_table(void *user)
{
    struct name_table table = {0};
    stk_status status = STK_OK;
    char name[24];

    (void)user;
    for (int i = 0; i < 100 && !status; i++) {
        int len = snprintf(name, sizeof(name), "%d", i);
        status = name_table_add(&table, name, (size_t)len, NULL);
        for (int k = 0; k < i; k++) { /* those before it are still there */
            len = snprintf(name, sizeof(name), "%d", k);
            assert_int_equal(name_table_find(&table, name, (size_t)len), k);
        }
    }
    name_table_reset(&table);
    return status == STK_OK;
}

static void running_out_of_memory_loses_no_name(void **state)
{
    (void)state;
    fail_each_allocation(fill_table, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_that_begin_alike_are_different),
        cmocka_unit_test(many_names_keep_their_numbers),
        cmocka_unit_test(running_out_of_memory_loses_no_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
