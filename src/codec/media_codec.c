#include "codec/codec.h"

/* Which fields hold encoded media. What the bytes really are is told by their content: a PNG may be
 * named jpg. */

static const char *const audio_suffixes[] = {"wav", "flac", "ogg", "oga", "opus",
                                             "mp3", "aiff", "aif", "au",  NULL};
static const char *const image_suffixes[] = {"jpg", "jpeg", "png", "webp", NULL};
static const char *const points_suffixes[] = {"pcd", "ply", NULL};
static const char *const video_suffixes[] = {"mp4", "mkv", "avi", "webm", "mov", "m4v", NULL};

const struct codec_ops audio_codec = {
    .name = "audio",
    .kind = STK_KIND_TENSOR,
    .media = STK_MEDIA_AUDIO,
    .suffixes = audio_suffixes,
};

const struct codec_ops image_codec = {
    .name = "image",
    .kind = STK_KIND_TENSOR,
    .media = STK_MEDIA_IMAGE,
    .suffixes = image_suffixes,
};

const struct codec_ops points_codec = {
    .name = "points",
    .kind = STK_KIND_TENSOR,
    .media = STK_MEDIA_POINTS,
    .suffixes = points_suffixes,
};

const struct codec_ops video_codec = {
    .name = "video",
    .kind = STK_KIND_TENSOR,
    .media = STK_MEDIA_VIDEO,
    .suffixes = video_suffixes,
};
