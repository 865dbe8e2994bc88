/* pipeline.h -- a chain of transforms run on one value: the training code, for inference and tests.
 * Owns: a pipeline owns its memory; results are its own until the next run.   Threads: one at a
 * time for one pipeline.   Errors: status, words in nullable *err.   Not here: batches (loader.h).
 *
 * The text of a chain: steps joined by `|`, arguments as in Python:
 *     RandomResizedCrop(224, scale=(0.08, 1)) | RandomHorizontalFlip | Normalize(imagenet)
 * Names, arguments and value scales follow torchvision v2. */
#ifndef STOKER_PIPELINE_H
#define STOKER_PIPELINE_H

#include <stdint.h>

#include "stoker/bytes.h"
#include "stoker/context.h"
#include "stoker/media.h"

struct stk_pipeline;

/* media: what the encoded bytes are. TENSOR: arrays are run, and encoded bytes are told apart by
 * content. */
STK_API STK_CHECK stk_status stk_pipeline_new(struct stk_context *context,
                                              struct stk_pipeline **out, const char *chain,
                                              enum stk_media media, struct stk_error *err);
STK_API void stk_pipeline_free(struct stk_pipeline *pipeline);

/* One of bytes and array (contiguous, its values aligned); the other NULL. seed, epoch and sample:
 * as in the loader, for the same random choices. result: the pipeline's until its next run. */
struct stk_pipeline_input {
    const struct stk_bytes *bytes;
    const struct stk_tensor *array;
    uint64_t seed, epoch, sample;
};
STK_API STK_CHECK stk_status stk_pipeline_run(struct stk_pipeline *pipeline,
                                              const struct stk_pipeline_input *input,
                                              struct stk_flow *result, struct stk_error *err);
/* The chain's canonical text; lives as long as the pipeline. */
STK_API const char *stk_pipeline_text(const struct stk_pipeline *pipeline);

/* The transforms there are: for help, completion and bindings. */
#define STK_TRANSFORM_ARGUMENTS 16 /* at most */
struct stk_transform_argument {
    const char *name, *type; /* "int", "float", "bool", "choice", "dtype", "floats", "text" */
    const char *preset;      /* its default as text; NULL: must be given */
    const char *choices;     /* "a|b|c"; NULL: no choice */
};
struct stk_transform_info {
    const char *name, *help;
    uint32_t media; /* STK_MEDIA_BIT of what it takes */
    struct stk_transform_argument arguments[STK_TRANSFORM_ARGUMENTS];
    uint32_t argument_count;
    int of_batch; /* MixUp, CutMix: given as batch_transforms */
};
/* 0: there is no such row. Strings live as long as the library, those of plugins as the context. */
STK_API int stk_transform_at(struct stk_context *context, uint32_t row,
                             struct stk_transform_info *info);

#endif
