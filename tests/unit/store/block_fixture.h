/* block_fixture.h -- what the tests of the block cache share: objects whose bytes are a pure
 * function of the object and the offset, so that any process can tell whether a block is right.
 * Owns: nothing.   Threads: any.   Errors: a failed assertion, or 0.   Not here: any test. */
#ifndef TESTS_STORE_BLOCK_FIXTURE_H
#define TESTS_STORE_BLOCK_FIXTURE_H

#include "base/testing.h"

#include <sys/wait.h>

#include "base/random.h"
#include "store/block_parts.h"

#define MIB (UINT64_C(1) << 20)
#define SECOND_NS INT64_C(1000000000)

TESTING uint8_t test_byte(uint64_t object, uint64_t offset)
{
    return (uint8_t)(random_at(object + 1, offset / 8) >> (offset % 8 * 8));
}

/* Object number `object` of so many bytes. uri must hold 64 bytes, and stay. */
TESTING struct block_object test_object(uint64_t object, uint64_t size, char *uri)
{
    struct block_object made = {.size = size, .uri = uri};
    snprintf(uri, 64, "http://127.0.0.1/%llu.tar", (unsigned long long)object);
    block_object_id(uri, size, 7, made.id);
    return made;
}

TESTING uint64_t test_length(const struct block_object *object, uint64_t number)
{
    uint64_t left = object->size - number * BLOCK_SIZE;
    return left < BLOCK_SIZE ? left : BLOCK_SIZE;
}

TESTING void test_fill(uint64_t object, uint64_t offset, uint8_t *to, uint64_t length)
{
    for (uint64_t i = 0; i < length; i++)
        to[i] = test_byte(object, offset + i);
}

/* A sample of the bytes, and the first and the last of each piece. */
TESTING int test_is_right(uint64_t object, uint64_t offset, const uint8_t *data, uint64_t length)
{
    uint64_t step = length > 4096 ? 97 : 1;
    for (uint64_t i = 0; i < length; i += step)
        if (data[i] != test_byte(object, offset + i))
            return 0;
    for (uint64_t i = 4095; i < length; i += 4096)
        if (data[i] != test_byte(object, offset + i))
            return 0;
    return !length || data[length - 1] == test_byte(object, offset + length - 1);
}

/* Blocks of 1 MiB made once: making them takes longer than all else. */
TESTING const uint8_t *test_block(uint64_t object, uint64_t number, uint64_t length)
{
    static struct {
        uint64_t object, number, length;
        uint8_t data[1 << 20];
    } made[64];
    uint64_t at = (object * 31 + number) % 64;
    if (made[at].object != object + 1 || made[at].number != number || made[at].length < length) {
        test_fill(object, number * BLOCK_SIZE, made[at].data, length);
        made[at].object = object + 1;
        made[at].number = number;
        made[at].length = length;
    }
    return made[at].data;
}

/* Reads a whole block that is HERE. 0: gone bad. */
TESTING int read_whole(struct block_ref *ref, uint64_t object, uint8_t *buf)
{
    uint64_t length = test_length(&ref->object, ref->number);
    struct iovec part = {buf, length};
    if (block_read(ref, 0, &part, 1) != 0)
        return 0;
    assert_true(test_is_right(object, ref->number * BLOCK_SIZE, buf, length));
    return 1;
}

/* As a store does it: takes a block, fetches it when it must. What it was when it was first asked
 * for, COMING apart: that is waited for. */
TESTING enum block_state use_block(struct block_cache *cache, const struct block_object *object,
                                   uint64_t which, uint64_t number, uint8_t *buf)
{
    struct block_ref ref;
    enum block_state state;
    while ((state = block_take(cache, object, number, &ref)) == BLOCK_COMING)
        block_wait(cache, object, number, SECOND_NS / 100);
    if (state == BLOCK_YOURS) {
        uint64_t length = test_length(object, number);
        block_put(&ref, test_block(which, number, length), length);
    } else if (state == BLOCK_HERE) {
        if (!read_whole(&ref, which, buf))
            return use_block(cache, object, which, number, buf);
        block_give(&ref);
    }
    return state;
}

TESTING struct block_cache *open_cache(const char *folder, uint64_t size)
{
    struct block_cache *cache;
    struct stk_error err;
    stk_status status = block_cache_open(&cache, folder, size, &err);
    if (status)
        print_error("%s\n", err.what);
    assert_int_equal(status, STK_OK);
    return cache;
}

TESTING void settle(struct block_cache *cache)
{
    assert_true(block_cache_settle(cache, 0, 30 * SECOND_NS));
}

TESTING struct block_counts counts_of(struct block_cache *cache)
{
    struct block_counts counts;
    block_cache_counts(cache, &counts);
    return counts;
}

/* Starts this program again with these words. */
TESTING pid_t start_child(const char *role, const char *folder, const char *word)
{
    pid_t child = fork();
    if (child == 0) {
        execl("/proc/self/exe", "test", role, folder, word, (char *)NULL);
        _exit(99);
    }
    assert_true(child > 0);
    return child;
}

TESTING int end_of(pid_t child)
{
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

TESTING int ended_well(pid_t child)
{
    int status = end_of(child);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

#endif
