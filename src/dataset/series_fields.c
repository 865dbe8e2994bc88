#include <inttypes.h>
#include <string.h>

#include "base/fail.h"
#include "base/memory.h"
#include "base/name_guess.h"
#include "dataset/dataset_fields.h"
#include "dataset/series_state.h"

/* The fields of a series: only those that are asked for are put into the index, in that order, so
 * that a sample's extents need no second walk. */

enum part_number {
    PART_X,
    PART_Y,
    PART_MASK,
    PART_STATIC,
    PART_ENTITY,
    PART_START,
    PART_TIME,
    PART_Y_TIME,
    PART_COUNT
};

static const struct {
    const char *name;
    enum windows_part part;
    enum stk_kind kind;
} parts[PART_COUNT] = {
    [PART_X] = {"x", WINDOWS_PAST, STK_KIND_TENSOR},
    [PART_Y] = {"y", WINDOWS_FUTURE, STK_KIND_TENSOR},
    [PART_MASK] = {"x_mask", WINDOWS_MASK, STK_KIND_TENSOR},
    [PART_STATIC] = {"static", WINDOWS_TABLE, STK_KIND_TENSOR},
    [PART_ENTITY] = {"entity", WINDOWS_ENTITY, STK_KIND_INT},
    [PART_START] = {"start", WINDOWS_START, STK_KIND_INT},
    [PART_TIME] = {"time", WINDOWS_LAST, STK_KIND_TENSOR},
    [PART_Y_TIME] = {"y_time", WINDOWS_FUTURE, STK_KIND_TENSOR},
};

/* NULL: it is there. Else why it is not. */
static const char *part_absent(const struct series *series, uint32_t part)
{
    const char *absent = NULL;
    if ((part == PART_TIME || part == PART_Y_TIME) && series->time_object == SERIES_NO_OBJECT)
        absent = "the series was packed without a time column";
    else if ((part == PART_Y || part == PART_Y_TIME) && !series->info.horizon)
        absent = "horizon is 0: there are no rows after a window";
    else if (part == PART_STATIC && series->static_object == SERIES_NO_OBJECT)
        absent = "the series was packed without static columns";
    return absent;
}

static int part_is_default(const struct series *series, uint32_t part)
{
    if (part == PART_MASK)
        return series->info.pad;
    return part <= PART_STATIC && !part_absent(series, part);
}

/* ---- what one is like ---------------------------------------------------------------------- */

/* Where its rows lie, and its shape in one sample. */
static void part_describe(const struct series *series, uint32_t part, struct windows_field *out)
{
    const struct stk_series_info *info = &series->info;
    struct stk_tensor rows = {.dtype = series->meta.dtype, .rank = 2};
    *out = (struct windows_field){.name = parts[part].name, .part = parts[part].part};
    out->shape = (struct stk_tensor){.dtype = STK_I64};
    switch ((enum part_number)part) {
    case PART_X:
    case PART_Y:
        rows.shape[0] = (int64_t)(part == PART_X ? info->window : info->horizon);
        rows.shape[1] = part == PART_X ? series->x.count : series->y.count;
        rows.rank = part == PART_Y && series->y.count == 1 ? 1 : 2;
        out->shape = rows;
        out->object = SERIES_ARRAY_OBJECT;
        out->row_bytes = series->row_bytes;
        break;
    case PART_MASK:
        out->shape =
            (struct stk_tensor){.dtype = STK_BOOL, .rank = 1, .shape = {(int64_t)info->window}};
        break;
    case PART_STATIC:
        out->shape =
            (struct stk_tensor){.dtype = STK_F32, .rank = 1, .shape = {info->static_count}};
        out->object = series->static_object;
        out->row_bytes = info->static_count * sizeof(float);
        break;
    case PART_Y_TIME:
        out->shape.rank = 1;
        out->shape.shape[0] = (int64_t)info->horizon; /* fall through */
    case PART_TIME:
        out->object = series->time_object;
        out->row_bytes = sizeof(int64_t);
        break;
    default: /* numbers that lie nowhere */
        break;
    }
}

static stk_status part_make(const struct series *series, uint32_t part, struct dataset_field *field,
                            struct windows_field *out, struct stk_error *err)
{
    part_describe(series, part, out);
    field->field.kind = parts[part].kind;
    field->field.shape = out->shape;
    field->alternative_count = 1;
    field->probed = 0;
    field->is_mask = part == PART_MASK;
    field->codec = codec_for(parts[part].name, STK_KIND_INT);
    if (field->field.kind == STK_KIND_TENSOR) {
        field->codec = codec_find("raw");
        field->plain = 1;
    }
    if (part == PART_X)
        field->gather = series->x.gather;
    if (part == PART_Y)
        field->gather = series->y.gather;
    field->payload = stk_tensor_size(&field->field.shape);
    if (field->payload > INT64_MAX)
        return fail(err, STK_LIMIT,
                    "field \"%s\": a window of %" PRIu64 " rows and %" PRIu64
                    " after it is larger than memory can be",
                    parts[part].name, series->info.window, series->info.horizon);
    return STK_OK;
}

