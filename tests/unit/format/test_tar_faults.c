/* The numbers are those of the list of faults that the engine must survive. */
#include "tar_maker.h"

static struct fixture fixture;
static struct tar tar;

static int begin(void **state)
{
    (void)state;
    fixture_begin(&fixture);
    return 0;
}

static int end(void **state)
{
    (void)state;
    tar_free(&tar);
    fixture_end(&fixture);
    return 0;
}

static void build(void)
{
    tar_list(&fixture, &tar, "shard.tar");
    stk_status status = fixture_build(&fixture, "tar");
    if (status)
        fail_msg("%s: %s", stk_status_name(status), fixture.error.what);
}

static void refuse(stk_status wanted)
{
    tar_list(&fixture, &tar, "shard.tar");
    fixture_refuses(&fixture, "tar", wanted);
}

static void a_shard_cut_inside_a_header_is_an_error(void **state) /* 1 */
{
    (void)state;
    tar_member(&tar, "a.npy", "1");
    tar_member(&tar, "b.npy", "1");
    tar.len -= 512 + 100;
    refuse(STK_TRUNCATED);
    assert_int_equal(fixture.error.offset, 1024);
}

static void a_shard_cut_inside_a_body_is_an_error(void **state) /* 2 */
{
    (void)state;
    tar_member(&tar, "a.npy", "1");
    tar_header(&tar, "b.npy", '0', 5000);
    tar_grow(&tar, 1024);
    refuse(STK_TRUNCATED);
    assert_int_equal(fixture.error.offset, 1024);
}

static void a_shard_cut_inside_a_members_padding_is_an_error(void **state) /* 2 */
{
    (void)state;
    tar_member(&tar, "a.npy", "1");
    tar.len -= 100;
    refuse(STK_TRUNCATED);
}

static void a_clean_cut_without_end_blocks_is_taken_with_a_notice(void **state) /* 3 */
{
    (void)state;
    tar_member(&tar, "a.npy", "1");
    build();
    assert_int_equal(index_samples(fixture.index), 1);
    assert_int_equal(fixture.notices, 1);
    assert_non_null(strstr(fixture.notice, "shard.tar"));
}

static void a_wrong_header_checksum_is_an_error(void **state) /* 4 */
{
    (void)state;
    tar_member(&tar, "a.npy", "1");
    tar_header(&tar, "b.npy", '0', 0)[0] = 'c';
    tar_end(&tar);
    refuse(STK_CORRUPT);
    assert_int_equal(fixture.error.offset, 1024);
}

static void a_size_that_is_no_octal_number_is_an_error(void **state) /* 5 */
{
    (void)state;
    const char *sizes[] = {"0000000009 ", "hello", "12 34", "-1", "0x10"};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        uint8_t *header = tar_header(&tar, "a.npy", '0', 0);
        memset(header + 124, 0, 12);
        memcpy(header + 124, sizes[i], strlen(sizes[i]));
        tar_sign(header);
        tar_end(&tar);
        fixture.count = 0;
        refuse(STK_CORRUPT);
    }
}

static void a_negative_base_256_size_is_an_error(void **state) /* 6 */
{
    (void)state;
    for (int fill = 0; fill <= 0xff; fill += 0xff) { /* -2^88 and -1 */
        uint8_t *header = tar_header(&tar, "a.npy", '0', 0);
        memset(header + 124, fill, 12);
        header[124] = 0xff;
        tar_sign(header);
        tar_end(&tar);
        fixture.count = 0;
        refuse(STK_CORRUPT);
    }
}

