#include <pthread.h>

#include "base/hash.h"
#include "index_fixture.h"

static struct fixture fixture;
static uint8_t *bytes; /* of the index file */
static size_t size;

static int begin(void **state)
{
    (void)state;
    fixture_begin(&fixture);
    return 0;
}

static int end(void **state)
{
    (void)state;
    free(bytes);
    bytes = NULL;
    fixture_end(&fixture);
    return 0;
}

static void read_file(void)
{
    struct stat info;
    WORKS(stat(fixture.path, &info));
    free(bytes);
    size = (size_t)info.st_size;
    bytes = malloc(size);
    int fd = open(fixture.path, O_RDONLY);
    assert_int_equal(read(fd, bytes, size), (ssize_t)size);
    close(fd);
}

static void write_file(size_t len)
{
    unlink(fixture.path); /* an open index keeps its own */
    int fd = open(fixture.path, O_CREAT | O_TRUNC | O_WRONLY, 0644);
    assert_int_equal(write(fd, bytes, len), (ssize_t)len);
    close(fd);
}

static void sign_header(void)
{
    struct index_header header;
    memcpy(&header, bytes, sizeof(header));
    header.checksum = 0;
    header.checksum = hash_bytes(&header, sizeof(header), 0);
    memcpy(bytes, &header, sizeof(header));
}

static struct index_header *header(void)
{
    return (struct index_header *)bytes;
}

static stk_status reopen(void)
{
    index_close(fixture.index);
    return index_open(&fixture.index, fixture.path, &fixture.error);
}

static void a_missing_file_is_not_found(void **state)
{
    (void)state;
    assert_int_equal(reopen(), STK_NOT_FOUND);
    assert_null(fixture.index);
    assert_string_equal(fixture.error.object, fixture.path);
}

static void a_file_cut_anywhere_is_refused(void **state)
{
    (void)state;
    fixture_small(&fixture);
    read_file();
    for (size_t len = 0; len < size; len += 1 + len / 7) {
        write_file(len);
        assert_int_equal(reopen(), STK_TRUNCATED);
    }
    write_file(size);
    WORKS(reopen());
}

static void a_longer_file_is_refused(void **state)
{
    (void)state;
    fixture_small(&fixture);
    read_file();
    bytes = realloc(bytes, size + 64);
    memset(bytes + size, 0, 64);
    write_file(size + 64);
    assert_int_equal(reopen(), STK_CORRUPT);
}

static void any_flipped_bit_is_found(void **state)
{
    (void)state;
    fixture_small(&fixture);
    read_file();
    for (size_t at = 0; at < size; at++) {
        const struct index_header *head = header();
        size_t inside = at < sizeof(*head);
        for (int i = 0; i < INDEX_SECTION_COUNT; i++)
            inside |= at >= head->sections[i].offset &&
                      at < head->sections[i].offset + head->sections[i].length;
        if (!inside)
            continue; /* padding between sections */
        bytes[at] ^= 0x10;
        write_file(size);
        stk_status status = reopen();
        if (!status)
            status = index_verify(fixture.index, &fixture.error);
        bytes[at] ^= 0x10;
        if (at >= 8 && at < 12)
            assert_int_equal(status, STK_UNSUPPORTED);
        else
            assert_int_equal(status, STK_CORRUPT);
    }
}

static void another_version_is_unsupported(void **state)
{
    (void)state;
    fixture_small(&fixture);
    read_file();
    header()->version++;
    sign_header();
    write_file(size);
    assert_int_equal(reopen(), STK_UNSUPPORTED);
}

/* A field of the header, and what is written there. */
#define LIE(field, value)                                                                          \
    {                                                                                              \
        offsetof(struct index_header, field), sizeof(((struct index_header *)0)->field), value     \
    }

static void headers_that_lie_are_refused(void **state)
{
    (void)state;
    static const struct {
        size_t at, size;
        uint64_t value;
    } lies[] = {
        LIE(samples, UINT64_MAX),
        LIE(samples, 4),
        LIE(samples, (uint64_t)1 << 60),
        LIE(field_count, 0),
        LIE(field_count, UINT32_MAX),
        LIE(object_count, UINT32_MAX),
        LIE(chunk_count, 1),
        LIE(class_count, 1),
        LIE(kind, INDEX_GRID),
        LIE(kind, 9),
        LIE(key_source, 7),
        LIE(sections[INDEX_ROWS].offset, UINT64_MAX - 63),
        LIE(sections[INDEX_ROWS].offset, 520),
        LIE(sections[INDEX_ROWS].length, UINT64_MAX),
        LIE(sections[INDEX_CHECKS].length, 8),
        LIE(sections[INDEX_KEYS].first_check, 0),
        LIE(root, UINT64_MAX),
        LIE(format, 100000),
    };
    fixture_small(&fixture);
    read_file();
    struct index_header good = *header();
    for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
        *header() = good;
        memcpy(bytes + lies[i].at, &lies[i].value, lies[i].size);
        sign_header();
        write_file(size);
        assert_int_equal(reopen(), STK_CORRUPT);
    }
}

