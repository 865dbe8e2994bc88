#include "codec/codec.h"

#include <string.h>
#include <strings.h>

extern const struct codec_ops audio_codec;
extern const struct codec_ops bytes_codec;
extern const struct codec_ops image_codec;
extern const struct codec_ops int_codec;
extern const struct codec_ops json_codec;
extern const struct codec_ops npy_codec;
extern const struct codec_ops points_codec;
extern const struct codec_ops raw_codec;
extern const struct codec_ops raw_swapped_codec;
extern const struct codec_ops text_codec;
extern const struct codec_ops video_codec;

/* Sorted by name. */
static const struct codec_ops *const codecs[] = {
    &audio_codec,  &bytes_codec, &image_codec,       &int_codec,  &json_codec,  &npy_codec,
    &points_codec, &raw_codec,   &raw_swapped_codec, &text_codec, &video_codec,
};
#define CODEC_COUNT (sizeof codecs / sizeof codecs[0])

const struct codec_ops *codec_at(uint32_t row)
{
    return row < CODEC_COUNT ? codecs[row] : NULL;
}

const struct codec_ops *codec_find(const char *name)
{
    for (uint32_t row = 0; row < CODEC_COUNT; row++)
        if (!strcmp(codecs[row]->name, name))
            return codecs[row];
    return NULL;
}

static int codec_takes(const struct codec_ops *codec, const char *suffix)
{
    for (const char *const *own = codec->suffixes; *own; own++)
        if (!strcasecmp(*own, suffix))
            return 1;
    return 0;
}

const struct codec_ops *codec_for(const char *field, enum stk_kind kind)
{
    const char *dot = strrchr(field, '.');
    const char *suffix = dot ? dot + 1 : field;
    switch (kind) {
    case STK_KIND_TENSOR:
        return &npy_codec;
    case STK_KIND_INT:
        return &int_codec;
    case STK_KIND_TEXT:
        return &text_codec;
    case STK_KIND_JSON:
        return &json_codec;
    case STK_KIND_BYTES:
        return &bytes_codec;
    case STK_KIND_AUTO:
        break;
    }
    for (uint32_t row = 0; row < CODEC_COUNT; row++)
        if (codec_takes(codecs[row], suffix))
            return codecs[row];
    return &bytes_codec;
}

const struct codec_ops *codec_of_media(enum stk_media media)
{
    uint32_t row = 0;
    while (codecs[row]->media != media)
        row++;
    return codecs[row];
}
