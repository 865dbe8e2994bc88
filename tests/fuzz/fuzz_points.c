/* A cloud of any kind: what is probed is read, whole and in part, and both agree. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "codec/points_codec.h"

#define VALUES_MOST ((int64_t)1 << 22)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct stk_bytes bytes = {data, size};
    struct points_header header;
    struct scratch scratch = {0};
    struct stk_error err;
    if (points_probe(&bytes, &header, &err) || header.count * header.columns > VALUES_MOST)
        return 0;
    if (header.count < 0 || header.columns < 1)
        abort();
    float *all = malloc((size_t)(header.count * header.columns) * sizeof *all + 1);
    float *part = malloc((size_t)(header.count * header.columns) * sizeof *part + 1);
    uint32_t *rows = malloc((size_t)header.count * sizeof *rows + 1);
    int64_t count = 0;
    for (int64_t i = header.count / 3; i < header.count; i += 2)
        rows[count++] = (uint32_t)i;
    stk_status whole =
        points_read(&bytes, &header, NULL, header.count, header.columns, all, &scratch, &err);
    scratch_reset(&scratch);
    stk_status some = points_read(&bytes, &header, rows, count, 1, part, &scratch, &err);
    if (!whole && some)
        abort();
    for (int64_t i = 0; !whole && i < count; i++)
        if (memcmp(&part[i], &all[rows[i] * header.columns], sizeof *part))
            abort();
    scratch_free(&scratch);
    free(all);
    free(part);
    free(rows);
    return 0;
}
