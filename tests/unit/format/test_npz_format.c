/* The numbers are those of the list of faults that the engine must survive. */
#include <zlib.h>

#include "filter/filter.h"
#include "format_fixture.h"

#define MAX_MEMBERS 4

/* A zip file made by hand; what is odd about it is set before zip_list. */
struct zip_entry {
    char name[64];
    uint8_t data[512];
    size_t size;
    int deflated;
    uint64_t said_size, said_packed; /* in the directory */
    uint32_t local;                  /* offset of its header in the file */
    uint16_t flags, method;
    int zip64;
};

struct zip {
    struct zip_entry entries[MAX_MEMBERS];
    int count;
    int64_t directory_shift; /* added to the offset in the end record */
    uint16_t said_count;
    int lie_count, zip64_end;
    uint64_t end64_offset_shift;
};

static struct fixture fixture;
static struct zip zip;
static uint8_t out[8192];
static size_t out_len;

static int begin(void **state)
{
    (void)state;
    fixture_begin(&fixture);
    memset(&zip, 0, sizeof(zip));
    return 0;
}

static int end(void **state)
{
    (void)state;
    fixture_end(&fixture);
    return 0;
}

static void put(uint64_t value, int bytes)
{
    for (int i = 0; i < bytes; i++, value = i < 8 ? value >> 8 : 0)
        out[out_len++] = (uint8_t)value;
}

static void put_bytes(const void *data, size_t len)
{
    memcpy(out + out_len, data, len);
    out_len += len;
}

/* An array of `rows` rows of two float32. */
static struct zip_entry *zip_array(const char *name, int rows, int deflated)
{
    struct zip_entry *entry = &zip.entries[zip.count++];
    char header[119];
    snprintf(entry->name, sizeof(entry->name), "%s", name);
    int len = snprintf(header, sizeof(header),
                       "{'descr': '<f4', 'fortran_order': False, 'shape': (%d, 2), }", rows);
    memset(header + len, ' ', sizeof(header) - (size_t)len);
    memcpy(entry->data, "\x93NUMPY\x01\0\x76\0", 10);
    memcpy(entry->data + 10, header, 117);
    entry->data[127] = '\n';
    entry->size = 128 + (size_t)rows * 8;
    entry->deflated = deflated;
    entry->method = deflated ? 8 : 0;
    return entry;
}

static size_t pack(struct zip_entry *entry, uint8_t *to, size_t cap)
{
    if (!entry->deflated) {
        memcpy(to, entry->data, entry->size);
        return entry->size;
    }
    z_stream stream = {.next_in = entry->data,
                       .avail_in = (uInt)entry->size,
                       .next_out = to,
                       .avail_out = (uInt)cap};
    assert_int_equal(deflateInit2(&stream, 9, Z_DEFLATED, -15, 9, Z_DEFAULT_STRATEGY), Z_OK);
    assert_int_equal(deflate(&stream, Z_FINISH), Z_STREAM_END);
    size_t len = stream.total_out;
    deflateEnd(&stream);
    return len;
}

static void put_directory(const struct zip_entry *entry)
{
    int wide = entry->zip64;
    put(0x02014b50, 4);
    put(0, 4);
    put(entry->flags, 2);
    put(entry->method, 2);
    put(0, 4);
    put(crc32(0, entry->data, (uInt)entry->size), 4);
    put(wide ? UINT32_MAX : entry->said_packed, 4);
    put(wide ? UINT32_MAX : entry->said_size, 4);
    put(strlen(entry->name), 2);
    put(wide ? 20 : 0, 2);
    put(0, 10);
    put(entry->local, 4);
    put_bytes(entry->name, strlen(entry->name));
    if (wide) {
        put(1, 2);
        put(16, 2);
        put(entry->said_size, 8);
        put(entry->said_packed, 8);
    }
}

static void put_member(struct zip_entry *entry)
{
    uint8_t packed[1024];
    size_t len = pack(entry, packed, sizeof(packed));
    entry->local = (uint32_t)out_len;
    if (!entry->said_size)
        entry->said_size = entry->size;
    if (!entry->said_packed)
        entry->said_packed = len;
    put(0x04034b50, 4);
    put(0, 4);
    put(entry->method, 2);
    put(0, 16);
    put(strlen(entry->name), 2);
    put(0, 2);
    put_bytes(entry->name, strlen(entry->name));
    put_bytes(packed, len);
}

