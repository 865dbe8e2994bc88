/* test_sample_reader.c -- reading one sample: ragged, converted, compressed, in a forked child;
 * subsets. */
#include "dataset/fixture.h"

#include <sys/wait.h>

#include "dataset/chunk_read.h"
#include "dataset/dataset_view.h"
#include "filter/filter.h"
#include "index/index_builder.h"
#include "store/scan.h"

static void run_or_fail(const char *format, const char *path)
{
    char command[5000];
    snprintf(command, sizeof command, format, path);
    assert_int_equal(system(command), 0);
}

static int32_t first_value(struct stk_reader *reader, uint64_t position)
{
    struct stk_value values[3];
    read_or_fail(reader, position, values);
    assert_int_equal(values[0].kind, STK_KIND_TENSOR);
    return *(int32_t *)values[0].tensor.data;
}

static struct stk_reader *reader_of(struct stk_dataset *dataset)
{
    struct stk_reader *reader;
    assert_int_equal(stk_reader_new(dataset, &reader, NULL), STK_OK);
    return reader;
}

static void each_value_has_its_own_shape(void **state)
{
    struct tar *tar = calloc(1, sizeof *tar);
    uint8_t npy[8192];
    char *path = path_of(*state, "a.tar");
    for (int i = 0; i < 30; i++) {
        char name[32];
        snprintf(name, sizeof name, "%02d.npy", i);
        tar_add(tar, name, npy, make_npy(npy, i * 1000, i * 7 % 40));
    }
    tar_write(tar, path);
    free(tar);
    struct stk_dataset *dataset = must_open(path, NULL);
    struct stk_reader *reader = reader_of(dataset);
    for (int i = 0; i < 30; i++) {
        struct stk_value value;
        read_or_fail(reader, (uint64_t)i, &value);
        assert_int_equal(value.tensor.shape[0], i * 7 % 40);
        assert_int_equal((uintptr_t)value.tensor.data % 16, 0);
        for (int k = 0; k < i * 7 % 40; k++)
            assert_int_equal(((int32_t *)value.tensor.data)[k], i * 1000 + k);
    }
    stk_reader_free(reader);
    stk_dataset_close(dataset);
}

/* The header of sample 1 is longer than that of sample 0, on which places were laid out. */
static void a_longer_header_moves_the_tensor(void **state)
{
    struct tar *tar = calloc(1, sizeof *tar);
    uint8_t npy[1024], longer[1024];
    char *path = path_of(*state, "a.tar");
    size_t len = make_npy(npy, 5, 4);
    memcpy(longer, npy, 127);
    longer[8] = (uint8_t)(118 + 20);
    memset(longer + 127, ' ', 20);
    longer[147] = '\n';
    memcpy(longer + 148, npy + 128, 16);
    tar_add(tar, "a.npy", npy, len);
    tar_add(tar, "b.npy", longer, len + 20);
    tar_write(tar, path);
    free(tar);
    struct stk_dataset *dataset = must_open(path, NULL);
    struct stk_reader *reader = reader_of(dataset);
    struct stk_value value;
    read_or_fail(reader, 1, &value);
    assert_memory_equal(value.tensor.data, npy + 128, 16);
    assert_int_equal((uintptr_t)value.tensor.data % 64, 0);
    stk_reader_free(reader);
    stk_dataset_close(dataset);
}

static size_t make_square(uint8_t *out, const char *descr, const char *order)
{
    static const uint8_t payload[8] = {1, 0, 2, 0, 3, 0, 4, 0};
    memset(out, ' ', 128);
    memcpy(out, "\x93NUMPY\x01\x00\x76\x00", 10);
    int len = snprintf((char *)out + 10, 118,
                       "{'descr': '%s', 'fortran_order': %s, 'shape': (2, 2), }", descr, order);
    out[10 + len] = ' ';
    out[127] = '\n';
    memcpy(out + 128, payload, sizeof payload);
    return 128 + sizeof payload;
}

