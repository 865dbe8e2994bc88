/* Headers of JPEGs: read from memory of exactly their size, and what is taken for plain has the
 * size that the CPU's decoder finds, if that takes it at all. */
#include <stdlib.h>
#include <string.h>

#include "codec/image_codec.h"
#include "codec/jpeg_header.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void compare(const struct stk_bytes *bytes, const struct jpeg_header *header)
{
    const struct image_limits limits = {
        .max_pixels = (uint64_t)1 << 40, .max_scans = 20, .max_ns = 1000000000};
    struct image_decoder *decoder = NULL;
    struct image_header found;
    if (image_decoder_new(&decoder, NULL))
        abort();
    if (!image_begin(decoder, bytes, &limits, &found, NULL) &&
        (found.width != header->width || found.height != header->height))
        abort();
    image_decoder_free(decoder);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct jpeg_header header;
    struct stk_error err = {0};
    uint8_t *copy = malloc(size ? size : 1); /* a read beyond its end is seen */
    if (!copy)
        abort();
    if (size)
        memcpy(copy, data, size);
    struct stk_bytes bytes = {copy, size};
    stk_status status = jpeg_header_read(&bytes, &header, &err);
    if (status != STK_OK && (status != STK_UNSUPPORTED || !err.what[0]))
        abort();
    if (!status)
        compare(&bytes, &header);
    free(copy);
    return 0;
}
