#include "base/testing.h"

#include "filter/filter.h"

/* "stoker feeds the furnace\n" 40 times over, compressed in each way. */
static const char sentence[] = "stoker feeds the furnace\n";
enum { TIMES = 40, PLAIN = TIMES * (sizeof sentence - 1) };

static const uint8_t gzip_bytes[] = {
    0x1f, 0x8b, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02, 0x03, 0x2b, 0x2e, 0xc9, 0xcf,
    0x4e, 0x2d, 0x52, 0x48, 0x4b, 0x4d, 0x4d, 0x29, 0x56, 0x28, 0xc9, 0x48, 0x55, 0x48,
    0x2b, 0x2d, 0xca, 0x4b, 0x4c, 0x4e, 0xe5, 0x2a, 0x1e, 0x95, 0x18, 0x95, 0x18, 0x95,
    0x18, 0x2e, 0x12, 0x00, 0x8a, 0x00, 0x8c, 0x40, 0xe8, 0x03, 0x00, 0x00,
};

static const uint8_t deflate_bytes[] = {
    0x2b, 0x2e, 0xc9, 0xcf, 0x4e, 0x2d, 0x52, 0x48, 0x4b, 0x4d, 0x4d, 0x29,
    0x56, 0x28, 0xc9, 0x48, 0x55, 0x48, 0x2b, 0x2d, 0xca, 0x4b, 0x4c, 0x4e,
    0xe5, 0x2a, 0x1e, 0x95, 0x18, 0x95, 0x18, 0x95, 0x18, 0x2e, 0x12, 0x00,
};

static const uint8_t zstd_bytes[] = {
    0x28, 0xb5, 0x2f, 0xfd, 0x04, 0x68, 0x0d, 0x01, 0x00, 0xc8, 0x73, 0x74, 0x6f, 0x6b, 0x65, 0x72,
    0x20, 0x66, 0x65, 0x65, 0x64, 0x73, 0x20, 0x74, 0x68, 0x65, 0x20, 0x66, 0x75, 0x72, 0x6e, 0x61,
    0x63, 0x65, 0x0a, 0x01, 0x00, 0x31, 0xe7, 0x6a, 0x8e, 0x01, 0x63, 0x25, 0x3b, 0x50,
};

struct variant {
    enum filter_kind kind;
    struct stk_bytes encoded;
};

static const struct variant variants[] = {
    {FILTER_GZIP, {gzip_bytes, sizeof gzip_bytes}},
    {FILTER_ZSTD, {zstd_bytes, sizeof zstd_bytes}},
    {FILTER_DEFLATE, {deflate_bytes, sizeof deflate_bytes}},
};
#define VARIANTS (sizeof variants / sizeof variants[0])

/* Decodes in pieces of in_step and out_step bytes. *made: how much came before the end or the
 * error. */
static stk_status decode(enum filter_kind kind, const uint8_t *data, size_t len, size_t in_step,
                         size_t out_step, uint8_t *out, size_t cap, size_t *made)
{
    struct filter *filter;
    struct stk_error err;
    int ended = 0;
    size_t at = 0;
    *made = 0;
    stk_status status = filter_open(&filter, kind, &err);
    while (!status && !ended) {
        size_t piece = len - at < in_step ? len - at : in_step, used = 0, new = 0;
        struct stk_bytes in = {data + at, piece};
        size_t room = cap - *made < out_step ? cap - *made : out_step;
        assert_true(room > 0);
        status = filter_step(filter, &in, &used, out + *made, room, &new, at + piece == len, &ended,
                             &err);
        at += used;
        *made += new;
    }
    if (!status)
        assert_int_equal(at, len);
    filter_close(filter);
    return status;
}

static void every_filter_decodes_in_pieces_of_any_size(void **state)
{
    (void)state;
    static const size_t steps[] = {1, 7, 64, 4096};
    uint8_t out[PLAIN + 64];
    size_t made;
    for (size_t v = 0; v < VARIANTS; v++) {
        if (!filter_present(variants[v].kind))
            continue;
        for (int i = 0; i < 4; i++) {
            for (int o = 0; o < 4; o++) {
                const struct stk_bytes *encoded = &variants[v].encoded;
                assert_int_equal(decode(variants[v].kind, encoded->data, encoded->len, steps[i],
                                        steps[o], out, sizeof out, &made),
                                 STK_OK);
                assert_int_equal(made, PLAIN);
                for (int k = 0; k < TIMES; k++)
                    assert_memory_equal(out + (size_t)k * (sizeof sentence - 1), sentence,
                                        sizeof sentence - 1);
            }
        }
    }
}

