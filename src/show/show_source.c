#include "show/show_source.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/context.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/name_guess.h"
#include "dataset/dataset_view.h"
#include "transform/chain.h"
#include "transform/format_transform.h"

/* --- which field ------------------------------------------------------------------------------ */

static stk_status refuse_kind(const struct stk_field *field, struct stk_error *err)
{
    stk_status status = fail(err, STK_USAGE, "the field \"%s\" holds no tensor", field->name);
    if (field->kind == STK_KIND_BYTES)
        fail_remedy(err,
                    "say what its bytes are when opening: \"%s=image\", audio, video or points",
                    field->name);
    return status;
}

static stk_status find_named(const struct stk_dataset *dataset, const char *name, uint32_t *out,
                             struct stk_error *err)
{
    struct name_guess guess = {.wanted = name};
    uint32_t fields = stk_dataset_field_count(dataset);
    for (*out = 0; *out < fields; ++*out)
        if (!strcmp(stk_dataset_field(dataset, *out)->name, name))
            break;
    if (*out < fields && stk_dataset_field(dataset, *out)->kind == STK_KIND_TENSOR)
        return STK_OK;
    if (*out < fields)
        return refuse_kind(stk_dataset_field(dataset, *out), err);
    for (uint32_t f = 0; f < fields; f++)
        name_guess_add(&guess, stk_dataset_field(dataset, f)->name);
    return name_guess_fail(&guess, "field", err);
}

static stk_status find_field(const struct stk_dataset *dataset, const char *name, uint32_t *out,
                             struct stk_error *err)
{
    if (name)
        return find_named(dataset, name, out, err);
    uint32_t fields = stk_dataset_field_count(dataset), tensor = fields;
    for (*out = 0; *out < fields; ++*out) {
        const struct stk_field *field = stk_dataset_field(dataset, *out);
        if (field->kind == STK_KIND_TENSOR && field->media)
            return STK_OK;
        if (field->kind == STK_KIND_TENSOR && tensor == fields)
            tensor = *out;
    }
    *out = tensor;
    if (tensor < fields)
        return STK_OK;
    for (uint32_t f = 0; f < fields; f++)
        if (stk_dataset_field(dataset, f)->kind == STK_KIND_BYTES)
            return refuse_kind(stk_dataset_field(dataset, f), err);
    stk_status status = fail(err, STK_USAGE, "no field of the dataset can be drawn");
    fail_remedy(err, "images, audio, video, points and tensors can");
    return status;
}

/* --- the chain -------------------------------------------------------------------------------- */

/* What undoes the last Normalize; nothing when there is none. */
static void levels_of_chain(const struct chain *chain, struct pixel_levels *levels)
{
    *levels = (struct pixel_levels){0};
    for (uint32_t i = 0; i < chain->count; i++) {
        const struct normalize_args *args = chain->steps[i].args;
        if (chain->steps[i].ops != &normalize_transform)
            continue;
        levels->count = PICTURE_CHANNELS;
        for (uint32_t c = 0; c < PICTURE_CHANNELS; c++) {
            uint32_t own = c < args->mean.count ? c : args->mean.count - 1;
            levels->multiply[c] = 255 * args->std.values[own];
            levels->add[c] = 255 * args->mean.values[own];
        }
    }
}

/* The chain of what is shown as stored. A video: the frames that the chain will see, so that both
 * sides show the same moment. */
static void decode_chain(const struct chain *chain, enum stk_media media, char *text, size_t cap)
{
    struct chain decode = *chain;
    text[0] = 0;
    if (media != STK_MEDIA_VIDEO || !chain->count || chain->steps[0].ops->stage != TRANSFORM_DECODE)
        return;
    decode.count = 1;
    chain_text(&decode, text, cap);
}

static stk_status make_pipelines(struct show_source *source, struct stk_context *context,
                                 const char *text, struct stk_error *err)
{
    enum stk_media media = stk_dataset_field(source->dataset, source->field)->media;
    struct chain chain = {0};
    char decode[512];
    stk_status status = chain_parse(&chain, text, context ? context->plugins : NULL, err);
    if (status)
        return status;
    levels_of_chain(&chain, &source->levels);
    decode_chain(&chain, media, decode, sizeof decode);
    chain_reset(&chain);
    if (media)
        status = stk_pipeline_new(context, &source->before, decode, media, err);
    if (!status && text)
        status = stk_pipeline_new(context, &source->after, text, media, err);
    return status;
}

