#include "base/testing.h"

#include "pack/tar_writer.h"

static struct stk_bytes bytes_of(const char *text, size_t len)
{
    return (struct stk_bytes){(const uint8_t *)text, len};
}

/* Writes one member and gives the file back. */
static uint8_t *write_one(const char *folder, struct stk_bytes name, struct stk_bytes head,
                          struct stk_bytes body, size_t *len)
{
    struct tar_writer *writer;
    struct stk_error err;
    int fd = open(folder, O_RDONLY | O_DIRECTORY);
    const char *path = path_in(folder, "a.tar");

    unlink(path);
    assert_int_equal(tar_writer_open(&writer, fd, "a.tar", "out/a.tar", &err), STK_OK);
    assert_int_equal(tar_writer_member(writer, name, head, body, &err), STK_OK);
    uint64_t size = tar_writer_size(writer);
    assert_int_equal(size, tar_writer_member_size(name, head.len + body.len) + TAR_END);
    assert_int_equal(tar_writer_finish(writer, &err), STK_OK);
    close(fd);
    FILE *file = fopen(path, "rb");
    uint8_t *data = malloc(size + 1);
    *len = fread(data, 1, size + 1, file);
    fclose(file);
    assert_int_equal(*len, size);
    return data;
}

static void a_member_is_a_header_its_bytes_and_padding(void **state)
{
    char folder[PATH_MAX];
    size_t len;

    (void)state;
    folder_new(folder);
    uint8_t *data =
        write_one(folder, bytes_of("k.txt", 5), bytes_of("head", 4), bytes_of("body", 4), &len);
    assert_int_equal(len, 4 * TAR_BLOCK);
    assert_string_equal((char *)data, "k.txt");
    assert_memory_equal(data + 124, "00000000010", 12);
    assert_memory_equal(data + 257, "ustar\00000", 8);
    assert_memory_equal(data + TAR_BLOCK, "headbody\0", 9);
    unsigned sum = 8 * ' ';
    for (int i = 0; i < TAR_BLOCK; i++)
        sum += i >= 148 && i < 156 ? 0 : data[i];
    assert_int_equal(strtoul((char *)data + 148, NULL, 8), sum);
    free(data);
    folder_remove(folder);
}

static void the_size_told_before_is_the_size_written_for_any_name(void **state)
{
    char folder[PATH_MAX], name[1200];
    size_t len;

    (void)state;
    folder_new(folder);
    for (size_t slash = 40; slash <= 160; slash += 60)
        for (size_t n = 1; n < 1100; n += n < 300 ? 1 : 97) {
            memset(name, 'n', sizeof(name));
            if (slash < n)
                name[slash] = '/';
            free(write_one(folder, bytes_of(name, n), bytes_of(NULL, 0), bytes_of("x", 1), &len));
        }
    folder_remove(folder);
}

static void a_long_name_is_cut_where_it_can_be(void **state)
{
    char folder[PATH_MAX], name[201];
    size_t len;

    (void)state;
    folder_new(folder);
    memset(name, 'n', sizeof(name));
    name[120] = '/';
    uint8_t *data =
        write_one(folder, bytes_of(name, 200), bytes_of(NULL, 0), bytes_of("x", 1), &len);
    assert_int_equal(len, 4 * TAR_BLOCK); /* one header, no pax */
    assert_memory_equal(data, name + 121, 79);
    assert_int_equal(data[79], 0);
    assert_memory_equal(data + 345, name, 120);
    assert_int_equal(data[345 + 120], 0);
    free(data);
    folder_remove(folder);
}

