#include "watch/ring_making.h"

#include <inttypes.h>

#include "base/fail.h"
#include "watch/ring_read.h"

struct fixture {
    char folder[PATH_MAX];
    int fd;
    struct ring_header *ring;
    struct ring_read *reader;
};

static struct stk_error err;

static int setup(void **state)
{
    static struct fixture fixture;
    folder_new(fixture.folder);
    fixture.fd = open(fixture.folder, O_RDONLY | O_DIRECTORY);
    fixture.ring = ring_make(path_in(fixture.folder, "ring.7.py"), RING_PYTHON, 7, SMALL_RING);
    assert_int_equal(ring_read_open(&fixture.reader, fixture.fd, "ring.7.py", &err), STK_OK);
    *state = &fixture;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *fixture = *state;
    ring_read_close(fixture->reader);
    ring_unmake(fixture->ring);
    close(fixture->fd);
    folder_remove(fixture->folder);
    return 0;
}

/* Sums up what it is handed. */
struct heard {
    uint64_t count, sum;
    stk_status answer;
    char text[64];
};

static stk_status hear(void *user, const struct record *record, struct stk_error *error)
{
    struct heard *heard = user;
    heard->count++;
    if (record->type == RECORD_MARK)
        heard->sum += ((const struct record_mark *)record)->a;
    if (record->type == RECORD_NOTICE) {
        const struct record_text *text = (const struct record_text *)record;
        snprintf(heard->text, sizeof heard->text, "%.*s", (int)text->len, text->text);
    }
    return heard->answer ? fail(error, heard->answer, "no more") : STK_OK;
}

static void records_come_once_and_in_order(void **state)
{
    struct fixture *fixture = *state;
    struct heard heard = {0};
    assert_true(ring_put_mark(fixture->ring, 10, 1) && ring_put_mark(fixture->ring, 11, 2));
    assert_true(ring_put_text(fixture->ring, RECORD_NOTICE, "a sentence"));
    assert_int_equal(ring_read_drain(fixture->reader, hear, &heard, &err), STK_OK);
    assert_int_equal(heard.count, 3);
    assert_int_equal(heard.sum, 3);
    assert_string_equal(heard.text, "a sentence");
    assert_int_equal(ring_read_drain(fixture->reader, hear, &heard, &err), STK_OK);
    assert_int_equal(heard.count, 3);
    assert_int_equal(fixture->ring->tail, fixture->ring->head);
    assert_int_equal(ring_read_taken(fixture->reader), 3);
}

static void a_ring_goes_round_many_times(void **state)
{
    struct fixture *fixture = *state;
    struct heard heard = {0};
    uint64_t put = 0;
    for (int round = 0; round < 500; round++) {
        for (int i = 0; i < 37; i++)
            put += (uint64_t)ring_put_mark(fixture->ring, 1, 1);
        assert_int_equal(ring_read_drain(fixture->reader, hear, &heard, &err), STK_OK);
    }
    assert_int_equal(put, 500 * 37);
    assert_int_equal(heard.sum, put);
}

static void what_had_no_room_is_told_and_the_rest_is_read(void **state)
{
    struct fixture *fixture = *state;
    struct heard heard = {0};
    uint64_t put = 0;
    for (int i = 0; i < 200; i++)
        put += (uint64_t)ring_put_mark(fixture->ring, 1, 1);
    assert_true(put < 200);
    assert_int_equal(ring_read_drain(fixture->reader, hear, &heard, &err), STK_OK);
    assert_int_equal(heard.count, put);
    assert_int_equal(ring_read_lost(fixture->reader), 200 - put);
}

/* Puts a record whose bytes are as given, and expects the ring to be left. */
static void expect_broken(struct fixture *fixture, const void *record, uint32_t size)
{
    struct heard heard = {0};
    assert_true(ring_put(fixture->ring, record, size));
    assert_int_equal(ring_read_drain(fixture->reader, hear, &heard, &err), STK_CORRUPT);
    assert_int_equal(heard.count, 0);
    assert_non_null(strstr(err.what, "process 7"));
}

