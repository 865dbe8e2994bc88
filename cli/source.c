#include "source.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "stoker/remote.h"
#include "interrupt.h"

/* Not 0 when the command line says anything of windows. */
static int windows_given(const struct option_windows *windows)
{
    return windows->window != STK_DEFAULT || windows->horizon != STK_DEFAULT ||
           windows->stride != STK_DEFAULT || windows->gap != STK_DEFAULT ||
           windows->min_history != STK_DEFAULT || windows->pad || windows->split ||
           windows->features.count || windows->labels.count;
}

stk_status source_configure(const struct arguments *arguments, struct stk_error *err)
{
    struct stk_remote_options options = {.ca = arguments->ca, .timeout_s = arguments->timeout};

    if (!options.ca && !options.timeout_s)
        return STK_OK;
    return stk_remote_configure(&options, err);
}

stk_status source_open(struct stk_context *context, const struct arguments *arguments,
                       char **sources, int count, struct stk_dataset **out, struct stk_error *err)
{
    const struct option_windows *given = &arguments->windows;
    struct stk_window_options windows = {
        .window = given->window,
        .horizon = given->horizon,
        .stride = given->stride,
        .gap = given->gap,
        .min_history = given->min_history,
        .pad = given->pad,
        .split = given->split,
        .features = given->features.count ? given->features.words : NULL,
        .feature_count = given->features.count,
        .labels = given->labels.count ? given->labels.words : NULL,
        .label_count = given->labels.count,
    };
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
        .window = windows_given(given) ? &windows : NULL,
        .cache = arguments->cache,
        .cache_size = arguments->cache_size,
        .share_index = arguments->share_index,
    };
    stk_status status = source_configure(arguments, err);

    if (status)
        return status;
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

/* Every window has every field, and there may be more of them than one can walk over. */
static void count_windows(const struct stk_dataset *dataset, struct source_count *counts)
{
    uint64_t samples = stk_dataset_samples(dataset);

    for (uint32_t f = 0; f < stk_dataset_field_count(dataset); f++) {
        counts[f].samples = samples;
        if (__builtin_mul_overflow(samples, stk_tensor_size(&stk_dataset_field(dataset, f)->shape),
                                   &counts[f].bytes))
            counts[f].bytes = UINT64_MAX;
    }
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
    if (stk_dataset_series(dataset)) {
        count_windows(dataset, counts);
        return STK_OK;
    }
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
    const char *media = field->media ? stk_media_name(field->media) : "";
    int decoded = !field->media || field->shape.rank > 1; /* else its first values are all bad */
    int len = snprintf(out, SOURCE_KIND_CAP, decoded && field->media ? "%s " : "%s", media);
    if (!decoded)
        return out;
    len += snprintf(out + len, SOURCE_KIND_CAP - (size_t)len, "%s (",
                    stk_dtype_name(field->shape.dtype));
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
