/* test_index_heads.c -- what the first values of fields are, kept at the end of an index. */
#include "index_fixture.h"

#include "index/index_heads.h"

static struct fixture fixture;

static int begin(void **state)
{
    (void)state;
    fixture_begin(&fixture);
    fixture_small(&fixture);
    return 0;
}

static int end(void **state)
{
    (void)state;
    fixture_end(&fixture);
    return 0;
}

static void reopen(void)
{
    index_close(fixture.index);
    fixture.index = NULL;
    WORKS(index_open(&fixture.index, fixture.path, &fixture.error));
}

static struct index_file_head head_of(uint32_t field)
{
    struct index_file_head head = {.field = field, .length = 128, .sample = 2, .plain = 1};
    strcpy(head.codec, "npy");
    head.shape = (struct index_file_tensor){.rank = 2, .dtype = 3, .shape = {4, 5}};
    memset(head.bytes, 'x', sizeof head.bytes);
    return head;
}

static void an_index_has_no_heads_at_first(void **state)
{
    (void)state;
    reopen();
    assert_int_equal(index_head_count(fixture.index), 0);
    assert_null(index_head(fixture.index, 0));
}

static void heads_come_back_and_the_rest_stays_as_it_was(void **state)
{
    (void)state;
    uint8_t before[16], after[16];
    reopen();
    index_fingerprint(fixture.index, before);
    struct index_file_head head = head_of(1);
    WORKS(index_heads_write(fixture.index, &head, 1, &fixture.error));
    assert_int_equal(index_head_count(fixture.index), 0); /* the open one stays as it is */
    reopen();
    assert_int_equal(index_head_count(fixture.index), 1);
    assert_null(index_head(fixture.index, 0));
    assert_memory_equal(index_head(fixture.index, 1), &head, sizeof head);
    index_fingerprint(fixture.index, after);
    assert_memory_equal(before, after, sizeof before);
    assert_int_equal(index_samples(fixture.index), 3);
    WORKS(index_verify(fixture.index, &fixture.error));
}

static void heads_are_replaced_not_added_to(void **state)
{
    (void)state;
    reopen();
    uint64_t bare = index_size(fixture.index);
    struct index_file_head heads[] = {head_of(0), head_of(1)};
    WORKS(index_heads_write(fixture.index, heads, 2, &fixture.error));
    reopen();
    uint64_t full = index_size(fixture.index);
    WORKS(index_heads_write(fixture.index, heads, 2, &fixture.error));
    reopen();
    assert_int_equal(index_size(fixture.index), full);
    assert_int_equal(index_head_count(fixture.index), 2);
    WORKS(index_heads_write(fixture.index, heads, 0, &fixture.error));
    reopen();
    assert_int_equal(index_size(fixture.index), bare);
    assert_int_equal(index_head_count(fixture.index), 0);
}

static void damaged_heads_count_as_none(void **state)
{
    (void)state;
    reopen();
    struct index_file_head head = head_of(0);
    WORKS(index_heads_write(fixture.index, &head, 1, &fixture.error));
    reopen();
    uint64_t size = index_size(fixture.index);
    FILE *file = fopen(fixture.path, "r+b");
    assert_non_null(file);
    assert_int_equal(fseek(file, (long)size - 3, SEEK_SET), 0);
    assert_int_equal(fputc('!', file), '!');
    assert_int_equal(fclose(file), 0);
    reopen();
    assert_int_equal(index_head_count(fixture.index), 0);
    assert_null(index_head(fixture.index, 0));
    WORKS(index_verify(fixture.index, &fixture.error)); /* the index itself is whole */
}

static void a_folder_that_takes_no_file_is_told(void **state)
{
    (void)state;
    reopen();
    struct index_file_head head = head_of(0);
    char kept[sizeof fixture.path + 8];
    snprintf(kept, sizeof kept, "%s.kept", fixture.path);
    assert_int_equal(rename(fixture.path, kept), 0);
    assert_int_equal(mkdir(fixture.path, 0777), 0); /* nothing can be put in its place */
    assert_true(index_heads_write(fixture.index, &head, 1, &fixture.error) != STK_OK);
    assert_int_equal(rmdir(fixture.path), 0);
    assert_int_equal(rename(kept, fixture.path), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(an_index_has_no_heads_at_first, begin, end),
        cmocka_unit_test_setup_teardown(heads_come_back_and_the_rest_stays_as_it_was, begin, end),
        cmocka_unit_test_setup_teardown(heads_are_replaced_not_added_to, begin, end),
        cmocka_unit_test_setup_teardown(damaged_heads_count_as_none, begin, end),
        cmocka_unit_test_setup_teardown(a_folder_that_takes_no_file_is_told, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