static void fortran_and_big_endian_values_are_converted(void **state) /* FAULTS 32 */
{
    static const struct {
        const char *descr, *order;
        uint16_t values[4];
    } cases[] = {
        {"<u2", "False", {1, 2, 3, 4}},
        {"<u2", "True", {1, 3, 2, 4}},
        {">u2", "False", {0x100, 0x200, 0x300, 0x400}},
        {">u2", "True", {0x100, 0x300, 0x200, 0x400}},
    };
    struct tar *tar = calloc(1, sizeof *tar);
    uint8_t npy[256];
    char *path = path_of(*state, "a.tar");
    for (int i = 0; i < 4; i++) {
        char name[32];
        snprintf(name, sizeof name, "%d.npy", i);
        tar_add(tar, name, npy, make_square(npy, cases[i].descr, cases[i].order));
    }
    tar_write(tar, path);
    free(tar);
    struct stk_dataset *dataset = must_open(path, NULL);
    struct stk_reader *reader = reader_of(dataset);
    for (int turn = 0; turn < 2; turn++)
        for (int i = 0; i < 4; i++) {
            struct stk_value value;
            read_or_fail(reader, (uint64_t)i, &value);
            assert_memory_equal(value.tensor.data, cases[i].values, 8);
        }
    stk_reader_free(reader);
    stk_dataset_close(dataset);
}

/* ---- compressed ---------------------------------------------------------------------------- */

static void compressed_shards_give_the_same_samples(void **state)
{
    make_shard(path_of(*state, "s-0.tar"), 0, 30);
    make_shard(path_of(*state, "s-1.tar"), 30, 30);
    run_or_fail("gzip '%s'", path_of(*state, "s-0.tar"));
    run_or_fail("gzip '%s'", path_of(*state, "s-1.tar"));
    struct stk_dataset *dataset = must_open(path_of(*state, "s-{0,1}.tar.gz"), NULL);
    struct stk_reader *reader = reader_of(dataset);
    struct stk_place place;
    assert_int_equal(stk_dataset_samples(dataset), 60);
    assert_int_equal(stk_dataset_field(dataset, 0)->shape.shape[0], 4);
    for (uint64_t i = 0; i < 60; i++)
        assert_int_equal(first_value(reader, i * 31 % 60), (int)(i * 31 % 60) * 10);
    assert_int_equal(stk_dataset_place(dataset, 31, 0, &place, NULL), STK_OK);
    assert_string_equal(place.object, path_of(*state, "s-1.tar.gz"));
    assert_true(place.offset == STK_NOWHERE);
    assert_true(place.length == STK_NOWHERE);
    stk_reader_free(reader);
    stk_dataset_close(dataset);
}

static void a_limit_of_one_chunk_is_enough_to_read_all(void **state)
{
    make_shard(path_of(*state, "s-0.tar"), 0, 30);
    make_shard(path_of(*state, "s-1.tar"), 30, 30);
    run_or_fail("gzip '%s'", path_of(*state, "s-0.tar"));
    run_or_fail("gzip '%s'", path_of(*state, "s-1.tar"));
    struct stk_dataset_options options = {.chunk_limit = 100000}; /* one of them, not both */
    struct stk_dataset *dataset = must_open(path_of(*state, "s-{0,1}.tar.gz"), &options);
    struct stk_reader *reader = reader_of(dataset);
    for (uint64_t i = 0; i < 60; i++)
        assert_int_equal(first_value(reader, i * 31 % 60), (int)(i * 31 % 60) * 10);
    stk_reader_free(reader);
    stk_dataset_close(dataset);
    options.chunk_limit = 50000;
    assert_int_equal(open_with(&dataset, path_of(*state, "s-{0,1}.tar.gz"), &options, NULL),
                     STK_LIMIT);
}

