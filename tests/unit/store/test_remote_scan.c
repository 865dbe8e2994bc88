#include "store/remote_fixture.h"

#include "base/text.h"

static void check_bytes(uint32_t object, uint64_t offset, const uint8_t *data, size_t len)
{
    for (size_t i = 0; i < len; i++)
        assert_int_equal(data[i], remote_byte(object, offset + i));
}

static void a_scan_reads_what_is_there(void **state)
{
    (void)state;
    struct remote_fixture *fixture = remote_new(0);
    uint8_t *data = malloc(remote_sizes[7] + 1);
    for (uint32_t object = 0; object < REMOTE_OBJECTS; object += object == 0 ? 1 : 2) {
        struct scan *scan;
        struct stk_error err;
        size_t got;
        if (remote_sizes[object] == 0)
            continue; /* this server has no object without bytes */
        assert_int_equal(scan_open(&scan, fixture->root, fixture->names[object], &err), STK_OK);
        assert_true(scan_size(scan) == remote_sizes[object]);
        assert_true(scan_version(scan) == site_version("\"one\"", 0, ""));
        assert_non_null(strstr(scan_name(scan), fixture->root));
        for (uint64_t i = 0; i < 40; i++) {
            uint64_t at = random_below(object, i * 2, remote_sizes[object] + 100);
            uint64_t len = random_below(object, i * 2 + 1, i % 8 ? 50000 : remote_sizes[7]);
            uint64_t there = at < remote_sizes[object] ? remote_sizes[object] - at : 0;
            assert_int_equal(scan_read(scan, at, data, len, &got, &err), STK_OK);
            assert_true(got == (len < there ? len : there));
            check_bytes(object, at, data, got);
        }
        assert_int_equal(scan_read_all(scan, remote_sizes[object] - 1, data, 2, &err),
                         STK_TRUNCATED);
        scan_close(scan);
    }
    free(data);
    remote_free(fixture);
}

static void small_reads_in_order_take_few_round_trips(void **state)
{
    (void)state;
    struct remote_fixture *fixture = remote_new(0);
    struct scan *scan;
    uint8_t data[10000];
    size_t got;
    assert_int_equal(scan_open(&scan, fixture->root, "7.bin", NULL), STK_OK);
    for (uint64_t at = 0; at < remote_sizes[7]; at += got) {
        assert_int_equal(scan_read(scan, at, data, sizeof data, &got, NULL), STK_OK);
        check_bytes(7, at, data, got);
    }
    scan_close(scan);
    assert_true(answering_requests(fixture->server) < 300); /* of 900 reads */
    remote_free(fixture);
}

static void headers_that_lie_equally_far_apart_are_guessed(void **state)
{
    (void)state;
    struct remote_fixture *fixture = remote_new(0);
    struct scan *scan;
    uint8_t data[512];
    size_t got;
    uint32_t reads = 0;
    assert_int_equal(scan_open(&scan, fixture->root, "7.bin", NULL), STK_OK);
    for (uint64_t at = 0; at < remote_sizes[7]; at += 300000, reads++) {
        assert_int_equal(scan_read(scan, at, data, sizeof data, &got, NULL), STK_OK);
        check_bytes(7, at, data, got);
    }
    scan_close(scan);
    assert_true(answering_requests(fixture->server) <= 2 * reads + 10); /* few are in vain */
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < answering_requests(fixture->server); i++) {
        unsigned long long first, last;
        const char *range = strstr(answering_head(fixture->server, i), "ytes=");
        if (range && sscanf(range, "ytes=%llu-%llu", &first, &last) == 2)
            bytes += last - first + 1;
    }
    assert_true(bytes < remote_sizes[7] / 10);
    remote_free(fixture);
}

