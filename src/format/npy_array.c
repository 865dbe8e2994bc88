#include "format/npy_array.h"

#include "base/fail.h"

/* One row: the shape without its first dimension. */
static struct stk_tensor row_of(const struct stk_tensor *shape)
{
    struct stk_tensor row = {.dtype = shape->dtype, .rank = shape->rank - 1};
    for (int32_t i = 1; i < shape->rank; i++)
        row.shape[i - 1] = shape->shape[i];
    return row;
}

/* Rows of an array in Fortran order are scattered over the whole of it. */
static stk_status fortran_chunk(const struct format_input *input, struct index_builder *builder,
                                const struct npy_place *place, const struct npy_header *header,
                                struct index_array *array, struct stk_error *err)
{
    uint64_t size = stk_tensor_size(&header->shape);
    uint32_t number;
    if (place->chunk) {
        fail(err, STK_UNSUPPORTED, "an array is compressed and in Fortran order");
        fail_remedy(err, "save it in C order: numpy.ascontiguousarray(a)");
        return STK_UNSUPPORTED;
    }
    if (size > input->chunk_limit) {
        fail(err, STK_LIMIT,
             "an array in Fortran order has %llu bytes, more than the limit of %llu",
             (unsigned long long)size, (unsigned long long)input->chunk_limit);
        fail_remedy(err, "save it in C order: numpy.ascontiguousarray(a); or raise chunk_limit");
        return STK_LIMIT;
    }
    struct chunk chunk = {.offset = place->offset + header->length,
                          .length = size,
                          .decoded = size,
                          .count = array->rows,
                          .object = place->object,
                          .filter = FILTER_FORTRAN,
                          .shape = header->shape};
    stk_status status = index_builder_chunk(builder, &chunk, &number, err);
    array->object = INDEX_PART_CHUNK | number;
    array->offset = 0;
    return status;
}

stk_status npy_array_add(const struct format_input *input, struct index_builder *builder,
                         const struct npy_place *place, const struct npy_header *header,
                         struct stk_error *err)
{
    if (header->shape.rank == 0) {
        fail(err, STK_UNSUPPORTED, "the array has no dimensions, so it has no rows to be samples");
        fail_remedy(err, "give it a first dimension: a.reshape(1)");
        return STK_UNSUPPORTED;
    }
    struct index_array array = {.field = place->field,
                                .object = place->chunk ? place->chunk : place->object,
                                .offset = (place->chunk ? 0 : place->offset) + header->length,
                                .rows = (uint64_t)header->shape.shape[0],
                                .row = row_of(&header->shape),
                                .byteswap = header->byteswap};
    stk_status status = STK_OK;
    if (header->fortran && header->shape.rank > 1 && stk_tensor_size(&header->shape) > 0)
        status = fortran_chunk(input, builder, place, header, &array, err);
    return status ? status : index_builder_array(builder, &array, err);
}
