/* Raw arrays: files that hold samples of one type and shape and nothing else. Several files are one
 * long array. The values are never looked at: NaN and infinity pass through as they are. */
#include "base/fail.h"
#include "format/format.h"
#include "format/format_tell.h"

static stk_status raw_add(const struct format_input *input, const struct format_object *object,
                          uint64_t row_size, struct index_builder *builder, struct stk_error *err)
{
    char path[4096];
    if (object->size % row_size) {
        fail(err, STK_CORRUPT, "%llu bytes are no whole number of samples of %llu bytes",
             (unsigned long long)object->size, (unsigned long long)row_size);
        fail_at(err, format_path(input, object, path, sizeof(path)),
                object->size - object->size % row_size);
        fail_remedy(err, "check dtype and shape; the file may have been cut off");
        return STK_CORRUPT;
    }
    struct index_array array = {.field = "raw", .rows = object->size / row_size, .row = input->raw};
    stk_status status = index_builder_object(builder, object->name, object->size, object->version,
                                             &array.object, err);
    return status ? status : index_builder_array(builder, &array, err);
}

static stk_status raw_build(const struct format_input *input, struct index_builder *builder,
                            struct stk_error *err)
{
    uint64_t row_size = input->raw.rank < 0 ? 0 : stk_tensor_size(&input->raw);
    struct format_tell tell = {.input = input, .unit = "files"};
    if (row_size == 0 || row_size == UINT64_MAX) {
        fail(err, STK_USAGE,
             "a raw array needs the type and shape of one sample, and it must hold "
             "at least one byte");
        fail_remedy(err, "give dtype and shape: dtype=float32, shape=3,224,224");
        return STK_USAGE;
    }
    stk_status status = STK_OK;
    uint64_t bytes = 0;
    for (uint64_t i = 0; !status && i < input->object_count; i++) {
        bytes += input->objects[i].size;
        status = raw_add(input, &input->objects[i], row_size, builder, err);
        if (!status)
            status = format_tell(&tell, i + 1, bytes, err);
    }
    return status;
}

static const char *const raw_suffixes[] = {".raw", NULL};

const struct format_ops raw_format = {
    .name = "raw", .suffixes = raw_suffixes, .sniff = NULL, .build = raw_build};