static void zip_list(const char *name)
{
    out_len = 0;
    for (int i = 0; i < zip.count; i++)
        put_member(&zip.entries[i]);
    uint64_t directory = out_len;
    for (int i = 0; i < zip.count; i++)
        put_directory(&zip.entries[i]);
    uint64_t length = out_len - directory, count = (uint64_t)zip.count;
    if (zip.lie_count)
        count = zip.said_count;
    directory += (uint64_t)zip.directory_shift;
    if (zip.zip64_end) {
        uint64_t end64 = out_len;
        put(0x06064b50, 4);
        put(44, 8);
        put(0, 12);
        put(count, 8);
        put(count, 8);
        put(length, 8);
        put(directory, 8);
        put(0x07064b50, 4);
        put(0, 4);
        put(end64 + zip.end64_offset_shift, 8);
        put(1, 4);
    }
    put(0x06054b50, 4);
    put(0, 4);
    put(zip.zip64_end ? UINT16_MAX : count, 2);
    put(zip.zip64_end ? UINT16_MAX : count, 2);
    put(zip.zip64_end ? UINT32_MAX : length, 4);
    put(zip.zip64_end ? UINT32_MAX : directory, 4);
    put(0, 2);
    fixture_file(&fixture, name, out, out_len);
}

static void refuse(stk_status wanted)
{
    fixture.count = 0;
    zip_list("a.npz");
    fixture_refuses(&fixture, "npz", wanted);
    memset(&zip, 0, sizeof(zip));
}

static void build(void)
{
    stk_status status = fixture_build(&fixture, "npz");
    if (status)
        fail_msg("%s: %s", stk_status_name(status), fixture.error.what);
}

static void members_of_a_single_file_are_fields_and_rows_are_samples(void **state)
{
    (void)state;
    zip_array("x.npy", 5, 0);
    zip_array("y.z.npy", 5, 1);
    snprintf(zip_array("readme", 1, 0)->name, 64, "readme.txt");
    zip_list("a.npz");
    build();
    assert_int_equal(index_samples(fixture.index), 5);
    assert_int_equal(index_field_count(fixture.index), 2);
    assert_int_equal(index_skipped(fixture.index), 1);
    struct extent extent = fixture_extent(&fixture, 2, "x");
    assert_int_equal(extent.object, 0);
    assert_int_equal(extent.offset, 30 + 5 + 128 + 16);
    extent = fixture_extent(&fixture, 2, "y.z");
    assert_int_equal(extent.object, 1);
    assert_int_equal(extent.offset, 128 + 16);
    struct chunk chunk;
    assert_int_equal(index_chunk(fixture.index, 0, &chunk, NULL), STK_OK);
    assert_int_equal(chunk.filter, FILTER_DEFLATE);
    assert_int_equal(chunk.decoded, 128 + 40);
    assert_int_equal(chunk.check, crc32(0, zip.entries[1].data, 128 + 40));
    assert_int_equal(chunk.count, 5);
}

static void several_files_are_a_sample_each(void **state)
{
    (void)state;
    zip_array("x.npy", 5, 0);
    zip_array("y.npy", 3, 1);
    zip_list("a.npz");
    zip_list("b.c.npz");
    fixture.input.threads = 2;
    build();
    assert_int_equal(index_samples(fixture.index), 2);
    fixture_key_is(&fixture, 1, "b.c");
    struct extent extent = fixture_extent(&fixture, 1, "x.npy");
    assert_int_equal(extent.object, 1);
    assert_int_equal(extent.length, 128 + 40);
    extent = fixture_extent(&fixture, 1, "y.npy");
    assert_int_equal(extent.object, 3); /* behind two objects and the first file's chunk */
    assert_int_equal(extent.offset, 0);
    assert_int_equal(extent.length, 128 + 24);
}

static void members_that_differ_in_rows_are_refused_by_name(void **state)
{
    (void)state;
    zip_array("x.npy", 5, 0);
    zip_array("y.npy", 6, 0);
    refuse(STK_SHAPE);
    assert_non_null(strstr(fixture.error.what, "x has 5"));
    assert_non_null(strstr(fixture.error.what, "y has 6"));
}

