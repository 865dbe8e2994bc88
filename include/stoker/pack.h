/* pack.h -- writes datasets: any opened dataset into tar shards, and synthetic data.
 * Owns: nothing after return.   Threads: one caller a call.   Errors: status, words in nullable
 * *err; a failed call leaves no half-written shard behind.   Not here: reading (dataset.h). */
#ifndef STOKER_PACK_H
#define STOKER_PACK_H

#include "stoker/dataset.h"

struct stk_pack_options {
    const char *out;        /* folder, made when missing; or s3://, az://, abfss://, gs:// */
    const char *prefix;     /* NULL: "shard" -> shard-0000.tar */
    uint64_t shard_size;    /* most bytes of a shard that has more than one sample; 0: 256 MiB */
    uint64_t shard_samples; /* most samples of a shard; 0: no limit */
    int force;              /* not 0: shards of that prefix that are there already are replaced */
};

struct stk_pack_result {
    uint64_t samples, bytes;
    uint32_t shards;
};

/* Writes members KEY.FIELD (ustar; pax where a name or a size needs it) with fixed owner and time,
 * so that the same input gives the same bytes. Values are copied as they are stored; rows of arrays
 * become .npy. A folder-a-class dataset gets a cls member. Shards appear in a folder only when all
 * are written; on the network each when it is whole, and a second call goes on with a first one
 * that was broken off. STK_USAGE: `out` has shards of that prefix, or holds the source. */
STK_API STK_CHECK stk_status stk_pack_tar(struct stk_context *context, struct stk_dataset *dataset,
                                          const struct stk_pack_options *options,
                                          struct stk_pack_result *result, struct stk_error *err);

/* Tensors that carry their class as a learnable pattern under noise. */
struct stk_gen_tensors_options {
    const char *out;   /* folder for shard-0000.tar ... */
    const char *loose; /* folder for the same samples as KEY.npy and KEY.cls; NULL: none */
    uint32_t shards;
    uint64_t samples;
    struct stk_tensor shape; /* of one sample; data unused */
    uint32_t classes;
    uint64_t seed;
    uint32_t threads; /* 0: one a core */
    int force;        /* not 0: shards that are there already are replaced */
};

/* Also writes OUT/metadata.parquet when the context has write_table. */
STK_API STK_CHECK stk_status stk_gen_tensors(struct stk_context *context,
                                             const struct stk_gen_tensors_options *options,
                                             struct stk_pack_result *result, struct stk_error *err);

/* Synthetic media: samples KEY.jpg (or .png, .wav, .avi, .bin ...) with their class KEY.cls. What
 * all kinds have in common. */
struct stk_gen_options {
    const char *out; /* folder; made when missing */
    uint64_t samples;
    uint32_t classes; /* dealt out evenly, in a shuffled order */
    uint32_t shards;  /* shard-0000.tar ...; of no use with folders */
    int folders;      /* not 0: no shards, but files in a folder a class: class-00/000000.jpg */
    uint64_t seed;
    uint32_t threads; /* 0: one a core; the bytes stay the same */
    int force;        /* not 0: what is there already is replaced */
};

enum stk_gen_image_format { STK_GEN_JPEG, STK_GEN_PNG };

/* Pictures with the statistics of natural ones (a spectrum of 1/f, edges, shading, noise), in which
 * one object's hue, shape and grating tell the class. */
struct stk_gen_images_options {
    struct stk_gen_options common;
    uint32_t width, height; /* 16 .. 16384 */
    double vary;            /* each side of each image differs by at most so much: 0 .. 0.9 */
    enum stk_gen_image_format format;
    int quality;     /* of JPEG: 1 .. 100 */
    int subsampling; /* of JPEG: 420 or 444 */
    int progressive; /* of JPEG */
};

STK_API STK_CHECK stk_status stk_gen_images(struct stk_context *context,
                                            const struct stk_gen_images_options *options,
                                            struct stk_pack_result *result, struct stk_error *err);

enum stk_gen_audio_format { STK_GEN_WAV, STK_GEN_FLAC, STK_GEN_OGG };

/* Notes over pink noise: pitch, rhythm and glide tell the class; 16 bits. */
struct stk_gen_audio_options {
    struct stk_gen_options common;
    double seconds;    /* more than 0 */
    uint32_t rate;     /* 4000 .. 384000 */
    uint32_t channels; /* 1 .. 8 */
    enum stk_gen_audio_format format;
};

STK_API STK_CHECK stk_status stk_gen_audio(struct stk_context *context,
                                           const struct stk_gen_audio_options *options,
                                           struct stk_pack_result *result, struct stk_error *err);

/* Motion-JPEG in AVI: the direction in which striped shapes go over a natural background tells the
 * class. */
struct stk_gen_video_options {
    struct stk_gen_options common;
    uint32_t width, height; /* 16 .. 4096 */
    uint32_t frames;        /* 1 .. 100000, and at most 1 GiB */
    double fps;             /* 0.1 .. 1000 */
    int quality;            /* of a frame: 1 .. 100 */
};

STK_API STK_CHECK stk_status stk_gen_video(struct stk_context *context,
                                           const struct stk_gen_video_options *options,
                                           struct stk_pack_result *result, struct stk_error *err);

enum stk_gen_points_format { STK_GEN_BIN, STK_GEN_PCD, STK_GEN_PLY, STK_GEN_NPY };

/* Clouds of float32 x, y, z and intensity (0 .. 1) on a solid that is the class's, turned about z;
 * .pcd and .ply are binary, .bin is as KITTI's, .npy (points, 4). */
struct stk_gen_points_options {
    struct stk_gen_options common;
    uint32_t points; /* of one cloud: 1 .. 64 Mi */
    enum stk_gen_points_format format;
};

STK_API STK_CHECK stk_status stk_gen_points(struct stk_context *context,
                                            const struct stk_gen_points_options *options,
                                            struct stk_pack_result *result, struct stk_error *err);

#endif
