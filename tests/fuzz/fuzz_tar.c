/* The first byte: bit 0 asks for right checksums in all header-like blocks, so that mutations get
 * past them; the rest is the shard. */
#include "fuzz_build.h"

static void sign(uint8_t *block)
{
    unsigned sum = 8 * ' ';
    for (int i = 0; i < 512; i++)
        sum += i >= 148 && i < 156 ? 0 : block[i];
    for (int i = 153; i >= 148; i--, sum >>= 3)
        block[i] = (uint8_t)('0' + (sum & 7));
    block[154] = 0;
    block[155] = ' ';
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1)
        return 0;
    uint8_t *shard = malloc(size);
    memcpy(shard, data + 1, size - 1);
    for (size_t at = 0; data[0] & 1 && at + 512 <= size - 1; at += 512) {
        int is_zero = 1;
        for (int i = 0; i < 512; i++)
            is_zero &= !shard[at + (size_t)i];
        if (!is_zero)
            sign(shard + at);
    }
    fuzz_build("tar", shard, size - 1, 1);
    free(shard);
    return 0;
}