static void a_wrong_block_is_found_when_it_is_touched(void **state)
{
    (void)state;
    struct extent extents[2];
    char scratch[INDEX_KEY_SCRATCH];
    struct stk_bytes key;
    struct index_object object;
    fixture_small(&fixture);
    read_file();
    const int sections[] = {INDEX_ROWS, INDEX_KEYS, INDEX_KEY_BYTES, INDEX_OBJECTS, INDEX_NAMES};
    for (int i = 0; i < 5; i++) {
        uint8_t *at = bytes + header()->sections[sections[i]].offset;
        *at ^= 1;
        write_file(size);
        *at ^= 1;
        WORKS(reopen()); /* it is not looked at yet */
        stk_status rows = index_resolve(fixture.index, &(uint64_t){1}, 1, extents, NULL);
        stk_status keys = index_key(fixture.index, 1, scratch, &key, NULL);
        stk_status names = index_object(fixture.index, 0, &object, NULL);
        assert_int_equal(rows, i == 0 || i == 3 ? STK_CORRUPT : STK_OK);
        assert_int_equal(keys, i == 1 || i == 2 ? STK_CORRUPT : STK_OK);
        assert_int_equal(names, i >= 3 ? STK_CORRUPT : STK_OK);
    }
}

static void an_extent_outside_its_object_is_refused(void **state)
{
    (void)state;
    struct extent extent;
    fixture_builder(&fixture);
    fixture_sample(&fixture, "in");
    fixture_extent(&fixture, "npy", ((uint64_t)1 << 40) - 5, 5);
    fixture_sample(&fixture, "over");
    fixture_extent(&fixture, "npy", ((uint64_t)1 << 40) - 5, 6);
    fixture_sample(&fixture, "around");
    fixture_extent(&fixture, "npy", UINT64_MAX, 2);
    fixture_join(&fixture);
    fixture_open(&fixture);
    WORKS(index_resolve(fixture.index, &(uint64_t){0}, 1, &extent, &fixture.error));
    for (uint64_t i = 1; i < 3; i++) {
        assert_int_equal(index_resolve(fixture.index, &i, 1, &extent, &fixture.error), STK_CORRUPT);
        assert_int_equal(fixture.error.sample, i);
    }
}

static void a_sample_that_is_not_there_is_not_found(void **state)
{
    (void)state;
    struct extent extents[2];
    char scratch[INDEX_KEY_SCRATCH];
    struct stk_bytes key;
    fixture_small(&fixture);
    WORKS(reopen());
    uint64_t samples[] = {3, UINT64_MAX};
    for (int i = 0; i < 2; i++) {
        assert_int_equal(index_resolve(fixture.index, &samples[i], 1, extents, NULL),
                         STK_NOT_FOUND);
        assert_int_equal(index_key(fixture.index, samples[i], scratch, &key, NULL), STK_NOT_FOUND);
    }
    WORKS(index_resolve(fixture.index, samples, 0, extents, NULL));
}

static void an_index_without_samples_opens(void **state)
{
    (void)state;
    fixture_builder(&fixture);
    fixture_open(&fixture);
    assert_int_equal(index_samples(fixture.index), 0);
    assert_int_equal(index_field_count(fixture.index), 0);
    WORKS(index_verify(fixture.index, NULL));
}

static void an_open_index_outlives_the_next_one(void **state)
{
    (void)state;
    struct extent extents[2];
    fixture_small(&fixture);
    WORKS(reopen());
    struct index *old = fixture.index;
    fixture.index = NULL;
    fixture_builder(&fixture);
    fixture_open(&fixture);
    WORKS(index_resolve(old, &(uint64_t){2}, 1, extents, NULL));
    assert_int_equal(extents[0].length, 1002);
    index_trim(old);
    WORKS(index_resolve(old, &(uint64_t){1}, 1, extents, NULL));
    assert_int_equal(extents[0].length, 1001);
    index_close(old);
}

#define MANY 60000

static void many_samples(void)
{
    fixture_builder(&fixture);
    for (uint64_t i = 0; i < MANY; i++) {
        char key[16];
        snprintf(key, sizeof(key), "%06u", (unsigned)i);
        fixture_sample(&fixture, key);
        fixture_extent(&fixture, "a", i, 1);
        fixture_extent(&fixture, "b", i, 2);
        fixture_extent(&fixture, "c", i, 3); /* 48 bytes a row: rows straddle blocks */
    }
    fixture_join(&fixture);
    fixture_open(&fixture);
}

static void *resolve_all(void *user)
{
    const struct index *index = user;
    struct extent extents[3 * 64];
    uint64_t samples[64], good = 0;
    for (uint64_t i = 0; i < MANY; i += 64) {
        uint64_t n = MANY - i < 64 ? MANY - i : 64;
        for (uint64_t k = 0; k < n; k++)
            samples[k] = (i + k) * 7919 % MANY;
        if (index_resolve(index, samples, (uint32_t)n, extents, NULL))
            return NULL;
        for (uint64_t k = 0; k < n; k++)
            good += extents[3 * k + 2].offset == samples[k] && extents[3 * k + 2].length == 3;
    }
    return good == MANY ? user : NULL;
}

static void many_threads_read_one_index(void **state)
{
    (void)state;
    pthread_t threads[4];
    many_samples();
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, resolve_all, fixture.index), 0);
    for (int i = 0; i < 4; i++) {
        void *result = NULL;
        pthread_join(threads[i], &result);
        assert_ptr_equal(result, fixture.index);
    }
    fixture_key_is(&fixture, 59999, "059999");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
    const struct CMUnitTest tests[] = {
        TEST(a_missing_file_is_not_found),
        TEST(a_file_cut_anywhere_is_refused),
        TEST(a_longer_file_is_refused),
        TEST(any_flipped_bit_is_found),
        TEST(another_version_is_unsupported),
        TEST(headers_that_lie_are_refused),
        TEST(a_wrong_block_is_found_when_it_is_touched),
        TEST(an_extent_outside_its_object_is_refused),
        TEST(a_sample_that_is_not_there_is_not_found),
        TEST(an_index_without_samples_opens),
        TEST(an_open_index_outlives_the_next_one),
        TEST(many_threads_read_one_index),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
