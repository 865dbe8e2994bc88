#include "base/testing.h"

#include "base/copy.h"

static void every_byte_is_copied_and_none_beside_it(void **state)
{
    (void)state;
    uint8_t from[1024], to[1024];
    for (size_t i = 0; i < sizeof from; i++)
        from[i] = (uint8_t)(i * 7 + 1);
    for (size_t shift = 0; shift < 70; shift += 3) {
        for (size_t len = 0; len < 400; len += 13) {
            memset(to, 0, sizeof to);
            copy_past_caches(to + shift, from + (shift * 5) % 64, len);
            assert_memory_equal(to + shift, from + (shift * 5) % 64, len);
            for (size_t i = 0; i < sizeof to; i++)
                assert_true((i >= shift && i < shift + len) || to[i] == 0);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_byte_is_copied_and_none_beside_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