static void a_record_shorter_than_its_type_is_broken(void **state)
{
    struct record_mark mark = {.head = {.type = RECORD_MARK, .size = 16}};
    expect_broken(*state, &mark, 16);
}

static void a_text_longer_than_its_record_is_broken(void **state)
{
    struct record_text text = {.head = {.type = RECORD_NAME, .size = sizeof text}, .len = 1};
    expect_broken(*state, &text, sizeof text);
}

static void names_longer_than_their_frame_are_broken(void **state)
{
    union {
        struct record_frame frame;
        uint8_t bytes[32];
    } made = {.frame = {.head = {.type = RECORD_FRAME, .size = 32},
                        .function_len = 65535,
                        .file_len = 65535}};
    expect_broken(*state, &made, 32);
}

static void a_record_of_no_size_is_broken(void **state)
{
    struct record none[2] = {{.type = RECORD_MARK, .size = 0}, {0}};
    expect_broken(*state, none, sizeof none);
}

static void a_record_longer_than_what_was_written_is_broken(void **state)
{
    struct record_mark mark = {.head = {.type = RECORD_MARK, .size = 1024}};
    expect_broken(*state, &mark, sizeof mark);
}

static void a_head_that_ran_ahead_is_broken(void **state)
{
    struct fixture *fixture = *state;
    struct heard heard = {0};
    fixture->ring->head = 2 * SMALL_RING;
    assert_int_equal(ring_read_drain(fixture->reader, hear, &heard, &err), STK_CORRUPT);
    fixture->ring->head = 12; /* not a multiple of 8 */
    assert_int_equal(ring_read_drain(fixture->reader, hear, &heard, &err), STK_CORRUPT);
    assert_int_equal(heard.count, 0);
}

static void a_ring_that_is_cut_short_is_left_and_not_touched(void **state)
{
    struct fixture *fixture = *state;
    struct heard heard = {0};
    assert_true(ring_put_mark(fixture->ring, 10, 1));
    assert_int_equal(truncate(path_in(fixture->folder, "ring.7.py"), 100), 0);
    assert_int_equal(ring_read_drain(fixture->reader, hear, &heard, &err), STK_CORRUPT);
    assert_int_equal(ring_read_lost(fixture->reader), 0);
    assert_false(ring_read_closed(fixture->reader));
}

static void a_span_that_ends_before_it_began_is_left_out(void **state)
{
    struct fixture *fixture = *state;
    struct heard heard = {0};
    struct record_span span = {
        .head = {.type = RECORD_SPAN, .size = sizeof span}, .start = 9, .end = 8};
    assert_true(ring_put(fixture->ring, &span, sizeof span));
    assert_true(ring_put_mark(fixture->ring, 10, 4));
    assert_int_equal(ring_read_drain(fixture->reader, hear, &heard, &err), STK_OK);
    assert_int_equal(heard.count, 1);
    assert_int_equal(heard.sum, 4);
}

static void a_type_of_a_newer_writer_is_handed_over(void **state)
{
    struct fixture *fixture = *state;
    struct heard heard = {0};
    struct record_mark mark = {.head = {.type = 999, .size = sizeof mark}};
    assert_true(ring_put(fixture->ring, &mark, sizeof mark));
    assert_int_equal(ring_read_drain(fixture->reader, hear, &heard, &err), STK_OK);
    assert_int_equal(heard.count, 1);
}

static void what_the_listener_says_goes_through(void **state)
{
    struct fixture *fixture = *state;
    struct heard heard = {.answer = STK_MEMORY};
    assert_true(ring_put_mark(fixture->ring, 10, 1) && ring_put_mark(fixture->ring, 10, 1));
    assert_int_equal(ring_read_drain(fixture->reader, hear, &heard, &err), STK_MEMORY);
    assert_int_equal(heard.count, 1);
}

/* Of all mappings of a file in this process. */
static uint64_t resident_bytes(const char *name)
{
    FILE *maps = fopen("/proc/self/smaps", "r");
    assert_non_null(maps);
    char line[PATH_MAX + 100];
    uint64_t sum = 0, kib;
    int is_its = 0;
    while (fgets(line, sizeof line, maps)) {
        if (strchr(line, '-') && strchr(line, '/'))
            is_its = strstr(line, name) != NULL;
        else if (is_its && sscanf(line, "Rss: %" SCNu64, &kib) == 1)
            sum += kib << 10;
    }
    fclose(maps);
    return sum;
}