static void a_size_beyond_the_file_or_2_to_60_is_an_error(void **state) /* 7 */
{
    (void)state;
    /* 2^60 fits no file, 2^60 + 1, 2^63 and 2^64 no sane number */
    const struct {
        uint8_t byte3, byte4, last;
        stk_status wanted;
    } sizes[] = {{0, 0x10, 0, STK_TRUNCATED},
                 {0, 0x10, 1, STK_CORRUPT},
                 {0, 0x80, 0, STK_CORRUPT},
                 {1, 0, 0, STK_CORRUPT}};
    for (int i = 0; i < 4; i++) {
        uint8_t *header = tar_header(&tar, "a.npy", '0', 0);
        memset(header + 124, 0, 12);
        header[124] = 0x80;
        header[127] = sizes[i].byte3;
        header[128] = sizes[i].byte4;
        header[135] = sizes[i].last;
        tar_sign(header);
        tar_end(&tar);
        fixture.count = 0;
        refuse(sizes[i].wanted);
    }
    tar_header(&tar, "a.npy", '0', 0777777777);
    tar_end(&tar);
    fixture.count = 0;
    refuse(STK_TRUNCATED);
}

static void a_pax_size_of_2_to_63_is_an_error(void **state) /* 8 */
{
    (void)state;
    const char *records[] = {"28 size=9223372036854775807\n", "29 size=18446744073709551616\n",
                             "11 size=-1\n", "11 size=1x\n"};
    for (size_t i = 0; i < sizeof(records) / sizeof(records[0]); i++) {
        tar_pax(&tar, records[i]);
        tar_member(&tar, "a.npy", "1");
        tar_end(&tar);
        fixture.count = 0;
        refuse(STK_CORRUPT);
    }
}

static void a_pax_length_that_does_not_fit_is_an_error(void **state) /* 9 */
{
    (void)state;
    const char *records[] = {"99999999999999999999999999 path=a\n", "400 path=a\n", "0 path=a\n",
                             "3 path=a\n", "path=a\n"};
    for (size_t i = 0; i < sizeof(records) / sizeof(records[0]); i++) {
        tar_pax(&tar, records[i]);
        tar_member(&tar, "a.npy", "1");
        tar_end(&tar);
        fixture.count = 0;
        refuse(STK_CORRUPT);
    }
}

static void a_pax_record_may_not_reach_beyond_its_header(void **state) /* 9 */
{
    (void)state;
    tar_header(&tar, "pax", 'x', 15);
    tar_body(&tar, "20 path=abcde.fghi\n\n", 20); /* its last bytes are padding to the header */
    tar_member(&tar, "a.npy", "1");
    tar_end(&tar);
    refuse(STK_CORRUPT);
}

static void an_empty_pax_header_says_nothing(void **state) /* 9 */
{
    (void)state;
    tar_pax(&tar, "");
    tar_member(&tar, "a.npy", "1");
    tar_end(&tar);
    build();
    fixture_key_is(&fixture, 0, "a");
}

static void a_pax_header_of_4_gib_is_refused_before_it_is_read(void **state) /* 10 */
{
    (void)state;
    tar_header(&tar, "pax", 'x', 0777777777);
    tar_end(&tar);
    refuse(STK_LIMIT);
}

static void a_pax_record_without_newline_or_equals_is_an_error(void **state) /* 11 */
{
    (void)state;
    const char *records[] = {"10 path=ab", "10 path-ab\n", "9 path=ab\n", "6 =ab\n"};
    for (size_t i = 0; i < sizeof(records) / sizeof(records[0]); i++) {
        tar_pax(&tar, records[i]);
        tar_member(&tar, "a.npy", "1");
        tar_end(&tar);
        fixture.count = 0;
        refuse(STK_CORRUPT);
    }
}

static void of_two_extended_headers_of_one_kind_the_last_wins(void **state) /* 12 */
{
    (void)state;
    tar_pax(&tar, "14 path=one.x\n");
    tar_pax(&tar, "14 path=two.x\n");
    tar_member(&tar, "h.x", "1");
    tar_extended(&tar, 'L', "three.x", 8);
    tar_extended(&tar, 'L', "four.x", 7);
    tar_member(&tar, "h.x", "1");
    tar_end(&tar);
    build();
    fixture_key_is(&fixture, 0, "two");
    fixture_key_is(&fixture, 1, "four");
}

static void an_extended_header_without_a_member_is_an_error(void **state) /* 12 */
{
    (void)state;
    tar_member(&tar, "a.npy", "1");
    tar_pax(&tar, "14 path=one.x\n");
    refuse(STK_TRUNCATED);
    tar_pax(&tar, "14 path=one.x\n");
    tar_end(&tar);
    fixture.count = 0;
    refuse(STK_CORRUPT);
}