stk_status show_source_init(struct show_source *source, struct stk_context *context,
                            struct stk_dataset *dataset, const struct stk_show_options *options,
                            struct stk_error *err)
{
    uint32_t fields = stk_dataset_field_count(dataset);
    *source =
        (struct show_source){.dataset = dataset, .seed = options->seed, .epoch = options->epoch};
    stk_status status = find_field(dataset, options->field, &source->field, err);
    if (!status)
        status = make_pipelines(source, context, options->chain, err);
    if (!status)
        status = stk_reader_new(dataset, &source->reader, err);
    if (status)
        return status;
    source->values = memory_zero(fields, sizeof *source->values);
    if (!source->values)
        return fail_memory(err, fields * sizeof *source->values);
    /* Media are decoded by the pipelines alone, and a damaged one still has its class read. */
    for (uint32_t f = 0; f < fields; f++)
        if (stk_dataset_field(dataset, f)->media)
            reader_leave_encoded(source->reader, f);
    return STK_OK;
}

void show_source_reset(struct show_source *source)
{
    stk_pipeline_free(source->before);
    stk_pipeline_free(source->after);
    stk_reader_free(source->reader);
    memory_free(source->values);
    *source = (struct show_source){0};
}

/* --- one sample ------------------------------------------------------------------------------- */

stk_status show_source_read(struct show_source *source, uint64_t position, struct stk_error *err)
{
    memset(source->values, 0, stk_dataset_field_count(source->dataset) * sizeof *source->values);
    stk_status status = stk_dataset_sample(source->dataset, position, &source->sample, err);
    if (!status)
        status = reader_read_sample(source->reader, source->sample, source->values, err);
    if (!status && !source->values[source->field].present)
        status = fail(err, STK_NOT_FOUND, "the sample has no field \"%s\"",
                      stk_dataset_field(source->dataset, source->field)->name);
    return status;
}

static stk_status run(struct show_source *source, struct stk_pipeline *pipeline,
                      struct stk_flow *flow, struct stk_error *err)
{
    const struct stk_value *value = &source->values[source->field];
    int encoded = stk_dataset_field(source->dataset, source->field)->media != STK_MEDIA_TENSOR;
    struct stk_pipeline_input input = {
        .seed = source->seed, .epoch = source->epoch, .sample = source->sample};
    if (encoded)
        input.bytes = &value->bytes;
    else
        input.array = &value->tensor;
    return stk_pipeline_run(pipeline, &input, flow, err);
}

stk_status show_source_before(struct show_source *source, struct stk_flow *flow,
                              struct stk_error *err)
{
    if (source->before)
        return run(source, source->before, flow, err);
    *flow = (struct stk_flow){.tensor = source->values[source->field].tensor, .real = -1};
    return STK_OK;
}

stk_status show_source_after(struct show_source *source, struct stk_flow *flow,
                             struct stk_error *err)
{
    return run(source, source->after, flow, err);
}

/* --- captions --------------------------------------------------------------------------------- */

static void caption_number(const struct show_source *source, uint32_t f,
                           struct show_caption *caption)
{
    const struct stk_dataset *dataset = source->dataset;
    memcpy(&caption->number, source->values[f].tensor.data, sizeof caption->number);
    if (caption->number >= 0 && caption->number < (int64_t)stk_dataset_class_count(dataset))
        snprintf(caption->class, sizeof caption->class, "%s",
                 stk_dataset_class(dataset, (uint32_t)caption->number));
    else
        snprintf(caption->class, sizeof caption->class, "%s %" PRId64,
                 stk_dataset_field(dataset, f)->name, caption->number);
}

static void caption_text(const struct stk_bytes *bytes, char text[SHOW_CAPTION])
{
    size_t len = bytes->len < SHOW_CAPTION - 1 ? bytes->len : SHOW_CAPTION - 1;
    if (len) /* empty ones may have no address */
        memcpy(text, bytes->data, len);
    text[len] = 0;
    text[strcspn(text, "\r\n")] = 0;
}

void show_source_caption(const struct show_source *source, uint64_t position,
                         struct show_caption *caption)
{
    struct stk_bytes key;
    *caption = (struct show_caption){.number = -1};
    if (!stk_dataset_key(source->dataset, position, &key, NULL))
        caption_text(&key, caption->key);
    for (uint32_t f = 0; f < stk_dataset_field_count(source->dataset); f++) {
        const struct stk_value *value = &source->values[f];
        if (value->present && value->kind == STK_KIND_INT) {
            caption_number(source, f, caption);
            return;
        }
        if (value->present && value->kind == STK_KIND_TEXT && !*caption->class)
            caption_text(&value->bytes, caption->class);
    }
}
