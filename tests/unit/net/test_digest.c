#include "base/testing.h"

#include "net/digest.h"

/* Vectors of RFC 6234, 1321, 4231 and 4648. */
static void hashes_are_those_of_their_standards(void **state)
{
    (void)state;
    uint8_t hash[32];
    char hex[65];
    assert_int_equal(digest_sha256("abc", 3, hash), STK_OK);
    digest_hex(hash, 32, hex);
    assert_string_equal(hex, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    assert_int_equal(digest_sha256("", 0, hash), STK_OK);
    digest_hex(hash, 32, hex);
    assert_string_equal(hex, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    assert_int_equal(digest_md5("message digest", 14, hash), STK_OK);
    digest_hex(hash, 16, hex);
    assert_string_equal(hex, "f96b697d7cb7938d525a2f31aaf161d0");
}

static void a_keyed_hash_is_that_of_its_standard(void **state)
{
    (void)state;
    uint8_t hash[32];
    char hex[65];
    const char *data = "what do ya want for nothing?";
    assert_int_equal(digest_hmac_sha256("Jefe", 4, data, strlen(data), hash), STK_OK);
    digest_hex(hash, 32, hex);
    assert_string_equal(hex, "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
}

static void base64_goes_both_ways(void **state)
{
    (void)state;
    static const char *const pairs[][2] = {{"", ""},
                                           {"f", "Zg=="},
                                           {"fo", "Zm8="},
                                           {"foo", "Zm9v"},
                                           {"foob", "Zm9vYg=="},
                                           {"fooba", "Zm9vYmE="},
                                           {"foobar", "Zm9vYmFy"}};
    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
        struct text text = {0};
        uint8_t bytes[16];
        size_t got;
        digest_base64(&text, pairs[i][0], strlen(pairs[i][0]));
        assert_string_equal(text.data, pairs[i][1]);
        assert_int_equal(digest_base64_decode(text.data, text.len, bytes, 6, &got), 0);
        assert_int_equal(got, strlen(pairs[i][0]));
        assert_memory_equal(bytes, pairs[i][0], got);
        text_free(&text);
    }
}

static void what_is_not_base64_is_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {"Zg=", "Zg", "Z===", "====", "Zm9v!A==", "Zg==Zm9v", "Zm 9"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        uint8_t bytes[16];
        size_t got;
        assert_int_equal(digest_base64_decode(bad[i], strlen(bad[i]), bytes, 16, &got), -1);
    }
    uint8_t few[2];
    size_t got;
    assert_int_equal(digest_base64_decode("Zm9v", 4, few, 2, &got), -1); /* does not fit */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hashes_are_those_of_their_standards),
        cmocka_unit_test(a_keyed_hash_is_that_of_its_standard),
        cmocka_unit_test(base64_goes_both_ways),
        cmocka_unit_test(what_is_not_base64_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
