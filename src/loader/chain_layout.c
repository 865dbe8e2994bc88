#include "loader/chain_layout.h"

#include <string.h>

#include "base/fail.h"
#include "base/name_guess.h"
#include "loader/tensor_input.h"

/* --- names ------------------------------------------------------------------------------------ */

static const char *chain_of(const struct stk_loader_options *options, const char *field)
{
    for (uint32_t i = 0; i < options->transform_count; i++)
        if (!strcmp(options->transforms[i].field, field))
            return options->transforms[i].chain;
    return NULL;
}

static stk_status check_name(const struct layout_request *request, uint32_t number,
                             struct stk_error *err)
{
    const struct stk_field_chain *chains = request->options->transforms;
    const char *name = chains[number].field;
    struct name_guess guess = {.wanted = name};
    for (uint32_t i = 0; i < number; i++)
        if (!strcmp(chains[i].field, name))
            return fail(err, STK_USAGE, "transforms: field \"%s\" is given twice", name);
    for (uint32_t f = 0; f < stk_dataset_field_count(request->dataset); f++)
        if (!strcmp(stk_dataset_field(request->dataset, f)->name, name))
            return STK_OK;
    for (uint32_t f = 0; f < stk_dataset_field_count(request->dataset); f++)
        name_guess_add(&guess, stk_dataset_field(request->dataset, f)->name);
    (void)name_guess_fail(&guess, "field", err);
    fail_field(err, name);
    if (err)
        err->status = STK_USAGE;
    return STK_USAGE;
}

stk_status chain_layout_check(const struct layout_request *request, struct stk_error *err)
{
    stk_status status = STK_OK;
    for (uint32_t i = 0; i < request->options->transform_count && !status; i++)
        status = check_name(request, i, err);
    return status;
}

/* --- what goes in ----------------------------------------------------------------------------- */

static stk_status refuse_kind(const struct dataset_field *field, struct stk_error *err)
{
    static const char *const kinds[] = {"", "tensors", "numbers", "text", "JSON", "bytes"};
    stk_status status = fail(err, STK_USAGE, "transforms take tensors, but the field holds %s",
                             field->is_mask ? "the mask of a window" : kinds[field->field.kind]);
    if (field->field.kind == STK_KIND_BYTES)
        fail_remedy(err, "say what its bytes are: \"%s=image\", audio, video or points",
                    field->field.name);
    fail_field(err, field->field.name);
    return status;
}

/* Stored tensors are as long as the probed one, or of lengths that nobody knows yet; the channels
 * of images are taken for constant. */
static struct stk_tensor stored_shape(const struct dataset_field *field)
{
    struct stk_tensor shape = field->field.shape;
    int64_t last = shape.rank ? shape.shape[shape.rank - 1] : 0;
    int pixels =
        shape.dtype == STK_U8 && (shape.rank == 3 || shape.rank == 4) && last >= 1 && last <= 4;
    if (field->gather || field->min_length == field->max_length)
        return shape;
    for (int32_t axis = 0; axis < shape.rank - pixels; axis++)
        shape.shape[axis] = -1;
    return shape;
}

/* --- what comes out --------------------------------------------------------------------------- */

static stk_status refuse_unprobed(const struct dataset_field *field, struct stk_error *err)
{
    stk_status status =
        fail(err, field->problem ? field->problem : STK_CORRUPT,
             "none of the field's first values could be decoded: %s", field->problem_words);
    if (*field->problem_remedy)
        fail_remedy(err, "%s", field->problem_remedy);
    else
        fail_remedy(err,
                    "see what is wrong with `stoker verify`, or read it as bytes: \"%s=bytes\"",
                    field->field.name);
    fail_field(err, field->field.name);
    return status;
}

/* What the chain makes of one value. */
static stk_status run_once(const struct field_layout *layout, const struct stk_bytes *stored,
                           struct stk_tensor *shape, struct stk_error *err)
{
    struct room room = {0};
    struct pipeline_state *state = NULL;
    struct tensor_input made;
    struct stk_flow flow = {0};
    const struct tensor_source source = {.bytes = *stored, .room = &room};
    stk_status status = tensor_input_make(&made, layout->field, &source, err);
    if (!status)
        status = pipeline_state_new(&state, err);
    if (!status) {
        made.input.key = pipeline_key(0, 0, layout->field->probed);
        status = pipeline_run(layout->pipeline, state, &made.input, &flow, err);
    }
    *shape = flow.tensor;
    shape->data = NULL;
    pipeline_state_free(state);
    room_reset(&room, NULL);
    return status;
}

/* Lengths that are not fixed by the chain are those of the first sample: all others must have them.
 */