static void a_scan_of_a_stores_object_asks_nothing_to_open(void **state)
{
    int cached = *(int *)*state;
    struct remote_fixture *fixture = remote_new(cached);
    struct scan *scan;
    uint8_t *data = malloc(1 << 20);
    size_t got;
    for (int round = 0; round < 2; round++) {
        uint32_t before = answering_requests(fixture->server);
        assert_int_equal(scan_open_object(&scan, fixture->store, 7, NULL), STK_OK);
        assert_int_equal(answering_requests(fixture->server), before);
        assert_true(scan_size(scan) == remote_sizes[7]);
        scan_limit(scan, 3 << 20);
        for (uint64_t at = 1000; at < 3 << 20; at += got) {
            size_t want = (3 << 20) - at < (1 << 20) ? (3 << 20) - at : 1 << 20;
            assert_int_equal(scan_read(scan, at, data, want, &got, NULL), STK_OK);
            check_bytes(7, at, data, got);
        }
        scan_close(scan);
        if (cached) { /* from now on there is the cache alone */
            struct answering_step none = {.status = 404};
            answering_script(fixture->server, &none, 1);
        }
    }
    free(data);
    remote_free(fixture);
}

static int is_over(void *user)
{
    return ++*(int *)user > 2;
}

static void a_wait_that_is_given_up_ends(void **state)
{
    (void)state;
    struct remote_fixture *fixture = remote_new(0);
    struct scan *scan;
    struct stk_error err;
    static uint8_t data[8 << 20];
    size_t got;
    assert_int_equal(scan_open(&scan, fixture->root, "7.bin", NULL), STK_OK);
    for (uint32_t i = 0; i < REMOTE_OBJECTS; i++)
        fixture->steps[i].holds = 1;
    answering_script(fixture->server, fixture->steps, REMOTE_OBJECTS);
    int asked = 0;
    net_patience_set(&(struct net_patience){is_over, &asked});
    assert_int_equal(scan_read(scan, 10, data, 100, &got, &err), STK_CANCELLED);
    asked = 0;
    assert_int_equal(scan_read(scan, 1 << 20, data, 8 << 20, &got, &err), STK_CANCELLED);
    asked = 0;
    struct iovec part = {data, 1000};
    struct store_read read = {.object = 6, .part_count = 1, .length = 1000, .parts = &part};
    assert_int_equal(store_read_now(fixture->store, &read), STK_CANCELLED);
    net_patience_set(NULL);
    scan_close(scan);
    remote_free(fixture);
}

static void a_small_object_is_got_whole(void **state)
{
    (void)state;
    struct remote_fixture *fixture = remote_new(0);
    struct text text = {0};
    struct stk_error err;
    assert_int_equal(remote_get(answering_url(fixture->server, "/2.bin"), 4096, &text, &err),
                     STK_OK);
    assert_int_equal(text.len, 1000);
    check_bytes(2, 0, (const uint8_t *)text.data, text.len);
    text_free(&text);
    text = (struct text){0};
    assert_int_not_equal(remote_get(answering_url(fixture->server, "/3.bin"), 4096, &text, &err),
                         STK_OK);
    text_free(&text);
    text = (struct text){0};
    assert_int_equal(remote_get(answering_url(fixture->server, "/none"), 4096, &text, &err),
                     STK_NOT_FOUND);
    text_free(&text);
    remote_free(fixture);
}

static void an_object_that_is_not_there_cannot_be_scanned(void **state)
{
    (void)state;
    struct remote_fixture *fixture = remote_new(0);
    struct scan *scan;
    struct stk_error err;
    assert_int_equal(scan_open(&scan, fixture->root, "none.bin", &err), STK_NOT_FOUND);
    assert_null(scan);
    assert_non_null(strstr(err.object, "none.bin"));
    remote_free(fixture);
}

int main(void)
{
    int plain = 0, cached = 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_scan_reads_what_is_there),
        cmocka_unit_test(small_reads_in_order_take_few_round_trips),
        cmocka_unit_test(headers_that_lie_equally_far_apart_are_guessed),
        {"a_scan_of_a_stores_object_asks_nothing_to_open (no cache)",
         a_scan_of_a_stores_object_asks_nothing_to_open, NULL, NULL, &plain},
        {"a_scan_of_a_stores_object_asks_nothing_to_open (cache)",
         a_scan_of_a_stores_object_asks_nothing_to_open, NULL, NULL, &cached},
        cmocka_unit_test(a_wait_that_is_given_up_ends),
        cmocka_unit_test(a_small_object_is_got_whole),
        cmocka_unit_test(an_object_that_is_not_there_cannot_be_scanned),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
