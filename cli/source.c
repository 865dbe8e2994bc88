#include "source.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "interrupt.h"

stk_status source_open(struct stk_context *context, const struct arguments *arguments,
                       char **sources, int count, struct stk_dataset **out, struct stk_error *err)
{
    struct stk_dataset_options options = {
        .fields = arguments->fields.count ? arguments->fields.words : NULL,
        .field_count = arguments->fields.count,
        .format = arguments->format,
        .dtype = arguments->dtype,
        .shape = arguments->shape.rank ? arguments->shape.shape : NULL,
        .rank = arguments->shape.rank,
        .chunk_limit = arguments->chunk_limit,
        .index = arguments->index,
        .reindex = arguments->reindex,
    };

    return stk_dataset_open(context, out, (const char *const *)sources, (uint32_t)count, &options,
                            err);
}

void source_folder(const struct arguments *arguments, char folder[PATH_MAX])
{
    folder[0] = 0;
    for (int i = 0; i < arguments->word_count; i++)
        if (arguments->words[i][0] == '/' || strstr(arguments->words[i], "://"))
            return;
    if (!getcwd(folder, PATH_MAX))
        folder[0] = 0;
}

const char *source_path(const char *folder, const char *object)
{
    size_t len = strlen(folder);

    return len && !strncmp(object, folder, len) && object[len] == '/' ? object + len + 1 : object;
}

static stk_status count_sample(const struct stk_dataset *dataset, uint64_t sample,
                               struct source_count *counts, struct stk_error *err)
{
    struct stk_place place;

    for (uint32_t f = 0; f < stk_dataset_field_count(dataset); f++) {
        stk_status status = stk_dataset_place(dataset, sample, f, &place, err);
        if (status == STK_NOT_FOUND)
            continue;
        if (status)
            return status;
        counts[f].samples++;
        if (place.length != STK_NOWHERE)
            counts[f].bytes += place.length;
    }
    return STK_OK;
}

stk_status source_count(const struct stk_dataset *dataset, struct source_count *counts,
                        struct stk_error *err)
{
    uint64_t samples = stk_dataset_samples(dataset);
    stk_status status = STK_OK;

    memset(counts, 0, stk_dataset_field_count(dataset) * sizeof(*counts));
    for (uint64_t i = 0; i < samples && !status; i++)
        status = interrupt_pending() ? STK_CANCELLED : count_sample(dataset, i, counts, err);
    return status;
}

const char *source_kind_name(enum stk_kind kind)
{
    static const char *const names[] = {"auto", "tensor", "int", "text", "json", "bytes"};

    return (unsigned)kind < sizeof(names) / sizeof(names[0]) ? names[kind] : "?";
}

const char *source_kind(const struct stk_field *field, char out[SOURCE_KIND_CAP])
{
    if (field->kind != STK_KIND_TENSOR) {
        snprintf(out, SOURCE_KIND_CAP, "%s", source_kind_name(field->kind));
        return out;
    }
    int len = snprintf(out, SOURCE_KIND_CAP, "%s (", stk_dtype_name(field->shape.dtype));
    for (int32_t i = 0; i < field->shape.rank; i++)
        len += snprintf(out + len, SOURCE_KIND_CAP - (size_t)len, "%s%" PRId64, i ? ", " : "",
                        field->shape.shape[i]);
    snprintf(out + len, SOURCE_KIND_CAP - (size_t)len, ")");
    return out;
}

const char *source_fingerprint(const struct stk_dataset *dataset, char out[33])
{
    uint8_t bytes[16];

    stk_dataset_fingerprint(dataset, bytes);
    for (int i = 0; i < 16; i++)
        snprintf(out + 2 * i, 3, "%02x", bytes[i]);
    return out;
}
