#include "dataset/dataset_fields.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/fail.h"
#include "base/memory.h"
#include "base/name_guess.h"

/* ---- the text of a spec -------------------------------------------------------------------- */

static int kind_parse(const char *text, size_t len, struct field_spec *spec)
{
    static const struct {
        const char *name;
        enum stk_kind kind;
        enum stk_media media;
    } kinds[] = {
        {"tensor", STK_KIND_TENSOR, 0},
        {"int", STK_KIND_INT, 0},
        {"text", STK_KIND_TEXT, 0},
        {"json", STK_KIND_JSON, 0},
        {"bytes", STK_KIND_BYTES, 0},
        {"auto", STK_KIND_AUTO, 0},
        {"image", STK_KIND_TENSOR, STK_MEDIA_IMAGE},
        {"audio", STK_KIND_TENSOR, STK_MEDIA_AUDIO},
        {"video", STK_KIND_TENSOR, STK_MEDIA_VIDEO},
        {"points", STK_KIND_TENSOR, STK_MEDIA_POINTS},
    };
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (strlen(kinds[i].name) == len && !strncmp(kinds[i].name, text, len)) {
            spec->kind = kinds[i].kind;
            spec->media = kinds[i].media;
            return 1;
        }
    return 0;
}

static int take_mark(struct field_spec *spec)
{
    if (!spec->len || spec->names[spec->len - 1] != '?')
        return 0;
    spec->len--;
    spec->optional = 1;
    return 1;
}

stk_status field_spec_parse(struct field_spec *spec, const char *text, struct stk_error *err)
{
    *spec = (struct field_spec){.names = text, .len = strlen(text)};
    take_mark(spec);
    const char *equal = memrchr(text, '=', spec->len);
    if (equal) {
        size_t kind_len = spec->len - (size_t)(equal + 1 - text);
        if (!kind_parse(equal + 1, kind_len, spec)) {
            stk_status status =
                fail(err, STK_USAGE, "field \"%s\" asks for a kind that is none", text);
            fail_remedy(err, "kinds: tensor, int, text, json, bytes, image, audio, video, points");
            return status;
        }
        spec->len = (size_t)(equal - text);
        take_mark(spec);
    }
    if (!spec->len)
        return fail(err, STK_USAGE, "field \"%s\" has no name", text);
    return STK_OK;
}

/* ---- specs against the index --------------------------------------------------------------- */

static uint32_t field_number(const struct index *index, const char *name, size_t len)
{
    for (uint32_t i = 0; i < index_field_count(index); i++) {
        const char *own = index_field(index, i)->name;
        if (strlen(own) == len && !memcmp(own, name, len))
            return i;
    }
    return UINT32_MAX;
}

static stk_status no_field(const struct index *index, const char *name, struct stk_error *err)
{
    struct name_guess guess = {.wanted = name};
    for (uint32_t i = 0; i < index_field_count(index); i++)
        name_guess_add(&guess, index_field(index, i)->name);
    stk_status status = name_guess_fail(&guess, "field", err);
    fail_field(err, name);
    return status;
}

/* How a field of that name is read. */
static const struct codec_ops *name_codec(const char *name, const struct field_spec *spec)
{
    return spec->media ? codec_of_media(spec->media) : codec_for(name, spec->kind);
}

/* How the index's field is read. */
static const struct codec_ops *index_codec(const struct index_field *field,
                                           const struct field_spec *spec)
{
    int rows = field->row.rank >= 0 &&
               (spec->kind == STK_KIND_AUTO || spec->kind == STK_KIND_TENSOR) && !spec->media;
    if (rows)
        return codec_find(field->byteswap ? "raw_swapped" : "raw");
    return name_codec(field->name, spec);
}

/* Rows of an array are no encoded media, whatever they hold. */
static stk_status refuse_media_rows(const struct index_field *field, const struct field_spec *spec,
                                    struct stk_error *err)
{
    if (field->row.rank < 0 || !spec->media)
        return STK_OK;
    stk_status status =
        fail(err, STK_USAGE, "field \"%s\" is an array: its rows are not encoded", field->name);
    fail_remedy(err, "leave out \"=%s\": transforms take its rows as they are",
                stk_media_name(spec->media));
    return status;
}

static stk_status add_alternative(struct dataset_field *field, const struct index *index,
                                  uint32_t number, const struct field_spec *spec,
                                  struct stk_error *err)
{
    const struct index_field *from = index_field(index, number);
    const struct codec_ops *codec = index_codec(from, spec);
    stk_status status = refuse_media_rows(from, spec, err);
    if (status)
        return status;
    if (field->alternative_count == DATASET_MAX_ALTERNATIVES)
        return fail(err, STK_LIMIT, "field \"%s\" has more than %d alternatives", field->field.name,
                    DATASET_MAX_ALTERNATIVES);
    if (field->alternative_count && field->codec != codec) {
        status = fail(err, STK_USAGE, "the alternatives of \"%s\" are of kinds %s and %s",
                      field->field.name, field->codec->name, codec->name);
        fail_remedy(err, "say which: \"%s=bytes\"", field->field.name);
        return status;
    }
    int first = !field->alternative_count;
    field->codec = codec;
    field->alternatives[field->alternative_count++] = number;
    if (first || from->min_length < field->min_length)
        field->min_length = from->min_length;
    if (first || from->max_length > field->max_length)
        field->max_length = from->max_length;
    return STK_OK;
}