static void a_chunk_decodes_in_parts_and_whole_alike(void **state)
{
    make_shard(path_of(*state, "a.tar"), 0, 30);
    run_or_fail("gzip -k '%s'", path_of(*state, "a.tar"));
    struct stk_dataset *dataset = must_open(path_of(*state, "a.tar.gz"), NULL);
    struct chunk chunk;
    assert_int_equal(index_chunk(dataset_index(dataset), 0, &chunk, NULL), STK_OK);
    uint8_t *whole = malloc(chunk.decoded), *file = malloc(chunk.decoded), part[777];
    FILE *plain = fopen(path_of(*state, "a.tar"), "rb");
    assert_int_equal(fread(file, 1, chunk.decoded, plain), chunk.decoded);
    fclose(plain);
    assert_int_equal(chunk_read(dataset, 0, whole, NULL, NULL), STK_OK);
    assert_memory_equal(whole, file, chunk.decoded);
    for (uint64_t at = 0; at + sizeof part <= chunk.decoded; at += 5000) {
        assert_int_equal(chunk_read_part(dataset, 0, at, sizeof part, part, NULL), STK_OK);
        assert_memory_equal(part, file + at, sizeof part);
    }
    assert_int_equal(chunk_read_part(dataset, 0, chunk.decoded, 1, part, NULL), STK_CORRUPT);
    _Atomic int cancel = 1;
    assert_int_equal(chunk_read(dataset, 0, whole, &cancel, NULL), STK_CANCELLED);
    free(whole);
    free(file);
    stk_dataset_close(dataset);
}

/* An index that lies: one sample "a" with a field txt of 4 bytes in a chunk of `decoded` bytes. */
static void make_lying_index(const char *root, const char *path, uint64_t decoded)
{
    struct index_builder *builder;
    struct index_part *part;
    struct scan *scan;
    uint32_t number;
    assert_int_equal(scan_open(&scan, root, "a.tar.gz", NULL), STK_OK);
    struct chunk chunk = {
        .length = scan_size(scan), .decoded = decoded, .count = 1, .filter = FILTER_GZIP};
    struct extent extent = {.offset = 0, .length = 4, .object = INDEX_PART_CHUNK};
    assert_int_equal(index_builder_new(&builder, path, "tar", root, NULL), STK_OK);
    assert_int_equal(index_builder_object(builder, "a.tar.gz", scan_size(scan), scan_version(scan),
                                          &number, NULL),
                     STK_OK);
    assert_int_equal(index_part_new(&part, NULL), STK_OK);
    assert_int_equal(index_part_chunk(part, &chunk, &number, NULL), STK_OK);
    assert_int_equal(index_part_sample(part, "a", 1, NULL), STK_OK);
    assert_int_equal(index_part_extent(part, "txt", 3, &extent, NULL), STK_OK);
    assert_int_equal(index_builder_join(builder, part, NULL), STK_OK);
    assert_int_equal(index_builder_finish(builder, NULL), STK_OK);
    index_part_free(part);
    index_builder_free(builder);
    scan_close(scan);
}

static void a_chunk_that_decodes_to_another_size_is_corrupt(void **state)
{
    static const struct {
        uint64_t decoded;
        stk_status status;
    } cases[] = {{16, STK_OK}, {15, STK_CORRUPT}, {8, STK_CORRUPT}, {17, STK_CORRUPT}};
    struct fixture *fixture = *state;
    make_file(path_of(fixture, "a.tar"), "0123456789abcdef", 16);
    run_or_fail("gzip '%s'", path_of(fixture, "a.tar"));
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct stk_dataset_options options = {.index = path_of(fixture, "i")};
        struct stk_value value;
        struct stk_error err = {0};
        make_lying_index(fixture->root, options.index, cases[i].decoded);
        struct stk_dataset *dataset = must_open(path_of(fixture, "a.tar.gz"), &options);
        struct stk_reader *reader = reader_of(dataset);
        assert_int_equal(stk_reader_read(reader, 0, &value, &err), cases[i].status);
        if (cases[i].status)
            assert_string_equal(err.object, path_of(fixture, "a.tar.gz"));
        stk_reader_free(reader);
        stk_dataset_close(dataset);
    }
}

