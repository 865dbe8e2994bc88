/* stk_pipeline: the same chain on one value. What it is compiled for is known when the first value
 * comes, so compiled pipelines are kept, one a kind of media, and one for the last array's shape.
 */
#include "stoker/pipeline.h"

#include <string.h>

#include "base/context.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/shape.h"
#include "codec/media_sniff.h"
#include "pipeline/pipeline.h"

struct stk_pipeline {
    struct chain chain; /* parsed once to refuse a bad one early, and for its text */
    char *given, *text;
    const struct transform_registry *plugins;
    enum stk_media media;
    struct pipeline *compiled[STK_MEDIA_COUNT]; /* TENSOR: for `shape` */
    struct stk_tensor shape;
    struct pipeline_state *state;
};

static stk_status keep_text(struct stk_pipeline *pipeline, struct stk_error *err)
{
    size_t len = chain_text(&pipeline->chain, NULL, 0);
    pipeline->text = memory_alloc(len + 1);
    if (!pipeline->text)
        return fail_memory(err, len + 1);
    chain_text(&pipeline->chain, pipeline->text, len + 1);
    return STK_OK;
}

static stk_status compile(struct stk_pipeline *pipeline, enum stk_media media,
                          const struct stk_tensor *shape, struct stk_error *err)
{
    struct pipeline_options options = {
        .chain = pipeline->given, .plugins = pipeline->plugins, .media = media};
    if (shape)
        options.tensor = *shape;
    pipeline_free(pipeline->compiled[media]);
    pipeline->compiled[media] = NULL;
    return pipeline_new(&pipeline->compiled[media], &options, err);
}

stk_status stk_pipeline_new(struct stk_context *context, struct stk_pipeline **out,
                            const char *chain, enum stk_media media, struct stk_error *err)
{
    struct stk_pipeline *pipeline = memory_zero(1, sizeof *pipeline);
    const char *given = chain ? chain : "";
    *out = NULL;
    if (!pipeline)
        return fail_memory(err, sizeof *pipeline);
    pipeline->plugins = context ? context->plugins : NULL;
    pipeline->media = media;
    pipeline->given = memory_text(given, strlen(given));
    stk_status status = pipeline->given ? STK_OK : fail_memory(err, strlen(given));
    if (!status)
        status = chain_parse(&pipeline->chain, chain, pipeline->plugins, err);
    if (!status)
        status = keep_text(pipeline, err);
    if (!status && media != STK_MEDIA_TENSOR)
        status = compile(pipeline, media, NULL, err);
    if (!status)
        status = pipeline_state_new(&pipeline->state, err);
    if (status)
        goto done;
    *out = pipeline;
    pipeline = NULL;
done:
    stk_pipeline_free(pipeline);
    return status;
}

void stk_pipeline_free(struct stk_pipeline *pipeline)
{
    if (!pipeline)
        return;
    for (int media = 0; media < STK_MEDIA_COUNT; media++)
        pipeline_free(pipeline->compiled[media]);
    pipeline_state_free(pipeline->state);
    chain_reset(&pipeline->chain);
    memory_free(pipeline->given);
    memory_free(pipeline->text);
    memory_free(pipeline);
}

const char *stk_pipeline_text(const struct stk_pipeline *pipeline)
{
    return pipeline->text;
}

static stk_status run_array(struct stk_pipeline *pipeline, const struct stk_tensor *array,
                            uint64_t key, struct stk_flow *result, struct stk_error *err)
{
    struct pipeline_input input = {
        .bytes = {array->data, stk_tensor_size(array)}, .shape = array, .key = key};
    uint64_t align = stk_dtype_size(array->dtype);
    if (input.bytes.len == SIZE_MAX)
        return fail(err, STK_USAGE, "the array's shape is none");
    if ((uintptr_t)array->data % (align < 8 ? align : 8)) /* a complex number is two */
        return fail(err, STK_USAGE, "the array's values are not aligned in memory");
    stk_status status = STK_OK;
    if (!pipeline->compiled[STK_MEDIA_TENSOR] || !shape_same(&pipeline->shape, array))
        status = compile(pipeline, STK_MEDIA_TENSOR, array, err);
    pipeline->shape = *array;
    if (status)
        return status;
    return pipeline_run(pipeline->compiled[STK_MEDIA_TENSOR], pipeline->state, &input, result, err);
}

static stk_status not_known(const struct stk_bytes *bytes, struct stk_error *err)
{
    stk_status status = fail(err, STK_CORRUPT,
                             "the bytes are %s: no image, recording, video or "
                             "point cloud",
                             media_looks_like(bytes));
    fail_remedy(err, "say what they are with media=, or give an array");
    return status;
}

static stk_status run_bytes(struct stk_pipeline *pipeline, const struct stk_bytes *bytes,
                            uint64_t key, struct stk_flow *result, struct stk_error *err)
{
    struct pipeline_input input = {.bytes = *bytes, .key = key};
    enum stk_media media = pipeline->media ? pipeline->media : media_sniff(bytes);
    stk_status status = STK_OK;
    if (media == STK_MEDIA_TENSOR)
        return not_known(bytes, err);
    if (!pipeline->compiled[media])
        status = compile(pipeline, media, NULL, err);
    if (status)
        return status;
    return pipeline_run(pipeline->compiled[media], pipeline->state, &input, result, err);
}

stk_status stk_pipeline_run(struct stk_pipeline *pipeline, const struct stk_pipeline_input *input,
                            struct stk_flow *result, struct stk_error *err)
{
    uint64_t key = pipeline_key(input->seed, input->epoch, input->sample);
    *result = (struct stk_flow){0};
    if (!input->bytes == !input->array)
        return fail(err, STK_USAGE, "one of bytes and array is to be given");
    return input->array ? run_array(pipeline, input->array, key, result, err)
                        : run_bytes(pipeline, input->bytes, key, result, err);
}