static void a_global_header_counts_until_taken_back_and_is_capped(void **state) /* 13 */
{
    (void)state;
    tar_extended(&tar, 'g', "17 comment=hello\n14 path=all.x\n", 31);
    tar_member(&tar, "h.x", "1");
    tar_pax(&tar, "14 path=one.x\n");
    tar_member(&tar, "h.x", "1");
    tar_extended(&tar, 'g', "8 path=\n", 8);
    tar_member(&tar, "h.x", "1");
    tar_end(&tar);
    build();
    fixture_key_is(&fixture, 0, "all");
    fixture_key_is(&fixture, 1, "one");
    fixture_key_is(&fixture, 2, "h");
    tar_header(&tar, "g", 'g', 8 << 20);
    tar_grow(&tar, 9 << 20);
    fixture.count = 0;
    refuse(STK_LIMIT);
}

static void a_volume_header_of_negative_size_is_an_error(void **state) /* 14 */
{
    (void)state;
    uint8_t *header = tar_header(&tar, "volume", 'V', 0);
    memset(header + 124, 0xff, 12);
    tar_sign(header);
    tar_end(&tar);
    refuse(STK_CORRUPT);
}

static void sparse_members_are_refused_by_name(void **state) /* 15 */
{
    (void)state;
    tar_header(&tar, "holes.npy", 'S', 0);
    tar_end(&tar);
    refuse(STK_UNSUPPORTED);
    assert_non_null(strstr(fixture.error.what, "holes.npy"));
    const char *records[] = {"22 GNU.sparse.major=1\n", "24 GNU.sparse.map=1,2,3\n"};
    for (int i = 0; i < 2; i++) {
        tar_pax(&tar, records[i]);
        tar_member(&tar, "more.npy", "1");
        tar_end(&tar);
        fixture.count = 0;
        refuse(STK_UNSUPPORTED);
        assert_non_null(strstr(fixture.error.what, "more.npy"));
    }
}

static void links_devices_and_folders_are_skipped_and_counted(void **state) /* 16 */
{
    (void)state;
    for (char type = '1'; type <= '6'; type++) /* a size that means nothing: no body follows */
        tar_header(&tar, "x.npy", type, 700);
    tar_member(&tar, "a.npy", "1");
    tar_end(&tar);
    build();
    assert_int_equal(index_skipped(fixture.index), 6);
    assert_int_equal(index_samples(fixture.index), 1);
}

static void wild_names_are_only_keys(void **state) /* 17 */
{
    (void)state;
    static char name[1 << 20], record[(1 << 20) + 64];
    tar_member(&tar, "../../etc/x.npy", "1");
    tar_member(&tar, "/etc/passwd.npy", "1");
    tar_member(&tar, "\xff\xfe\x80.npy", "1");
    memset(name, 'n', sizeof(name) - 5);
    memcpy(name + sizeof(name) - 5, ".npy", 5);
    int len = snprintf(record, sizeof(record), "%d path=%s\n", (int)sizeof(name) - 1 + 14, name);
    assert_int_equal(len, (int)sizeof(name) - 1 + 14);
    tar_extended(&tar, 'x', record, (size_t)len);
    tar_member(&tar, "h.npy", "1");
    tar_extended(&tar, 'x', "16 path=a\0b.npy\n", 16);
    tar_member(&tar, "h.npy", "1");
    tar_end(&tar);
    build();
    fixture_key_is(&fixture, 0, "../../etc/x");
    fixture_key_is(&fixture, 1, "/etc/passwd");
    fixture_key_is(&fixture, 2, "\xff\xfe\x80");
    char scratch[INDEX_KEY_SCRATCH];
    struct stk_bytes key;
    assert_int_equal(index_key(fixture.index, 3, scratch, &key, NULL), STK_OK);
    assert_int_equal(key.len, sizeof(name) - 5);
    assert_int_equal(index_key(fixture.index, 4, scratch, &key, NULL), STK_OK);
    assert_int_equal(key.len, 3);
    assert_memory_equal(key.data, "a\0b", 3);
    assert_int_equal(index_object_count(fixture.index), 1);
}

