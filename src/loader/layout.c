#include "loader/layout.h"

#include "base/checked.h"
#include "base/fail.h"
#include "base/memory.h"
#include "loader/chain_layout.h"

#define AUDIO_WORKS                                                                                \
    32 /* frames as they are stored may be this much more than what is made of them */

static enum place field_place(const struct stk_field *field, enum stk_ragged ragged)
{
    if (field->kind == STK_KIND_INT)
        return PLACE_DENSE;
    if (field->kind != STK_KIND_TENSOR)
        return PLACE_BYTES;
    return ragged == STK_RAGGED_PAD    ? PLACE_PAD
           : ragged == STK_RAGGED_LIST ? PLACE_LIST
           : ragged == STK_RAGGED_FLAT ? PLACE_FLAT
                                       : PLACE_DENSE;
}

/* An array's rows are all alike: nothing to pad. */
static int field_is_row(const struct dataset_field *field)
{
    return field->head == 0 && field->min_length == field->max_length &&
           field->max_length == field->payload;
}

/* Rows that are gathered, and masks, have one shape whatever is stored. */
static int field_is_made(const struct dataset_field *field)
{
    return field->gather || field->is_mask;
}

/* Stored rows of all columns can be gathered where they are read to; others are read beside. */
static void field_init_rows(struct field_layout *layout, uint64_t *rows)
{
    const struct dataset_field *field = layout->field;
    layout->full = STK_NOWHERE;
    if (layout->pipeline)
        return;
    layout->gather = field->gather;
    if (layout->place == PLACE_DENSE && field->field.kind == STK_KIND_TENSOR)
        layout->full = field->head + field->payload;
    if (!layout->gather)
        return;
    layout->row = window_gather_row_bytes(layout->gather);
    layout->to_row = window_gather_to_bytes(layout->gather);
    layout->rows = field->payload / layout->to_row;
    layout->full = layout->rows * layout->row;
    layout->rows_at = STK_NOWHERE;
    if (window_gather_in_place(layout->gather))
        return;
    layout->rows_at = *rows;
    *rows += box_round_up(layout->full);
}

/* A field that is taken as it is stored. */
static stk_status field_init(struct field_layout *layout, enum stk_ragged ragged,
                             struct stk_error *err)
{
    const struct dataset_field *field = layout->field;
    layout->place = field_place(&field->field, ragged);
    if (layout->place != PLACE_BYTES && (field_is_row(field) || field_is_made(field)))
        layout->place = PLACE_DENSE;
    if (layout->place != PLACE_BYTES && layout->place != PLACE_LIST &&
        layout->place != PLACE_FLAT && field->field.shape.rank >= STK_MAX_RANK) {
        stk_status status = fail(err, STK_UNSUPPORTED,
                                 "a tensor of %d axes has no room for the "
                                 "batch's axis (%d at most)",
                                 field->field.shape.rank, STK_MAX_RANK - 1);
        fail_field(err, field->field.name);
        return status;
    }
    if (layout->place != PLACE_DENSE)
        return STK_OK;
    if (field->probed == STK_NOWHERE && field->max_length > 0 &&
        field->field.kind == STK_KIND_TENSOR && !field_is_made(field)) {
        stk_status status = fail(err, STK_CORRUPT, "none of the field's first values is a tensor");
        fail_field(err, field->field.name);
        fail_remedy(err,
                    "see what is wrong with `stoker verify`, or read it as bytes: \"%s=bytes\"",
                    field->field.name);
        return status;
    }
    layout->shape = field->field.shape;
    layout->item = field->field.kind == STK_KIND_INT ? sizeof(int64_t) : field->payload;
    layout->side = field->field.kind == STK_KIND_INT ? DATASET_MAX_INT_LENGTH : field->head;
    return STK_OK;
}

