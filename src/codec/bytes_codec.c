#include "codec/codec.h"

static const char *const suffixes[] = {NULL};

const struct codec_ops bytes_codec = {
    .name = "bytes",
    .kind = STK_KIND_BYTES,
    .suffixes = suffixes,
};