/* ---- what is asked for --------------------------------------------------------------------- */

static uint32_t part_find(const char *name, size_t len)
{
    uint32_t part = 0;
    while (part < PART_COUNT &&
           (strlen(parts[part].name) != len || memcmp(parts[part].name, name, len)))
        part++;
    return part;
}

/* The first of the alternatives that is there: a sample of a series has them all. PART_COUNT: none.
 */
static uint32_t part_choose(const struct series *series, const struct field_spec *spec)
{
    for (size_t at = 0; at <= spec->len;) {
        const char *end = memchr(spec->names + at, ';', spec->len - at);
        size_t len = end ? (size_t)(end - spec->names) - at : spec->len - at;
        uint32_t part = part_find(spec->names + at, len);
        if (part < PART_COUNT && !part_absent(series, part))
            return part;
        at += len + 1;
    }
    return PART_COUNT;
}

static stk_status no_part(const struct series *series, const char *name, struct stk_error *err)
{
    struct name_guess guess = {.wanted = name};
    uint32_t known = part_find(name, strlen(name));
    for (uint32_t part = 0; part < PART_COUNT; part++)
        if (!part_absent(series, part))
            name_guess_add(&guess, parts[part].name);
    stk_status status = name_guess_fail(&guess, "field", err);
    if (known < PART_COUNT)
        fail_remedy(err, "%s", part_absent(series, known));
    fail_field(err, name);
    return status;
}

static stk_status check_kind(uint32_t part, const struct field_spec *spec, struct stk_error *err)
{
    if (spec->kind == STK_KIND_AUTO || (spec->kind == parts[part].kind && !spec->media))
        return STK_OK;
    return fail(err, STK_USAGE, "field \"%s\" of a series is %s, and cannot be read otherwise",
                parts[part].name, parts[part].kind == STK_KIND_INT ? "an int" : "a tensor");
}

/* A field that is optional, and that no sample has. */
static void make_absent(struct dataset_field *field, enum stk_kind kind)
{
    field->codec = kind == STK_KIND_AUTO || kind == STK_KIND_TENSOR
                       ? codec_find("raw")
                       : codec_for(field->field.name, kind);
    field->field.kind = field->codec->kind;
    field->field.shape = (struct stk_tensor){.dtype = STK_U8, .rank = 1};
    field->probed = STK_NOWHERE;
    if (field->field.kind == STK_KIND_INT) {
        field->field.shape = (struct stk_tensor){.dtype = STK_I64};
        field->payload = sizeof(int64_t);
    }
}

static stk_status field_make(struct dataset_source *source, const struct field_spec *spec,
                             struct series_fields *fields, struct stk_error *err)
{
    const struct series *series = source->series;
    struct dataset_field *field = &source->fields[source->field_count];
    uint32_t part = part_choose(series, spec);
    stk_status status = STK_OK;
    field->field.name = memory_text(spec->names, spec->len);
    if (!field->field.name)
        return fail_memory(err, spec->len);
    field->field.optional = spec->optional;
    source->field_count++; /* its name is the source's now */
    if (part < PART_COUNT) {
        field->alternatives[0] = fields->count;
        status = check_kind(part, spec, err);
        if (!status)
            status = part_make(series, part, field, &fields->items[fields->count++], err);
    } else if (spec->optional) {
        make_absent(field, spec->kind);
        source->plain = 0;
    } else {
        status = no_part(series, field->field.name, err);
    }
    return status ? status : dataset_fields_refuse_same(source, source->field_count - 1, err);
}

static stk_status make_defaults(struct dataset_source *source, struct series_fields *fields,
                                struct stk_error *err)
{
    stk_status status = dataset_fields_room(source, PART_COUNT, err);
    for (uint32_t part = 0; part < PART_COUNT && !status; part++) {
        struct field_spec spec = {.names = parts[part].name, .len = strlen(parts[part].name)};
        if (part_is_default(source->series, part))
            status = field_make(source, &spec, fields, err);
    }
    return status;
}

stk_status series_fields_make(struct dataset_source *source,
                              const struct stk_dataset_options *options,
                              struct series_fields *fields, struct stk_error *err)
{
    source->plain = 1;
    if (!options->fields)
        return make_defaults(source, fields, err);
    stk_status status = dataset_fields_room(source, options->field_count, err);
    for (uint32_t i = 0; i < options->field_count && !status; i++) {
        struct field_spec spec;
        status = field_spec_parse(&spec, options->fields[i], err);
        if (!status)
            status = field_make(source, &spec, fields, err);
    }
    if (!status && !fields->count)
        status = fail(err, STK_NOT_FOUND, "the series has none of the fields that are asked for");
    return status;
}

void series_fields_measure(struct dataset_source *source)
{
    for (uint32_t i = 0; i < source->field_count; i++) {
        struct dataset_field *field = &source->fields[i];
        if (!field->alternative_count)
            continue;
        const struct index_field *from = index_field(source->index, field->alternatives[0]);
        field->min_length = from->min_length;
        field->max_length = field->field.max_length = from->max_length;
    }
}
