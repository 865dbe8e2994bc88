#include "base/memory.h"
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

static void members_with_one_key_are_a_sample(void **state)
{
    (void)state;
    tar_member(&tar, "a/000.npy", "12345");
    tar_member(&tar, "a/000.cls", "7");
    tar_member(&tar, "a/001.seg.PNG", "");
    tar_end(&tar);
    build();
    assert_int_equal(index_samples(fixture.index), 2);
    assert_int_equal(index_field_count(fixture.index), 3);
    fixture_key_is(&fixture, 0, "a/000");
    fixture_key_is(&fixture, 1, "a/001");
    struct extent npy = fixture_extent(&fixture, 0, "npy");
    assert_int_equal(npy.offset, 512);
    assert_int_equal(npy.length, 5);
    assert_int_equal(npy.object, 0);
    assert_int_equal(fixture_extent(&fixture, 0, "cls").offset, 512 * 3);
    assert_int_equal(fixture_extent(&fixture, 1, "npy").object, EXTENT_NONE);
    assert_int_equal(fixture_extent(&fixture, 1, "seg.PNG").length, 0);
    assert_string_equal(index_format(fixture.index), "tar");
    assert_int_equal(fixture.notices, 0);
}

static void names_are_split_as_webdataset_does(void **state)
{
    (void)state;
    const char *names[] = {"nodot",     ".top.x",  "a.b/.h.x", "__m__",
                           "__m__/x.y", "__a.b__", "d/nodot"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        tar_member(&tar, names[i], "skipped");
    tar_member(&tar, "a/.h.x", "1");
    tar_member(&tar, "__m__.y", "2");
    tar_member(&tar, "x.", "3");
    tar_end(&tar);
    build();
    assert_int_equal(index_skipped(fixture.index), 7);
    assert_int_equal(index_samples(fixture.index), 3);
    fixture_key_is(&fixture, 0, "a/");
    assert_int_equal(fixture_extent(&fixture, 0, "h.x").length, 1);
    fixture_key_is(&fixture, 1, "__m__");
    fixture_key_is(&fixture, 2, "x");
    assert_int_equal(fixture_extent(&fixture, 2, "").length, 1);
}

static void a_key_that_comes_again_later_is_a_new_sample(void **state)
{
    (void)state;
    tar_member(&tar, "a.npy", "1");
    tar_member(&tar, "b.npy", "2");
    tar_member(&tar, "a.npy", "3");
    tar_end(&tar);
    build();
    assert_int_equal(index_samples(fixture.index), 3);
    fixture_key_is(&fixture, 2, "a");
}

static void several_shards_keep_their_order_with_any_number_of_threads(void **state)
{
    (void)state;
    uint8_t prints[2][16];
    for (int i = 0; i < 20; i++) {
        char name[32];
        snprintf(name, sizeof(name), "k%02d.txt", i);
        for (int k = 0; k <= i % 3; k++) {
            name[0] = (char)('k' + k);
            tar_member(&tar, name, name);
        }
        tar_end(&tar);
        snprintf(name, sizeof(name), "s%02d.tar", i);
        tar_list(&fixture, &tar, name);
    }
    for (int round = 0; round < 2; round++) {
        fixture.input.threads = round ? 7 : 1;
        assert_int_equal(fixture_build(&fixture, "tar"), STK_OK);
        assert_int_equal(index_samples(fixture.index), 39);
        fixture_key_is(&fixture, 38, "l19");
        index_fingerprint(fixture.index, prints[round]);
    }
    assert_memory_equal(prints[0], prints[1], 16);
    assert_true(fixture.ticks > 0);
}

static void gnu_long_names_and_base_256_sizes_are_read(void **state)
{
    (void)state;
    char name[400];
    memset(name, 'n', sizeof(name));
    memcpy(name + 390, ".npy", 5);
    tar_extended(&tar, 'K', "target", 7);
    tar_extended(&tar, 'L', name, strlen(name) + 1);
    uint8_t *header = tar_header(&tar, "cut", '0', 0);
    memset(header + 124, 0, 12);
    header[124] = 0x80;
    header[135] = 3;
    memcpy(header + 257, "ustar  ", 8);
    tar_sign(header);
    tar_body(&tar, "123", 3);
    tar_end(&tar);
    build();
    name[390] = 0;
    fixture_key_is(&fixture, 0, name);
    assert_int_equal(fixture_extent(&fixture, 0, "npy").length, 3);
}

static void pax_path_and_size_win_over_the_header(void **state)
{
    (void)state;
    tar_pax(&tar, "20 path=d/real.x.np\n9 size=3\n11 a=b=c=d\n");
    tar_header(&tar, "wrong.name", '0', 9999);
    tar_body(&tar, "123", 3);
    tar_member(&tar, "next.npy", "12");
    tar_end(&tar);
    build();
    fixture_key_is(&fixture, 0, "d/real");
    assert_int_equal(fixture_extent(&fixture, 0, "x.np").length, 3);
    fixture_key_is(&fixture, 1, "next");
}

static void ustar_prefixes_and_v7_folders_are_read(void **state)
{
    (void)state;
    uint8_t *header = tar_header(&tar, "n.npy", '0', 0);
    memcpy(header + 345, "far/away", 8);
    tar_sign(header);
    header = tar_header(&tar, "old/", 0, 0);
    memset(header + 257, 0, 255);
    tar_sign(header);
    header = tar_header(&tar, "v.seven", 0, 0);
    memset(header + 257, 0, 255);
    tar_sign(header);
    tar_end(&tar);
    build();
    assert_int_equal(index_samples(fixture.index), 2);
    assert_int_equal(index_skipped(fixture.index), 1);
    fixture_key_is(&fixture, 0, "far/away/n");
    fixture_key_is(&fixture, 1, "v");
}

static void a_signed_checksum_of_an_old_tar_is_accepted(void **state)
{
    (void)state;
    uint8_t *header = tar_header(&tar, "\xfc\xe4.npy", '0', 0);
    int sum = 0;
    memset(header + 148, ' ', 8);
    for (int i = 0; i < 512; i++)
        sum += (signed char)header[i];
    tar_octal(header + 148, 6, (uint64_t)sum);
    tar_end(&tar);
    build();
    fixture_key_is(&fixture, 0, "\xfc\xe4");
}

static void a_compressed_shard_is_one_chunk(void **state)
{
    (void)state;
    tar_member(&tar, "a.npy", "12345");
    tar_member(&tar, "b.npy", "12");
    tar_end(&tar);
    size_t size = tar.len;
    tar_list_gzip(&fixture, &tar, "shard.tar.gz");
    assert_int_equal(fixture_build(&fixture, "tar"), STK_OK);
    struct chunk chunk;
    assert_int_equal(index_chunk_count(fixture.index), 1);
    assert_int_equal(index_chunk(fixture.index, 0, &chunk, NULL), STK_OK);
    assert_int_equal(chunk.decoded, size);
    assert_int_equal(chunk.length, fixture.objects[0].size);
    assert_int_equal(chunk.first, 0);
    assert_int_equal(chunk.count, 2);
    struct extent extent = fixture_extent(&fixture, 1, "npy");
    assert_int_equal(extent.object, 1); /* the chunk comes behind the only object */
    assert_int_equal(extent.offset, 1024 + 512);
}

static void the_first_bad_shard_in_order_is_the_one_reported(void **state)
{
    (void)state;
    fixture.input.threads = 4;
    for (int i = 0; i < 16; i++) {
        char name[32];
        tar_member(&tar, "a.npy", "1");
        tar_end(&tar);
        if (i >= 5)
            tar.data[0] = '!';
        snprintf(name, sizeof(name), "s%02d.tar", i);
        tar_list(&fixture, &tar, name);
    }
    assert_int_equal(fixture_build(&fixture, "tar"), STK_CORRUPT);
    assert_non_null(strstr(fixture.error.object, "s05.tar"));
    assert_int_not_equal(access(fixture.index_path, F_OK), 0);
}

static void progress_that_says_stop_stops_the_build(void **state)
{
    (void)state;
    for (int threads = 1; threads <= 3; threads += 2) {
        fixture.count = 0;
        for (int i = 0; i < 8; i++) {
            char name[32];
            tar_member(&tar, "a.npy", "1");
            tar_end(&tar);
            snprintf(name, sizeof(name), "s%02d.tar", i);
            tar_list(&fixture, &tar, name);
        }
        fixture.input.threads = (uint32_t)threads;
        fixture.stop = 1;
        assert_int_equal(fixture_build(&fixture, "tar"), STK_CANCELLED);
    }
}

static void a_shard_that_changed_since_it_was_listed_is_stale(void **state)
{
    (void)state;
    tar_member(&tar, "a.npy", "1");
    tar_end(&tar);
    tar_list(&fixture, &tar, "shard.tar");
    fixture.objects[0].version ^= 1;
    fixture_refuses(&fixture, "tar", STK_STALE);
}

static void large_members_are_jumped_over_whatever_comes_between(void **state)
{
    (void)state;
    for (int i = 0; i < 40; i++) {
        char name[32];
        size_t size = i % 7 ? 100000u + (size_t)i * 3000u : 300u;
        snprintf(name, sizeof(name), "%03d.npy", i);
        tar_header(&tar, name, '0', size);
        tar_grow(&tar, (size + 511) / 512 * 512);
        if (i % 5 == 0)
            tar_pax(&tar, "13 comment=x\n");
        snprintf(name, sizeof(name), "%03d.cls", i);
        tar_member(&tar, name, "1");
    }
    tar_end(&tar);
    build();
    assert_int_equal(index_samples(fixture.index), 40);
    for (uint64_t i = 0; i < 40; i++) {
        uint64_t size = i % 7 ? 100000u + i * 3000u : 300u;
        assert_int_equal(fixture_extent(&fixture, i, "npy").length, size);
        assert_int_equal(fixture_extent(&fixture, i, "cls").length, 1);
    }
}

struct countdown {
    int left, failed;
};

static int fail_nth(void *user, size_t size)
{
    (void)size;
    struct countdown *countdown = user;
    if (countdown->left-- > 0)
        return 0;
    countdown->failed = 1;
    return 1;
}

static void memory_that_runs_out_at_any_call_is_an_error(void **state) /* fault 85 */
{
    (void)state;
    char name[300];
    memset(name, 'n', sizeof(name));
    memcpy(name + 290, ".npy", 5);
    for (int i = 0; i < 2; i++) {
        tar_pax(&tar, "20 path=d/real.x.np\n");
        tar_member(&tar, "a.npy", "1");
        tar_extended(&tar, 'L', name, 295);
        tar_member(&tar, "a.npy", "1");
        tar_end(&tar);
        if (i == 0)
            tar_list(&fixture, &tar, "0.tar");
        else
            tar_list_gzip(&fixture, &tar, "1.tar.gz");
    }
    for (int n = 0;; n++) {
        struct countdown countdown = {.left = n};
        memory_set_hook(fail_nth, &countdown);
        stk_status status = fixture_build(&fixture, "tar");
        memory_set_hook(NULL, NULL);
        assert_int_equal(status, countdown.failed ? STK_MEMORY : STK_OK);
        if (!countdown.failed)
            break;
        assert_true(n < 1000);
    }
    assert_int_equal(index_samples(fixture.index), 4);
}

static void the_format_is_found_by_name_suffix_and_content(void **state)
{
    (void)state;
    tar_member(&tar, "a.npy", "1");
    const struct format_ops *ops = format_find("tar");
    assert_non_null(ops);
    assert_ptr_equal(format_by_content(&(struct stk_bytes){tar.data, tar.len}), ops);
    assert_ptr_equal(format_by_suffix("x/train-000.TAR"), ops);
    assert_ptr_equal(format_by_suffix("train.tar.gz"), ops);
    assert_ptr_equal(format_by_suffix("train.tar.zst"), ops);
    assert_null(format_by_suffix("train.jpg"));
    assert_null(format_by_content(&(struct stk_bytes){(const uint8_t *)"<html>", 6}));
    assert_null(format_find("zip"));
    for (uint32_t i = 1; format_at(i); i++)
        assert_true(strcmp(format_at(i - 1)->name, format_at(i)->name) < 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
    const struct CMUnitTest tests[] = {
        TEST(members_with_one_key_are_a_sample),
        TEST(names_are_split_as_webdataset_does),
        TEST(a_key_that_comes_again_later_is_a_new_sample),
        TEST(several_shards_keep_their_order_with_any_number_of_threads),
        TEST(gnu_long_names_and_base_256_sizes_are_read),
        TEST(pax_path_and_size_win_over_the_header),
        TEST(ustar_prefixes_and_v7_folders_are_read),
        TEST(a_signed_checksum_of_an_old_tar_is_accepted),
        TEST(a_compressed_shard_is_one_chunk),
        TEST(the_first_bad_shard_in_order_is_the_one_reported),
        TEST(progress_that_says_stop_stops_the_build),
        TEST(a_shard_that_changed_since_it_was_listed_is_stale),
        TEST(large_members_are_jumped_over_whatever_comes_between),
        TEST(memory_that_runs_out_at_any_call_is_an_error),
        TEST(the_format_is_found_by_name_suffix_and_content),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
