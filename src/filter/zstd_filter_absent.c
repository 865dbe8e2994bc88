#include "filter/filter_ops.h"

const struct filter_ops zstd_filter = {
    .remedy = "install libzstd with its headers (libzstd-dev) and build again",
};