static void a_compressed_shard_that_changed_is_stale(void **state)
{
    char *path = path_of(*state, "a.tar.gz");
    struct stk_value values[3];
    struct stk_error err = {0};
    make_shard(path_of(*state, "a.tar"), 0, 30);
    run_or_fail("gzip '%s'", path_of(*state, "a.tar"));
    struct stk_dataset *dataset = must_open(path, NULL);
    struct stk_reader *reader = reader_of(dataset);
    make_file(path, "something else", 14);
    assert_int_equal(stk_reader_read(reader, 3, values, &err), STK_STALE);
    assert_string_equal(err.object, path);
    assert_string_equal(err.key, "000003");
    stk_reader_free(reader);
    stk_dataset_close(dataset);
}

static void rows_of_a_fortran_array_are_those_of_the_array(void **state)
{
    uint8_t npy[256];
    char *path = path_of(*state, "f.npy");
    static const uint16_t rows[2][2] = {{1, 3}, {2, 4}};
    uint8_t part[4];
    make_file(path, npy, make_square(npy, "<u2", "True"));
    struct stk_dataset *dataset = must_open(path, NULL);
    struct stk_reader *reader = reader_of(dataset);
    assert_int_equal(stk_dataset_samples(dataset), 2);
    for (uint64_t i = 0; i < 2; i++) {
        struct stk_value value;
        read_or_fail(reader, i, &value);
        assert_int_equal(value.tensor.rank, 1);
        assert_memory_equal(value.tensor.data, rows[i], 4);
    }
    assert_int_equal(chunk_read_part(dataset, 0, 4, 4, part, NULL), STK_OK);
    assert_memory_equal(part, rows[1], 4);
    stk_reader_free(reader);
    stk_dataset_close(dataset);
}

static void rows_of_a_big_endian_array_are_swapped(void **state)
{
    uint8_t npy[256];
    char *path = path_of(*state, "b.npy");
    static const uint16_t row[2] = {0x300, 0x400};
    struct stk_value value;
    make_file(path, npy, make_square(npy, ">u2", "False"));
    struct stk_dataset *dataset = must_open(path, NULL);
    struct stk_reader *reader = reader_of(dataset);
    assert_string_equal(dataset_field(dataset, 0)->codec->name, "raw_swapped");
    for (int turn = 0; turn < 2; turn++) {
        read_or_fail(reader, 1, &value);
        assert_memory_equal(value.tensor.data, row, 4);
    }
    stk_reader_free(reader);
    stk_dataset_close(dataset);
}

/* ---- errors and processes ------------------------------------------------------------------ */

static void a_bad_number_names_its_place(void **state)
{
    struct tar *tar = calloc(1, sizeof *tar);
    struct stk_value value;
    struct stk_error err = {0};
    char *path = path_of(*state, "a.tar");
    tar_add_text(tar, "x/a.cls", "1");
    tar_add_text(tar, "x/b.cls", "cat");
    tar_add_text(tar, "x/c.cls", "1234567890123456789012345678901234567890");
    tar_write(tar, path);
    free(tar);
    struct stk_dataset *dataset = must_open(path, NULL);
    struct stk_reader *reader = reader_of(dataset);
    assert_int_equal(stk_reader_read(reader, 1, &value, &err), STK_CORRUPT);
    assert_string_equal(err.object, path);
    assert_int_equal(err.offset, 1536);
    assert_int_equal(err.sample, 1);
    assert_string_equal(err.key, "x/b");
    assert_string_equal(err.field, "cls");
    assert_int_equal(stk_reader_read(reader, 2, &value, &err), STK_CORRUPT);
    assert_int_equal(stk_reader_read(reader, 0, &value, &err), STK_OK);
    assert_int_equal(stk_reader_read(reader, 3, &value, &err), STK_NOT_FOUND);
    stk_reader_free(reader);
    stk_dataset_close(dataset);
}