/* Alternatives that the index does not know are left out; one must be there unless optional. */
static stk_status add_alternatives(struct dataset_field *field, const struct index *index,
                                   const struct field_spec *spec, struct stk_error *err)
{
    stk_status status = STK_OK;
    for (const char *at = field->field.name; !status; at++) {
        size_t len = strcspn(at, ";");
        uint32_t number = field_number(index, at, len);
        if (number != UINT32_MAX)
            status = add_alternative(field, index, number, spec, err);
        at += len;
        if (!*at)
            break;
    }
    if (!status && !field->alternative_count && !field->field.optional)
        status = no_field(index, field->field.name, err);
    if (!status && !field->alternative_count) {
        size_t first = strcspn(field->field.name, ";");
        char *name = memory_text(field->field.name, first);
        if (!name)
            return fail_memory(err, first);
        field->codec = name_codec(name, spec);
        memory_free(name);
    }
    return status;
}

static stk_status field_init(struct dataset_field *field, const struct index *index,
                             const struct field_spec *spec, struct stk_error *err)
{
    char *name = memory_text(spec->names, spec->len);
    if (!name)
        return fail_memory(err, spec->len);
    field->field.name = name;
    field->field.optional = spec->optional;
    field->probed = STK_NOWHERE;
    stk_status status = STK_OK;
    uint32_t whole = field_number(index, spec->names, spec->len); /* a name may hold a ';' */
    if (whole != UINT32_MAX)
        status = add_alternative(field, index, whole, spec, err);
    else
        status = add_alternatives(field, index, spec, err);
    if (status)
        return status;
    field->field.kind = field->codec->kind;
    field->field.media = field->codec->media;
    field->field.max_length = field->max_length;
    field->field.shape = (struct stk_tensor){.dtype = STK_U8, .rank = 1}; /* until it is probed */
    if (field->field.kind == STK_KIND_INT) {
        field->field.shape = (struct stk_tensor){.dtype = STK_I64};
        field->payload = sizeof(int64_t);
    }
    return STK_OK;
}

stk_status dataset_fields_room(struct dataset_source *source, uint32_t count, struct stk_error *err)
{
    if (count == 0)
        return fail(err, STK_USAGE, "no field is asked for");
    if (count > DATASET_MAX_FIELDS) {
        stk_status status =
            fail(err, STK_LIMIT, "%u fields, over the limit of %d", count, DATASET_MAX_FIELDS);
        fail_remedy(err, "name those you want (fields=)");
        return status;
    }
    source->fields = memory_zero(count, sizeof *source->fields);
    return source->fields ? STK_OK : fail_memory(err, count * sizeof *source->fields);
}

stk_status dataset_fields_refuse_same(const struct dataset_source *source, uint32_t field,
                                      struct stk_error *err)
{
    for (uint32_t i = 0; i < field; i++)
        if (!strcmp(source->fields[i].field.name, source->fields[field].field.name))
            return fail(err, STK_USAGE, "field \"%s\" is asked for twice",
                        source->fields[field].field.name);
    return STK_OK;
}

stk_status dataset_fields_make(struct dataset_source *source, const char *const *specs,
                               uint32_t count, struct stk_error *err)
{
    const struct index *index = source->index;
    if (!specs)
        count = index_field_count(index);
    stk_status status = dataset_fields_room(source, count, err);
    if (status)
        return status;
    source->plain = count == index_field_count(index);
    for (uint32_t i = 0; i < count && !status; i++) {
        struct dataset_field *field = &source->fields[i];
        const char *text = specs ? specs[i] : index_field(index, i)->name;
        struct field_spec spec = {.names = text, .len = strlen(text)};
        if (!specs)
            spec.optional = index_field(index, i)->missing > 0;
        else if (field_number(index, text, spec.len) == UINT32_MAX)
            status = field_spec_parse(&spec, text, err);
        source->field_count = i + 1;
        if (!status)
            status = field_init(field, index, &spec, err);
        if (!status)
            status = dataset_fields_refuse_same(source, i, err);
        if (field->alternative_count != 1 || field->alternatives[0] != i)
            source->plain = 0;
    }
    return status;
}

void dataset_fields_free(struct dataset_source *source)
{
    for (uint32_t i = 0; i < source->field_count; i++)
        memory_free((void *)source->fields[i].field.name);
    memory_free(source->fields);
    source->fields = NULL;
    source->field_count = 0;
}