static void zip64_is_read(void **state)
{
    (void)state;
    zip_array("x.npy", 5, 0)->zip64 = 1;
    zip.zip64_end = 1;
    zip_list("a.npz");
    build();
    assert_int_equal(index_samples(fixture.index), 5);
}

static void zip64_lies_are_refused(void **state) /* 33 */
{
    (void)state;
    const uint64_t lies[] = {UINT64_MAX, UINT64_MAX - 100, (uint64_t)1 << 63, 100000};
    for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
        struct zip_entry *entry = zip_array("x.npy", 5, 0);
        entry->zip64 = 1;
        entry->said_size = entry->said_packed = lies[i];
        refuse(STK_CORRUPT);
        zip_array("x.npy", 5, 0);
        zip.zip64_end = 1;
        zip.end64_offset_shift = lies[i];
        refuse(STK_CORRUPT);
        zip_array("x.npy", 5, 0);
        zip.zip64_end = 1;
        zip.directory_shift = (int64_t)lies[i];
        refuse(STK_CORRUPT);
    }
}

static void directories_that_lie_are_refused(void **state) /* 33 */
{
    (void)state;
    const uint16_t counts[] = {0, 2, 4000};
    for (int i = 0; i < 3; i++) {
        zip_array("x.npy", 5, 0);
        zip.lie_count = 1;
        zip.said_count = counts[i];
        refuse(STK_CORRUPT);
    }
    for (int shift = -60; shift <= 60; shift += 20) {
        zip_array("x.npy", 5, 0);
        zip.directory_shift = shift;
        if (shift != 0)
            refuse(STK_CORRUPT);
        memset(&zip, 0, sizeof(zip));
    }
    zip_array("x.npy", 5, 0)->said_size = 999;
    refuse(STK_CORRUPT);
}

static void two_members_of_one_name_are_refused(void **state) /* 33 */
{
    (void)state;
    zip_array("x.npy", 5, 0);
    zip_array("x.npy", 5, 1);
    refuse(STK_CORRUPT);
    assert_non_null(strstr(fixture.error.what, "x.npy"));
}

static void a_bomb_is_refused_by_ratio_and_by_size(void **state) /* 33 */
{
    (void)state;
    zip_array("x.npy", 5, 1)->said_size = (uint64_t)65 << 20;
    refuse(STK_LIMIT);
    zip_array("x.npy", 5, 1);
    fixture.input.chunk_limit = 100;
    refuse(STK_LIMIT);
}

static void a_deflated_member_that_lies_about_its_size_is_refused(void **state) /* 33 */
{
    (void)state;
    zip_array("x.npy", 5, 1)->said_size = 140;
    refuse(STK_TRUNCATED);
    zip_array("x.npy", 5, 1)->said_packed = 5;
    refuse(STK_TRUNCATED);
}

static void encryption_and_other_methods_are_unsupported(void **state) /* 33 */
{
    (void)state;
    zip_array("x.npy", 5, 0)->flags = 1;
    refuse(STK_UNSUPPORTED);
    zip_array("x.npy", 5, 0)->method = 12;
    refuse(STK_UNSUPPORTED);
}

static void a_file_cut_anywhere_is_refused(void **state)
{
    (void)state;
    zip_array("x.npy", 5, 0);
    zip_list("a.npz");
    size_t whole = out_len;
    for (size_t len = 0; len < whole; len += 7) {
        fixture.count = 0;
        fixture_file(&fixture, "a.npz", out, len);
        fixture_refuses(&fixture, "npz", STK_CORRUPT);
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
    const struct CMUnitTest tests[] = {
        TEST(members_of_a_single_file_are_fields_and_rows_are_samples),
        TEST(several_files_are_a_sample_each),
        TEST(members_that_differ_in_rows_are_refused_by_name),
        TEST(zip64_is_read),
        TEST(zip64_lies_are_refused),
        TEST(directories_that_lie_are_refused),
        TEST(two_members_of_one_name_are_refused),
        TEST(a_bomb_is_refused_by_ratio_and_by_size),
        TEST(a_deflated_member_that_lies_about_its_size_is_refused),
        TEST(encryption_and_other_methods_are_unsupported),
        TEST(a_file_cut_anywhere_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