static stk_status first_shape(struct field_layout *layout, uint32_t f,
                              const struct layout_request *request, struct stk_error *err)
{
    const struct dataset_field *field = layout->field;
    struct stk_reader *reader = NULL;
    struct stk_bytes stored;
    if (field->probed == STK_NOWHERE && field->max_length == 0) {
        layout->shape = field->field.shape; /* no sample has it */
        return STK_OK;
    }
    if (field->probed == STK_NOWHERE)
        return refuse_unprobed(field, err);
    stk_status status = stk_reader_new(request->dataset, &reader, err);
    if (!status)
        status = reader_stored(reader, field->probed, f, &stored, err);
    if (!status) {
        status = run_once(layout, &stored, &layout->shape, err);
        if (status)
            dataset_explain(request->dataset, field->probed, f, NULL, err);
    }
    stk_reader_free(reader);
    return status;
}

/* Refused before the first batch, and not at the first sample that differs. */
static stk_status refuse_drawn(const struct field_layout *layout, struct stk_error *err)
{
    stk_status status = fail(err, STK_USAGE,
                             "%s makes every sample another size, and a batch has "
                             "one",
                             pipeline_drawn_shape(layout->pipeline));
    fail_remedy(err, "put a step of one size behind it, as CenterCrop(224) or Resize((224, 224)), "
                     "or say ragged=\"list\"");
    return status;
}

static stk_status choose_place(struct field_layout *layout, uint32_t f,
                               const struct layout_request *request, struct stk_error *err)
{
    const struct stk_flow *out = pipeline_out(layout->pipeline);
    enum stk_ragged ragged = request->options->ragged;
    int fixed = stk_tensor_size(&out->tensor) != UINT64_MAX;
    stk_status status = STK_OK;
    layout->place = PLACE_DENSE;
    layout->shape = out->tensor;
    if (pipeline_drawn_shape(layout->pipeline) && ragged != STK_RAGGED_LIST)
        return refuse_drawn(layout, err);
    if (!fixed && ragged == STK_RAGGED_ERROR)
        status = first_shape(layout, f, request, err);
    else if (!fixed)
        layout->place = ragged == STK_RAGGED_PAD    ? PLACE_PAD
                        : ragged == STK_RAGGED_FLAT ? PLACE_FLAT
                                                    : PLACE_LIST;
    if (status || layout->place != PLACE_DENSE)
        return status;
    layout->item = stk_tensor_size(&layout->shape);
    layout->pads = pipeline_pads(layout->pipeline);
    return STK_OK;
}

/* Of stored pixels that are cropped first only the crop need be read. That is code of ours alone,
 * which may end at any read (media_stage.c); a plugin's may not. */
static int reads_straight(const struct field_layout *layout, const char *text)
{
    const struct dataset_field *field = layout->field;
    struct chain chain;
    if (field->field.media || field->gather || !field->plain || layout->place != PLACE_DENSE ||
        field->field.shape.dtype != STK_U8 || chain_parse(&chain, text, NULL, NULL))
        return 0;
    int crops = chain.count && chain.steps[0].ops->stage == TRANSFORM_GEOMETRY;
    chain_reset(&chain);
    return crops;
}

static stk_status refuse_rank(const struct field_layout *layout, struct stk_error *err)
{
    int32_t rank = pipeline_out(layout->pipeline)->tensor.rank;
    if (layout->place == PLACE_LIST || layout->place == PLACE_FLAT || rank < STK_MAX_RANK)
        return STK_OK;
    return fail(err, STK_UNSUPPORTED,
                "a tensor of %d axes has no room for the batch's axis (%d at most)", rank,
                STK_MAX_RANK - 1);
}

/* A chain of which nothing is left for the host: the field is taken as it is stored. */
static int leave_to_device(struct field_layout *layout, const struct layout_request *request)
{
    const struct dataset_field *field = layout->field;
    int dense = request->options->ragged == STK_RAGGED_ERROR ||
                field->min_length == field->max_length || field->gather;
    if (pipeline_params_size(layout->pipeline))
        layout->cut = layout->pipeline;
    if (!layout->cut || !dense || !pipeline_ships_stored(layout->cut))
        return 0;
    layout->pipeline = NULL;
    return 1;
}

stk_status chain_layout_field(struct field_layout *layout, uint32_t f,
                              const struct layout_request *request, struct stk_error *err)
{
    const struct dataset_field *field = layout->field;
    const char *chain = chain_of(request->options, field->field.name);
    if (!chain && !field->field.media)
        return STK_OK;
    if (field->field.kind != STK_KIND_TENSOR || field->is_mask)
        return refuse_kind(field, err);
    if (!field->field.media && field->probed == STK_NOWHERE && field->max_length && !field->gather)
        return refuse_unprobed(field, err);
    const struct pipeline_options options = {.chain = chain,
                                             .plugins = request->plugins,
                                             .media = field->field.media,
                                             .tensor = stored_shape(field),
                                             .device = request->device,
                                             .early =
                                                 request->options->resident == STK_RESIDENT_YES};
    stk_status status = pipeline_new(&layout->pipeline, &options, err);
    if (!status && leave_to_device(layout, request))
        return STK_OK;
    if (!status)
        status = choose_place(layout, f, request, err);
    if (!status)
        status = refuse_rank(layout, err);
    layout->straight = !status && chain && reads_straight(layout, chain);
    if (status)
        fail_field(err, field->field.name);
    return status;
}
