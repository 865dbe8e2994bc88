#include "codec/image_format.h"

const struct image_format webp_image_format = {
    .name = "webp",
    .remedy = "install libwebp with its headers (libwebp-dev) and build again",
};