static void a_name_that_cannot_be_cut_gets_a_pax_record_of_true_length(void **state)
{
    char folder[PATH_MAX], name[1000];
    size_t len;

    (void)state;
    folder_new(folder);
    memset(name, 'n', sizeof(name));
    /* around each place where the record's length gets another digit */
    for (size_t n = 101; n < 999; n++) {
        uint8_t *data =
            write_one(folder, bytes_of(name, n), bytes_of(NULL, 0), bytes_of("x", 1), &len);
        char *end, *record = (char *)data + TAR_BLOCK;
        unsigned long told = strtoul(record, &end, 10);
        assert_int_equal(data[156], 'x');
        assert_memory_equal(end, " path=", 6);
        assert_memory_equal(end + 6, name, n);
        assert_int_equal(end[6 + n], '\n');
        assert_int_equal(end + 7 + n - record, told);
        assert_int_equal(strtoul((char *)data + 124, NULL, 8), told);
        free(data);
    }
    folder_remove(folder);
}

static void a_size_over_eight_gibibytes_takes_a_pax_record(void **state)
{
    struct stk_bytes name = bytes_of("a.bin", 5);
    uint64_t limit = UINT64_C(1) << 33;

    (void)state;
    assert_int_equal(tar_writer_member_size(name, limit - TAR_BLOCK), limit);
    assert_int_equal(tar_writer_member_size(name, limit), limit + 3 * TAR_BLOCK);
}

static void large_and_small_members_keep_their_order(void **state)
{
    char folder[PATH_MAX];
    struct tar_writer *writer;
    struct stk_error err;
    size_t large = (3u << 20) + 17;
    char *body = malloc(large);

    (void)state;
    folder_new(folder);
    memset(body, 'L', large);
    int fd = open(folder, O_RDONLY | O_DIRECTORY);
    assert_int_equal(tar_writer_open(&writer, fd, "a.tar", "out/a.tar", &err), STK_OK);
    for (int i = 0; i < 3; i++) {
        struct stk_bytes small = bytes_of("small", 5), big = bytes_of(body, large);
        assert_int_equal(tar_writer_member(writer, small, bytes_of("h", 1), small, &err), STK_OK);
        assert_int_equal(tar_writer_member(writer, bytes_of("b", 1), small, big, &err), STK_OK);
    }
    assert_int_equal(tar_writer_finish(writer, &err), STK_OK);
    FILE *file = fopen(path_in(folder, "a.tar"), "rb");
    for (int i = 0; i < 3; i++) {
        char block[TAR_BLOCK];
        assert_int_equal(fread(block, 1, sizeof(block), file), sizeof(block));
        assert_string_equal(block, "small");
        assert_int_equal(fread(block, 1, sizeof(block), file), sizeof(block));
        assert_memory_equal(block, "hsmall\0", 7);
        assert_int_equal(fread(block, 1, sizeof(block), file), sizeof(block));
        assert_string_equal(block, "b");
        assert_int_equal(strtoul(block + 124, NULL, 8), large + 5);
        assert_int_equal(fseek(file, (long)((large + 5 + 511) / 512 * 512), SEEK_CUR), 0);
    }
    fclose(file);
    free(body);
    close(fd);
    folder_remove(folder);
}

static void a_file_that_is_there_is_not_written_over(void **state)
{
    char folder[PATH_MAX];
    struct tar_writer *writer;
    struct stk_error err;

    (void)state;
    folder_new(folder);
    file_write(path_in(folder, "a.tar"), "mine", 4);
    int fd = open(folder, O_RDONLY | O_DIRECTORY);
    assert_int_not_equal(tar_writer_open(&writer, fd, "a.tar", "out/a.tar", &err), STK_OK);
    assert_null(writer);
    assert_string_equal(err.object, "out/a.tar");
    close(fd);
    folder_remove(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_member_is_a_header_its_bytes_and_padding),
        cmocka_unit_test(the_size_told_before_is_the_size_written_for_any_name),
        cmocka_unit_test(a_long_name_is_cut_where_it_can_be),
        cmocka_unit_test(a_name_that_cannot_be_cut_gets_a_pax_record_of_true_length),
        cmocka_unit_test(a_size_over_eight_gibibytes_takes_a_pax_record),
        cmocka_unit_test(large_and_small_members_keep_their_order),
        cmocka_unit_test(a_file_that_is_there_is_not_written_over),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