static void bytes_are_those_that_are_stored(void **state)
{
    char *path = path_of(*state, "a.tar");
    uint8_t npy[1024];
    struct stk_bytes bytes;
    make_shard(path, 0, 5);
    struct stk_dataset *dataset = must_open(path, NULL);
    struct stk_reader *reader = reader_of(dataset);
    size_t len = make_npy(npy, 30, 4);
    assert_int_equal(stk_reader_bytes(reader, 3, 0, &bytes, NULL), STK_OK);
    assert_int_equal(bytes.len, len);
    assert_memory_equal(bytes.data, npy, len);
    assert_int_equal(stk_reader_bytes(reader, 3, 9, &bytes, NULL), STK_USAGE);
    stk_reader_free(reader);
    stk_dataset_close(dataset);
}

static void a_reader_works_in_a_forked_child(void **state) /* FAULTS 88 */
{
    char *path = path_of(*state, "a.tar");
    int result;
    make_shard(path, 0, 20);
    struct stk_dataset *dataset = must_open(path, NULL);
    struct stk_reader *reader = reader_of(dataset);
    assert_int_equal(first_value(reader, 3), 30);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct stk_reader *own;
        struct stk_value values[3];
        int bad = stk_reader_read(reader, 4, values, NULL) != STK_OK ||
                  *(int32_t *)values[0].tensor.data != 40;
        bad |= stk_reader_new(dataset, &own, NULL) != STK_OK ||
               stk_reader_read(own, 19, values, NULL) != STK_OK ||
               *(int32_t *)values[0].tensor.data != 190;
        _exit(bad);
    }
    assert_int_equal(waitpid(child, &result, 0), child);
    assert_int_equal(result, 0);
    assert_int_equal(first_value(reader, 5), 50); /* the parent is unharmed */
    stk_reader_free(reader);
    stk_dataset_close(dataset);
}

/* ---- subsets ------------------------------------------------------------------------------- */

static void subsets_of_subsets_reach_their_samples(void **state)
{
    char *path = path_of(*state, "a.tar");
    const uint64_t evens[] = {0, 2, 4, 6, 8}, back[] = {4, 0};
    uint8_t first[16], second[16], whole[16];
    struct stk_dataset *half, *two;
    struct stk_bytes key;
    uint64_t position;
    make_shard(path, 0, 10);
    struct stk_dataset *dataset = must_open(path, NULL);
    assert_int_equal(stk_dataset_select(dataset, &half, evens, 5, NULL), STK_OK);
    assert_int_equal(stk_dataset_select(half, &two, back, 2, NULL), STK_OK);
    stk_dataset_fingerprint(dataset, whole);
    stk_dataset_fingerprint(half, first);
    stk_dataset_fingerprint(two, second);
    assert_memory_not_equal(whole, first, 16);
    assert_memory_not_equal(first, second, 16);
    assert_true(dataset_is_whole(dataset));
    assert_false(dataset_is_whole(half));
    stk_dataset_close(dataset); /* what hangs on it keeps it */
    stk_dataset_close(half);
    assert_int_equal(stk_dataset_samples(two), 2);
    struct stk_reader *reader = reader_of(two);
    assert_int_equal(first_value(reader, 0), 80);
    assert_int_equal(first_value(reader, 1), 0);
    assert_int_equal(stk_dataset_key(two, 0, &key, NULL), STK_OK);
    assert_memory_equal(key.data, "000008", 6);
    assert_int_equal(stk_dataset_find(two, "000000", &position, NULL), STK_OK);
    assert_int_equal(position, 1);
    assert_int_equal(stk_dataset_find(two, "000002", &position, NULL), STK_NOT_FOUND);
    stk_dataset_close(two);
    assert_int_equal(first_value(reader, 0), 80); /* the reader keeps it too */
    stk_reader_free(reader);
}

static void the_parts_of_a_split_hold_every_sample_once(void **state)
{
    char *path = path_of(*state, "a.tar");
    const double shares[] = {0.5, 0.5}; /* parts of one size: only their places differ */
    int seen[10] = {0};
    uint8_t prints[2][16];
    make_shard(path, 0, 10);
    struct stk_dataset *dataset = must_open(path, NULL);
    for (uint32_t part = 0; part < 2; part++) {
        struct stk_dataset *own;
        assert_int_equal(stk_dataset_split(dataset, &own, shares, 2, part, 3, NULL), STK_OK);
        stk_dataset_fingerprint(own, prints[part]);
        struct stk_reader *reader = reader_of(own);
        for (uint64_t i = 0; i < stk_dataset_samples(own); i++)
            seen[first_value(reader, i) / 10]++;
        stk_reader_free(reader);
        stk_dataset_close(own);
    }
    for (int i = 0; i < 10; i++)
        assert_int_equal(seen[i], 1);
    assert_memory_not_equal(prints[0], prints[1], 16);
    stk_dataset_close(dataset);
}