/* What the loader needs to know of all fields with a pipeline together. */
static void sum_pipeline(struct layout *layout, const struct field_layout *field)
{
    const struct dataset_field *stored = field->field;
    uint64_t works = stored->payload, part = AUDIO_WORKS * field->item;
    if (stored->field.media == STK_MEDIA_AUDIO && field->place == PLACE_DENSE && works > part)
        works = part; /* of a long recording only the part that is asked for is decoded */
    layout->pipelines++;
    layout->decodes |= stored->field.media != STK_MEDIA_TENSOR;
    layout->encoded += box_round_up(stored->max_length);
    layout->decoded += 2 * works + field->item;
}

/* What the caller sees of it. */
static void field_made(struct field_layout *field)
{
    field->made = field->shape;
    if (field->cut) {
        field->params = pipeline_params_size(field->cut);
        field->made = pipeline_device_out(field->cut)->tensor;
    }
    field->made_item = field->place == PLACE_DENSE ? stk_tensor_size(&field->made) : 0;
}

static stk_status layout_add(struct layout *layout, uint32_t f,
                             const struct layout_request *request, struct stk_error *err)
{
    struct field_layout *field = &layout->fields[f];
    field->field = dataset_field(request->dataset, f);
    stk_status status = chain_layout_field(field, f, request, err);
    if (!status && field->pipeline)
        sum_pipeline(layout, field);
    else if (!status)
        status = field_init(field, request->options->ragged, err);
    if (status)
        return status;
    field_made(field);
    layout->aims |= field->params && !field->pipeline;
    field_init_rows(field, &layout->rows);
    layout->variable |= layout_runs(field);
    layout->optional |= field->field->field.optional;
    layout->gathers |= field->gather != NULL;
    layout->item += field->item;
    field->side_at = layout->side_size;
    layout->side_size += (uint64_t)field->side * layout->capacity;
    return STK_OK;
}

static stk_status check_size(const struct layout *layout, struct stk_error *err)
{
    uint64_t total;
    if (!checked_mul(layout->item, layout->capacity, &total) || total > INT64_MAX)
        return fail(err, STK_LIMIT, "a batch of %u samples of %llu bytes each", layout->capacity,
                    (unsigned long long)layout->item);
    return STK_OK;
}

stk_status layout_init(struct layout *layout, const struct layout_request *request,
                       struct stk_error *err)
{
    uint32_t count = stk_dataset_field_count(request->dataset);
    *layout = (struct layout){
        .field_count = count, .capacity = request->capacity, .device = request->device};
    layout->fields = memory_zero(count, sizeof *layout->fields);
    if (!layout->fields)
        return fail_memory(err, count * sizeof *layout->fields);
    stk_status status = chain_layout_check(request, err);
    for (uint32_t f = 0; f < count && !status; f++)
        status = layout_add(layout, f, request, err);
    if (status)
        return status;
    if ((uint64_t)layout->capacity * count > UINT32_MAX) /* values are numbered in 32 bits */
        return fail(err, STK_LIMIT, "a batch of %u samples of %u fields each", layout->capacity,
                    count);
    return check_size(layout, err);
}

stk_status layout_spread(struct layout *layout, uint32_t f, uint32_t classes, struct stk_error *err)
{
    struct field_layout *field = &layout->fields[f];
    layout->item -= field->item;
    field->classes = classes;
    field->shape = (struct stk_tensor){.dtype = STK_F32, .rank = 1, .shape = {classes}};
    field->item = stk_tensor_size(&field->shape);
    field_made(field);
    layout->item += field->item;
    return check_size(layout, err);
}

void layout_reset(struct layout *layout)
{
    for (uint32_t f = 0; layout->fields && f < layout->field_count; f++) {
        if (layout->fields[f].cut != layout->fields[f].pipeline)
            pipeline_free(layout->fields[f].cut);
        pipeline_free(layout->fields[f].pipeline);
    }
    memory_free(layout->fields);
    *layout = (struct layout){0};
}

uint64_t layout_typical(const struct layout *layout)
{
    uint64_t bytes = layout->item;
    for (uint32_t f = 0; f < layout->field_count; f++) {
        const struct dataset_field *field = layout->fields[f].field;
        if (layout->fields[f].place != PLACE_DENSE)
            bytes += layout->fields[f].pipeline ? field->payload
                                                : (field->min_length + field->max_length) / 2;
    }
    return bytes ? bytes : 1;
}