static void what_was_read_of_a_large_ring_takes_no_memory(void **state)
{
    struct fixture *fixture = *state;
    struct heard heard = {0};
    struct ring_read *reader;
    struct ring_header *ring =
        ring_make(path_in(fixture->folder, "ring.8.gpu"), RING_GPU, 8, 8u << 20);
    uint64_t put = 0;
    while (ring_put_mark(ring, 1, 1))
        put++;
    ring_unmake(ring);
    assert_int_equal(ring_read_open(&reader, fixture->fd, "ring.8.gpu", &err), STK_OK);
    assert_int_equal(ring_read_drain(reader, hear, &heard, &err), STK_OK);
    assert_int_equal(heard.sum, put);
    assert_true(put > 100000);
    assert_in_range(resident_bytes("ring.8.gpu"), 4096, 3u << 20);
    ring_read_close(reader);
}

static void a_ring_says_what_it_is(void **state)
{
    struct fixture *fixture = *state;
    assert_int_equal(ring_read_pid(fixture->reader), 7);
    assert_int_equal(ring_read_parent(fixture->reader), 1);
    assert_int_equal(ring_read_kind(fixture->reader), RING_PYTHON);
    assert_int_equal(ring_read_born(fixture->reader), 5);
    assert_false(ring_read_closed(fixture->reader));
    fixture->ring->state = RING_CLOSED;
    assert_true(ring_read_closed(fixture->reader));
}

static void expect_refused(struct fixture *fixture, const char *words)
{
    struct ring_read *other;
    assert_int_equal(ring_read_open(&other, fixture->fd, "ring.7.py", &err), STK_CORRUPT);
    assert_null(other);
    assert_non_null(strstr(err.what, words));
}

static void a_file_that_is_no_ring_is_refused(void **state)
{
    struct fixture *fixture = *state;
    struct ring_read *other;
    struct ring_header *ring = fixture->ring;
    ring->capacity = 4100;
    expect_refused(fixture, "cannot be");
    ring->capacity = (uint64_t)1 << 63;
    expect_refused(fixture, "cannot be");
    ring->capacity = 2 * SMALL_RING; /* more than the file has */
    expect_refused(fixture, "cannot be");
    ring->capacity = SMALL_RING;
    ring->kind = 9;
    expect_refused(fixture, "cannot be");
    ring->version = 2;
    expect_refused(fixture, "version 2");
    ring->magic = 1;
    expect_refused(fixture, "no ring");
    text_write(path_in(fixture->folder, "short"), "STKRING1");
    assert_int_equal(ring_read_open(&other, fixture->fd, "short", &err), STK_CORRUPT);
    assert_int_equal(ring_read_open(&other, fixture->fd, "none", &err), STK_NOT_FOUND);
}

#define RING_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        RING_TEST(records_come_once_and_in_order),
        RING_TEST(a_ring_goes_round_many_times),
        RING_TEST(what_had_no_room_is_told_and_the_rest_is_read),
        RING_TEST(a_record_shorter_than_its_type_is_broken),
        RING_TEST(a_text_longer_than_its_record_is_broken),
        RING_TEST(names_longer_than_their_frame_are_broken),
        RING_TEST(a_record_of_no_size_is_broken),
        RING_TEST(a_record_longer_than_what_was_written_is_broken),
        RING_TEST(a_head_that_ran_ahead_is_broken),
        RING_TEST(a_ring_that_is_cut_short_is_left_and_not_touched),
        RING_TEST(a_span_that_ends_before_it_began_is_left_out),
        RING_TEST(a_type_of_a_newer_writer_is_handed_over),
        RING_TEST(what_the_listener_says_goes_through),
        RING_TEST(what_was_read_of_a_large_ring_takes_no_memory),
        RING_TEST(a_ring_says_what_it_is),
        RING_TEST(a_file_that_is_no_ring_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
