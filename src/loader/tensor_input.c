#include "loader/tensor_input.h"

#include <string.h>

#include "base/fail.h"
#include "base/shape.h"

static uint8_t *input_room(struct tensor_input *out, const struct tensor_source *source,
                           uint64_t size, struct stk_error *err)
{
    uint8_t *to = room_reserve(source->room, size, source->counted);
    if (!to) {
        (void)fail_memory(err, size);
        return NULL;
    }
    out->input.bytes = (struct stk_bytes){to, size};
    out->input.slack = 1;
    return to;
}

/* The last rows are those that are there; what is before them is 0. */
static stk_status input_gather(struct tensor_input *out, const struct dataset_field *field,
                               const struct tensor_source *source, struct stk_error *err)
{
    uint64_t rows = source->bytes.len / window_gather_row_bytes(field->gather);
    uint64_t made = rows * window_gather_to_bytes(field->gather);
    if (made > field->payload)
        return fail(err, STK_CORRUPT, "%zu bytes are no window of the series", source->bytes.len);
    uint8_t *to = input_room(out, source, field->payload, err);
    if (!to)
        return STK_MEMORY;
    memset(to, 0, field->payload - made);
    window_gather_copy(field->gather, source->bytes.data, rows, to + (field->payload - made));
    out->shape = field->field.shape;
    return STK_OK;
}

static stk_status refuse_dtype(const struct dataset_field *field, const struct stk_tensor *shape,
                               struct stk_error *err)
{
    char here[128], there[128];
    shape_text(shape, here, sizeof here);
    shape_text(&field->field.shape, there, sizeof there);
    stk_status status = fail(err, STK_SHAPE, "the sample has shape %s, but sample %llu has %s",
                             here, (unsigned long long)field->probed, there);
    fail_remedy(err, "all values of a field must have one dtype and as many axes: convert the odd "
                     "ones");
    return status;
}

/* Used where it lies, or, when its order or its place do not allow that, put in order in the room.
 */
static stk_status input_decode(struct tensor_input *out, const struct dataset_field *field,
                               const struct codec_shape *found, const struct tensor_source *source,
                               struct stk_error *err)
{
    const uint8_t *payload = source->bytes.data + found->head;
    uint64_t size = stk_tensor_size(&found->tensor);
    int aligned = (uintptr_t)payload % stk_dtype_size(found->tensor.dtype) == 0;
    out->shape = found->tensor;
    if (found->plain && aligned && source->bytes.len - found->head == size) {
        out->input.bytes = (struct stk_bytes){payload, size};
        out->input.slack = source->slack;
        return STK_OK;
    }
    struct stk_tensor to = found->tensor;
    to.data = input_room(out, source, size, err);
    return to.data ? field->codec->decode(&source->bytes, &to, err) : STK_MEMORY;
}

stk_status tensor_input_make(struct tensor_input *out, const struct dataset_field *field,
                             const struct tensor_source *source, struct stk_error *err)
{
    *out = (struct tensor_input){.input = {.bytes = source->bytes, .slack = source->slack}};
    if (field->field.media)
        return STK_OK;
    out->input.shape = &out->shape;
    if (field->gather)
        return input_gather(out, field, source, err);
    struct codec_shape found = {.tensor = field->field.shape, .plain = field->plain};
    int rows = field->head == 0 && field->min_length == field->max_length &&
               field->max_length == field->payload;
    stk_status status = STK_OK;
    if (!rows)
        status = field->codec->probe(&source->bytes, source->bytes.len, &found, err);
    if (status)
        return status;
    const struct stk_tensor *known = &field->field.shape;
    if (found.tensor.dtype != known->dtype || found.tensor.rank != known->rank)
        return refuse_dtype(field, &found.tensor, err);
    return input_decode(out, field, &found, source, err);
}
