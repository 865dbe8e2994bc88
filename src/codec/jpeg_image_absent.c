#include "codec/image_format.h"

const struct image_format jpeg_image_format = {
    .name = "jpeg",
    .remedy = "install libjpeg-turbo with its headers (libjpeg-dev) and build again",
};