static void a_plain_range_stays_consecutive(void **state)
{
    char *path = path_of(*state, "a.tar");
    const uint64_t range[] = {3, 4, 5, 6};
    uint64_t first = 0;
    struct stk_dataset *part;
    make_shard(path, 0, 10);
    struct stk_dataset *dataset = must_open(path, NULL);
    assert_int_equal(stk_dataset_select(dataset, &part, range, 4, NULL), STK_OK);
    assert_true(dataset_is_whole(part));
    dataset_samples(part, &first, 1);
    assert_int_equal(first, 3);
    stk_dataset_close(part);
    stk_dataset_close(dataset);
}

static void a_range_is_what_selecting_it_gives(void **state)
{
    static const uint64_t outside[][2] = {{11, 0}, {10, 1}, {3, 8}, {3, UINT64_MAX}};
    char *path = path_of(*state, "a.tar");
    const uint64_t range[] = {3, 4, 5, 6};
    uint8_t prints[2][16];
    struct stk_dataset *parts[2];
    make_shard(path, 0, 10);
    struct stk_dataset *dataset = must_open(path, NULL);
    assert_int_equal(stk_dataset_select(dataset, &parts[0], range, 4, NULL), STK_OK);
    assert_int_equal(stk_dataset_range(dataset, &parts[1], 3, 4, NULL), STK_OK);
    for (int i = 0; i < 2; i++) {
        uint64_t sample = 0;
        assert_int_equal(stk_dataset_samples(parts[i]), 4);
        assert_int_equal(stk_dataset_sample(parts[i], 3, &sample, NULL), STK_OK);
        assert_int_equal(sample, 6);
        stk_dataset_fingerprint(parts[i], prints[i]);
        stk_dataset_close(parts[i]);
    }
    assert_memory_equal(prints[0], prints[1], 16);
    for (size_t i = 0; i < sizeof outside / sizeof outside[0]; i++) {
        assert_int_equal(stk_dataset_range(dataset, &parts[0], outside[i][0], outside[i][1], NULL),
                         STK_USAGE);
        assert_null(parts[0]);
    }
    stk_dataset_close(dataset);
}

#define WITH_FOLDER(test) cmocka_unit_test_setup_teardown(test, fixture_open, fixture_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_FOLDER(each_value_has_its_own_shape),
        WITH_FOLDER(a_longer_header_moves_the_tensor),
        WITH_FOLDER(fortran_and_big_endian_values_are_converted),
        WITH_FOLDER(compressed_shards_give_the_same_samples),
        WITH_FOLDER(a_limit_of_one_chunk_is_enough_to_read_all),
        WITH_FOLDER(a_chunk_decodes_in_parts_and_whole_alike),
        WITH_FOLDER(a_chunk_that_decodes_to_another_size_is_corrupt),
        WITH_FOLDER(a_compressed_shard_that_changed_is_stale),
        WITH_FOLDER(rows_of_a_fortran_array_are_those_of_the_array),
        WITH_FOLDER(rows_of_a_big_endian_array_are_swapped),
        WITH_FOLDER(a_bad_number_names_its_place),
        WITH_FOLDER(bytes_are_those_that_are_stored),
        WITH_FOLDER(a_reader_works_in_a_forked_child),
        WITH_FOLDER(subsets_of_subsets_reach_their_samples),
        WITH_FOLDER(the_parts_of_a_split_hold_every_sample_once),
        WITH_FOLDER(a_plain_range_stays_consecutive),
        WITH_FOLDER(a_range_is_what_selecting_it_gives),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
