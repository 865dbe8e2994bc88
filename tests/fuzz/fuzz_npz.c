/* A .npz file, alone (a grid) and twice (a sample each). */
#include "fuzz_build.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_build("npz", data, size, 1);
    fuzz_build("npz", data, size, 2);
    return 0;
}