static void output_that_fits_exactly_still_comes_to_its_end(void **state)
{
    (void)state;
    for (size_t v = 0; v < VARIANTS; v++) {
        if (!filter_present(variants[v].kind))
            continue;
        struct filter *filter;
        uint8_t out[PLAIN];
        size_t used = 0, made = 0;
        int ended = 0;
        assert_int_equal(filter_open(&filter, variants[v].kind, NULL), STK_OK);
        for (int tries = 0; tries < 3 && !ended; tries++)
            assert_int_equal(filter_step(filter, &variants[v].encoded, &used, out, sizeof out,
                                         &made, 1, &ended, NULL),
                             STK_OK);
        assert_true(ended);
        assert_int_equal(made, PLAIN);
        filter_close(filter);
    }
}

static void every_cut_is_truncated(void **state)
{
    (void)state;
    uint8_t out[PLAIN + 64];
    size_t made;
    for (size_t v = 0; v < VARIANTS; v++) {
        if (!filter_present(variants[v].kind))
            continue;
        for (size_t cut = 0; cut < variants[v].encoded.len; cut++)
            assert_int_equal(decode(variants[v].kind, variants[v].encoded.data, cut, 4096, 4096,
                                    out, sizeof out, &made),
                             STK_TRUNCATED);
    }
}

static void units_one_after_the_other_are_one_stream(void **state)
{
    (void)state;
    uint8_t twice[512], out[2 * PLAIN + 64];
    size_t made;
    for (size_t v = 0; v < VARIANTS; v++) {
        if (!filter_present(variants[v].kind))
            continue;
        size_t len = variants[v].encoded.len;
        memcpy(twice, variants[v].encoded.data, len);
        memcpy(twice + len, variants[v].encoded.data, len);
        stk_status status =
            decode(variants[v].kind, twice, 2 * len, 50, 4096, out, sizeof out, &made);
        if (variants[v].kind == FILTER_DEFLATE) { /* in a zip there is one, and nothing behind it */
            assert_int_equal(status, STK_CORRUPT);
        } else {
            assert_int_equal(status, STK_OK);
            assert_int_equal(made, 2 * PLAIN);
        }
    }
}

static void zeros_behind_a_gzip_member_are_padding_and_other_bytes_are_not(void **state)
{
    (void)state;
    uint8_t padded[1024] = {0}, out[2 * PLAIN + 64];
    size_t made, len = sizeof gzip_bytes;
    memcpy(padded, gzip_bytes, len);
    assert_int_equal(decode(FILTER_GZIP, padded, sizeof padded, 100, 4096, out, sizeof out, &made),
                     STK_OK);
    assert_int_equal(made, PLAIN);
    memcpy(padded + len + 30, gzip_bytes, len); /* another member behind the padding */
    assert_int_equal(decode(FILTER_GZIP, padded, 2 * len + 30, 100, 4096, out, sizeof out, &made),
                     STK_OK);
    assert_int_equal(made, 2 * PLAIN);
    memset(padded + len, 0, sizeof padded - len);
    padded[len + 200] = 1;
    assert_int_equal(decode(FILTER_GZIP, padded, sizeof padded, 100, 4096, out, sizeof out, &made),
                     STK_CORRUPT);
    memcpy(padded + len, "garbage garbage", 15);
    assert_int_equal(decode(FILTER_GZIP, padded, len + 15, 100, 4096, out, sizeof out, &made),
                     STK_CORRUPT);
    if (!filter_present(FILTER_ZSTD))
        return;
    memcpy(padded, zstd_bytes, sizeof zstd_bytes);
    memset(padded + sizeof zstd_bytes, 0, 20);
    assert_int_equal(
        decode(FILTER_ZSTD, padded, sizeof zstd_bytes + 20, 100, 4096, out, sizeof out, &made),
        STK_CORRUPT);
}

static void a_changed_byte_is_noticed_or_harmless(void **state)
{
    (void)state;
    uint8_t changed[512], out[1 << 16];
    size_t made;
    for (size_t v = 0; v < 2; v++) { /* deflate carries no checksum */
        if (!filter_present(variants[v].kind))
            continue;
        size_t len = variants[v].encoded.len, good = 0;
        for (size_t at = 0; at < len; at++) {
            memcpy(changed, variants[v].encoded.data, len);
            changed[at] ^= 0x11;
            stk_status status =
                decode(variants[v].kind, changed, len, 4096, sizeof out, out, sizeof out, &made);
            if (status == STK_OK) {
                assert_int_equal(made,
                                 PLAIN); /* a byte that means nothing: gzip's time or system */
                good++;
            }
        }
        assert_true(good <= 8);
    }
}

