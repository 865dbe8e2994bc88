#include "codec/image_format.h"

const struct image_format png_image_format = {
    .name = "png",
    .remedy = "install libpng with its headers (libpng-dev) and build again",
};