static void a_nul_in_a_fields_name_is_an_error(void **state) /* 17 */
{
    (void)state;
    tar_extended(&tar, 'x', "16 path=a.n\0npy\n", 16);
    tar_member(&tar, "h.npy", "1");
    tar_end(&tar);
    refuse(STK_CORRUPT);
}

static void empty_names_are_skipped_and_empty_files_are_values(void **state) /* 18 */
{
    (void)state;
    tar_member(&tar, "", "nameless");
    tar_member(&tar, "a.npy", "");
    tar_end(&tar);
    build();
    assert_int_equal(index_skipped(fixture.index), 1);
    assert_int_equal(fixture_extent(&fixture, 0, "npy").length, 0);
}

static void a_field_twice_in_a_sample_is_an_error_that_names_it(void **state) /* 19 */
{
    (void)state;
    tar_member(&tar, "a.npy", "1");
    tar_member(&tar, "a.cls", "1");
    tar_member(&tar, "a.npy", "1");
    tar_end(&tar);
    refuse(STK_CORRUPT);
    assert_string_equal(fixture.error.key, "a");
    assert_string_equal(fixture.error.field, "npy");
    assert_int_equal(fixture.error.offset, 2048);
}

static void a_sample_over_two_shards_is_two_samples(void **state) /* 19 */
{
    (void)state;
    tar_member(&tar, "a.npy", "1");
    tar_end(&tar);
    tar_list(&fixture, &tar, "0.tar");
    tar_member(&tar, "a.cls", "1");
    tar_end(&tar);
    tar_list(&fixture, &tar, "1.tar");
    assert_int_equal(fixture_build(&fixture, "tar"), STK_OK);
    assert_int_equal(index_samples(fixture.index), 2);
    assert_int_equal(fixture_extent(&fixture, 0, "cls").object, EXTENT_NONE);
    assert_int_equal(fixture_extent(&fixture, 1, "cls").object, 1);
    assert_int_equal(index_field(fixture.index, 0)->missing, 1);
}

static void tars_one_after_the_other_are_read_to_the_end(void **state) /* 20 */
{
    (void)state;
    tar_member(&tar, "a.npy", "1");
    tar_end(&tar);
    tar_grow(&tar, 8192);
    tar_member(&tar, "b.npy", "1");
    tar_end(&tar);
    tar_grow(&tar, 100);
    build();
    assert_int_equal(index_samples(fixture.index), 2);
    assert_int_equal(fixture.notices, 0);
}

static void garbage_behind_the_end_is_an_error(void **state) /* 20 */
{
    (void)state;
    for (size_t len = 100; len <= 600; len += 500) {
        tar_member(&tar, "a.npy", "1");
        tar_end(&tar);
        memset(tar_grow(&tar, len), 'g', len);
        fixture.count = 0;
        refuse(len < 512 ? STK_TRUNCATED : STK_CORRUPT);
    }
}

static void a_bomb_is_refused_by_ratio_and_by_size(void **state) /* 21 */
{
    (void)state;
    tar_header(&tar, "a.npy", '0', 70 << 20);
    tar_grow(&tar, 70 << 20);
    tar_end(&tar);
    tar_list_gzip(&fixture, &tar, "shard.tar.gz");
    fixture_refuses(&fixture, "tar", STK_LIMIT);
    tar_header(&tar, "a.npy", '0', 2 << 20);
    tar_grow(&tar, 2 << 20);
    tar_end(&tar);
    fixture.count = 0;
    tar_list_gzip(&fixture, &tar, "shard.tar.gz");
    fixture.input.chunk_limit = 1 << 20;
    fixture_refuses(&fixture, "tar", STK_LIMIT);
    fixture.input.chunk_limit = 4 << 20;
    assert_int_equal(fixture_build(&fixture, "tar"), STK_OK);
}