static void fault_21_bombs_are_refused_by_size_and_by_ratio(void **state)
{
    (void)state;
    struct stk_error err;
    const uint64_t mib = 1 << 20, limit = 1024 * mib;
    assert_int_equal(filter_check_size(1, 64 * mib, limit, &err), STK_OK); /* small: any ratio */
    assert_int_equal(filter_check_size(mib, 200 * mib, limit, &err), STK_OK);
    assert_int_equal(filter_check_size(mib, 201 * mib, limit, &err), STK_LIMIT);
    assert_int_equal(filter_check_size(0, 65 * mib, limit, &err), STK_LIMIT);
    assert_int_equal(filter_check_size(limit, limit, limit, &err), STK_OK);
    assert_int_equal(filter_check_size(limit, limit + 1, limit, &err), STK_LIMIT);
    assert_true(strlen(err.remedy) > 0);
    assert_int_equal(filter_check_size(UINT64_MAX, UINT64_MAX, UINT64_MAX, &err), STK_OK);
}

static void fault_43_a_zstd_window_of_2_gib_is_refused(void **state)
{
    (void)state;
    /* Magic, a descriptor without content size, window descriptor 21 << 3: 2^31 bytes; an empty
     * block. */
    static const uint8_t bomb[] = {0x28, 0xb5, 0x2f, 0xfd, 0x00, 21 << 3, 0x01, 0x00, 0x00};
    static const uint8_t fine[] = {0x28, 0xb5, 0x2f, 0xfd, 0x00, 17 << 3, 0x01, 0x00, 0x00};
    uint8_t out[64];
    size_t made;
    if (!filter_present(FILTER_ZSTD))
        skip();
    assert_int_equal(decode(FILTER_ZSTD, bomb, sizeof bomb, 99, 64, out, sizeof out, &made),
                     STK_LIMIT);
    assert_int_equal(decode(FILTER_ZSTD, fine, sizeof fine, 99, 64, out, sizeof out, &made),
                     STK_OK);
    assert_int_equal(made, 0);
}

static void the_sum_of_zip_is_made_in_pieces(void **state)
{
    (void)state;
    const uint8_t digits[] = "123456789"; /* 0xCBF43926 is in every table of CRCs */
    assert_int_equal(filter_crc32(0, digits, 9), 0xCBF43926u);
    assert_int_equal(filter_crc32(filter_crc32(0, digits, 4), digits + 4, 5), 0xCBF43926u);
}

static void kinds_are_sniffed_named_and_present(void **state)
{
    (void)state;
    struct stk_bytes head = {(const uint8_t *)"ustar", 5}, none = {NULL, 0};
    struct filter *filter;
    assert_int_equal(filter_sniff(&variants[0].encoded), FILTER_GZIP);
    assert_int_equal(filter_sniff(&variants[1].encoded), FILTER_ZSTD);
    assert_int_equal(filter_sniff(&head), FILTER_NONE);
    assert_int_equal(filter_sniff(&none), FILTER_NONE);
    assert_string_equal(filter_name(FILTER_ZSTD), "zstd");
    assert_string_equal(filter_name(99), "unknown");
    assert_true(filter_present(FILTER_GZIP) && filter_present(FILTER_NONE));
    assert_false(filter_present(99));
    assert_int_equal(filter_open(&filter, FILTER_FORTRAN, NULL), STK_UNSUPPORTED);
    assert_null(filter);
    assert_int_equal(filter_open(&filter, 99, NULL), STK_UNSUPPORTED);
    filter_close(NULL);
}

static int decode_once(void *user)
{
    const struct variant *variant = user;
    uint8_t out[PLAIN + 64];
    size_t made;
    stk_status status = decode(variant->kind, variant->encoded.data, variant->encoded.len, 4096,
                               4096, out, sizeof out, &made);
    assert_true(status == STK_OK || status == STK_MEMORY);
    return status == STK_OK;
}

static void fault_85_a_failed_allocation_is_a_status(void **state)
{
    (void)state;
    for (size_t v = 0; v < VARIANTS; v++) {
        if (filter_present(variants[v].kind))
            fail_each_allocation(decode_once, (void *)&variants[v]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_filter_decodes_in_pieces_of_any_size),
        cmocka_unit_test(output_that_fits_exactly_still_comes_to_its_end),
        cmocka_unit_test(every_cut_is_truncated),
        cmocka_unit_test(units_one_after_the_other_are_one_stream),
        cmocka_unit_test(zeros_behind_a_gzip_member_are_padding_and_other_bytes_are_not),
        cmocka_unit_test(a_changed_byte_is_noticed_or_harmless),
        cmocka_unit_test(fault_21_bombs_are_refused_by_size_and_by_ratio),
        cmocka_unit_test(fault_43_a_zstd_window_of_2_gib_is_refused),
        cmocka_unit_test(the_sum_of_zip_is_made_in_pieces),
        cmocka_unit_test(kinds_are_sniffed_named_and_present),
        cmocka_unit_test(fault_85_a_failed_allocation_is_a_status),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
