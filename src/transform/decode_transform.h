/* decode_transform.h -- options of decoding, written as the first step of a chain.
 * Owns: nothing.   Threads: any.   Errors: none.   Not here: decoding (codec/).
 *
 * Their shape turns the flow of what is stored (a whole image, all frames) into that of what is
 * decoded; their draw chooses which part. */
#ifndef TRANSFORM_DECODE_TRANSFORM_H
#define TRANSFORM_DECODE_TRANSFORM_H

#include "transform/transform.h"

enum image_mode { IMAGE_RGB, IMAGE_GRAY, IMAGE_RGBA, IMAGE_KEEP };
#define IMAGE_MODE_CHOICES "rgb|gray|rgba|keep"
/* DecodeImage(mode="rgb", fast=False, relaxed=False, max_pixels=179e6) */
struct decode_image_args {
    int mode;    /* keep: as many channels as are stored (palettes become rgb or rgba) */
    int fast;    /* a JPEG may be scaled down while it is decoded, never below what is needed */
    int relaxed; /* a damaged end is filled with grey and not an error */
    double max_pixels; /* of the whole image: more is STK_LIMIT before memory is asked for */
};

enum clip_from { CLIP_START, CLIP_CENTER, CLIP_RANDOM };
#define CLIP_FROM_CHOICES "start|center|random"
/* DecodeAudio(rate=None, mono=False, seconds=None, frames=None, crop="start", pad=True) */
struct decode_audio_args {
    double rate;    /* 0: as stored; else resampled to it */
    int mono;       /* channels are averaged into one */
    double seconds; /* fixed length, in time ... */
    int64_t frames; /* ... or in frames after resampling; both 0: all of it */
    int crop;       /* where a longer one is cut: enum clip_from */
    int pad;        /* a shorter one gets zeros behind it; 0: it is an error */
};
struct decode_audio_params {
    double start; /* 0 to 1: where in the room that a longer recording leaves */
};

/* DecodeVideo(frames=16, stride=1, clips=1, start="random") */
struct decode_video_args {
    int64_t frames, stride; /* a clip: every stride-th frame */
    int64_t clips;          /* several: (clips, T, H, W, C) */
    int start; /* enum clip_from; several clips that do not start at random are spread evenly */
};
#define DECODE_VIDEO_CLIPS 16
struct decode_video_params {
    double start[DECODE_VIDEO_CLIPS]; /* 0 to 1, as for audio */
};

enum points_sample { POINTS_SAMPLE_RANDOM, POINTS_SAMPLE_FIRST };
#define POINTS_SAMPLE_CHOICES "random|first"
enum points_nan { POINTS_NAN_KEEP, POINTS_NAN_DROP };
#define POINTS_NAN_CHOICES "keep|drop"
/* DecodePoints(columns=None, count=None, sample="random", pad=True, nan="keep") */
struct decode_points_args {
    int64_t columns; /* the first so many; 0: all that are stored */
    int64_t count;   /* fixed number of points; 0: all of them, ragged */
    int sample;      /* which of more: "random" (seeded, without repeats, order kept) or "first" */
    int pad;         /* fewer are padded with zeros; 0: points are repeated at random instead */
    int nan; /* points whose x, y or z is NaN: kept bit by bit, or dropped before any is chosen */
};
struct decode_points_params {
    uint64_t key; /* of the choice */
};

extern const struct transform_ops decode_image_transform, decode_audio_transform,
    decode_video_transform, decode_points_transform;

#endif