static void a_compressed_shard_that_was_cut_is_an_error(void **state) /* 2 */
{
    (void)state;
    tar_member(&tar, "a.npy", "12345");
    tar_header(&tar, "b.npy", '0', 5000);
    tar_grow(&tar, 1024);
    tar_list_gzip(&fixture, &tar, "inside.tar.gz");
    fixture_refuses(&fixture, "tar", STK_TRUNCATED);
    tar_member(&tar, "a.npy", "12345");
    tar_end(&tar);
    fixture.count = 0;
    tar_list_gzip(&fixture, &tar, "cut.tar.gz");
    char path[512];
    snprintf(path, sizeof(path), "%s/cut.tar.gz", fixture.folder);
    uint8_t bytes[4096];
    int fd = open(path, O_RDONLY);
    ssize_t got = read(fd, bytes, sizeof(bytes));
    close(fd);
    fixture.count = 0;
    fixture_file(&fixture, "cut.tar.gz", bytes, (size_t)got - 9);
    fixture_refuses(&fixture, "tar", STK_TRUNCATED);
}

static void what_is_no_tar_is_told_so(void **state) /* 22 */
{
    (void)state;
    const char *page = "<html><head><title>404 Not Found</title></head></html>";
    uint8_t noise[2048];
    for (size_t i = 0; i < sizeof(noise); i++)
        noise[i] = (uint8_t)(i * 2654435761u >> 13);
    fixture_file(&fixture, "page.tar", page, strlen(page));
    fixture_refuses(&fixture, "tar", STK_CORRUPT);
    assert_non_null(strstr(fixture.error.what, "not a tar"));
    fixture.count = 0;
    fixture_file(&fixture, "noise.tar", noise, sizeof(noise));
    fixture_refuses(&fixture, "tar", STK_CORRUPT);
    assert_non_null(strstr(fixture.error.what, "not a tar"));
    fixture.count = 0;
    fixture_file(&fixture, "empty.tar", "", 0);
    fixture_refuses(&fixture, "tar", STK_TRUNCATED);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
    const struct CMUnitTest tests[] = {
        TEST(a_shard_cut_inside_a_header_is_an_error),
        TEST(a_shard_cut_inside_a_body_is_an_error),
        TEST(a_shard_cut_inside_a_members_padding_is_an_error),
        TEST(a_clean_cut_without_end_blocks_is_taken_with_a_notice),
        TEST(a_wrong_header_checksum_is_an_error),
        TEST(a_size_that_is_no_octal_number_is_an_error),
        TEST(a_negative_base_256_size_is_an_error),
        TEST(a_size_beyond_the_file_or_2_to_60_is_an_error),
        TEST(a_pax_size_of_2_to_63_is_an_error),
        TEST(a_pax_length_that_does_not_fit_is_an_error),
        TEST(a_pax_record_may_not_reach_beyond_its_header),
        TEST(an_empty_pax_header_says_nothing),
        TEST(a_pax_header_of_4_gib_is_refused_before_it_is_read),
        TEST(a_pax_record_without_newline_or_equals_is_an_error),
        TEST(of_two_extended_headers_of_one_kind_the_last_wins),
        TEST(an_extended_header_without_a_member_is_an_error),
        TEST(a_global_header_counts_until_taken_back_and_is_capped),
        TEST(a_volume_header_of_negative_size_is_an_error),
        TEST(sparse_members_are_refused_by_name),
        TEST(links_devices_and_folders_are_skipped_and_counted),
        TEST(wild_names_are_only_keys),
        TEST(a_nul_in_a_fields_name_is_an_error),
        TEST(empty_names_are_skipped_and_empty_files_are_values),
        TEST(a_field_twice_in_a_sample_is_an_error_that_names_it),
        TEST(a_sample_over_two_shards_is_two_samples),
        TEST(tars_one_after_the_other_are_read_to_the_end),
        TEST(garbage_behind_the_end_is_an_error),
        TEST(a_bomb_is_refused_by_ratio_and_by_size),
        TEST(a_compressed_shard_that_was_cut_is_an_error),
        TEST(what_is_no_tar_is_told_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
