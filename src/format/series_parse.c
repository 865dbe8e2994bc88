/* The parser: every key is looked up by its names, checked, and copied; nothing of the parsed
 * document is kept. */
#include "format/series_parser.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/fail.h"
#include "base/memory.h"

#define META_MOST_CODES (UINT64_C(1) << 24) /* float32 holds all below exactly */

/* --- small things ---------------------------------------------------------------------------- */

stk_status meta_bad(const struct meta_parser *parser, const char *key, const char *format, ...)
{
    char words[256];
    va_list args;
    va_start(args, format);
    vsnprintf(words, sizeof(words), format, args);
    va_end(args);
    fail(parser->err, STK_CORRUPT, "%s: %s", key, words);
    fail_at(parser->err, parser->path, STK_NOWHERE);
    fail_remedy(parser->err, "correct the key %s, or pack the series again", key);
    return STK_CORRUPT;
}

/* A member under the first of its names that is there and not null. */
static const struct json *meta_find(const struct json *object, const char *const *names,
                                    const char **found)
{
    for (; *names; names++) {
        const struct json *value = json_member(object, *names);
        if (json_kind(value) > JSON_KIND_NULL) {
            *found = *names;
            return value;
        }
    }
    return NULL;
}

const struct json *meta_member(const struct json *object, const char *name)
{
    const struct json *value = json_member(object, name);
    return json_kind(value) == JSON_KIND_NULL ? NULL : value;
}

stk_status meta_copy(const struct meta_parser *parser, const char *text, char **out)
{
    memory_free(*out);
    *out = memory_text(text, strlen(text));
    return *out ? STK_OK : fail_memory(parser->err, strlen(text));
}

/* A text that may be missing: *out stays NULL then. */
static stk_status meta_text(const struct meta_parser *parser, const struct json *object,
                            const char *name, char **out)
{
    const struct json *value = meta_member(object, name);
    const char *text;
    if (!value)
        return STK_OK;
    if (!json_text(value, &text))
        return meta_bad(parser, name, "it is not a text");
    return meta_copy(parser, text, out);
}

/* A whole number that may be missing: *out stays as it is then. */
static stk_status meta_number(const struct meta_parser *parser, const struct json *object,
                              const char *name, uint64_t least, uint64_t *out)
{
    const struct json *value = meta_member(object, name);
    uint64_t number;
    if (!value)
        return STK_OK;
    if (!json_u64(value, &number) || number < least || number > SERIES_MOST)
        return meta_bad(parser, name, "it is not a whole number of at least %llu",
                        (unsigned long long)least);
    *out = number;
    return STK_OK;
}

static int text_order(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

const char *meta_twice(const char **names, size_t count)
{
    qsort(names, count, sizeof(*names), text_order);
    for (size_t i = 1; i < count; i++) {
        if (!strcmp(names[i - 1], names[i]))
            return names[i];
    }
    return NULL;
}

static void texts_free(char **texts, uint32_t count)
{
    for (uint32_t i = 0; texts && i < count; i++)
        memory_free(texts[i]);
    memory_free(texts);
}

/* --- lists of names -------------------------------------------------------------------------- */

struct meta_names {
    char **texts;
    uint32_t count;
};

static stk_status meta_unique(const struct meta_parser *parser, const char *key,
                              const struct meta_names *names)
{
    const char **sorted = memory_zero(names->count + 1u, sizeof(*sorted));
    if (!sorted)
        return fail_memory(parser->err, names->count * sizeof(*sorted));
    for (uint32_t i = 0; i < names->count; i++)
        sorted[i] = names->texts[i];
    const char *twice = meta_twice(sorted, names->count);
    memory_free(sorted);
    return twice ? meta_bad(parser, key, "%.100s is there twice", twice) : STK_OK;
}

/* A list of names, or one name alone. Each is not empty and there once. */
static stk_status meta_names(const struct meta_parser *parser, const char *key,
                             const struct json *value, uint64_t most, struct meta_names *out)
{
    const char *text;
    int alone = json_text(value, &text);
    size_t count = alone ? 1 : json_count(value);
    if (!alone && json_kind(value) != JSON_KIND_LIST)
        return meta_bad(parser, key, "it is not a list of names");
    if (count > most)
        return meta_bad(parser, key, "it has %zu names, more than %llu", count,
                        (unsigned long long)most);
    out->texts = memory_zero(count + 1, sizeof(*out->texts));
    if (!out->texts)
        return fail_memory(parser->err, count * sizeof(*out->texts));
    for (size_t i = 0; i < count; i++) {
        if (!json_text(alone ? value : json_item(value, i), &text) || !text[0])
            return meta_bad(parser, key, "item %zu is not a name", i);
        stk_status status = meta_copy(parser, text, &out->texts[i]);
        if (status)
            return status;
        out->count++;
    }
    return meta_unique(parser, key, out);
}

/* The number of a column, or column_count. */
static uint32_t meta_column(const struct series_meta *meta, const char *name)
{
    uint32_t i = 0;
    while (i < meta->column_count && strcmp(meta->columns[i], name))
        i++;
    return i;
}

static stk_status meta_columns(const struct meta_parser *parser)
{
    static const char *const keys[] = {"features", "feature_cols", "feature_columns", NULL};
    struct series_meta *meta = parser->meta;
    struct meta_names features = {0}, columns = {0};
    const char *key = keys[0];
    const struct json *value = meta_find(parser->root, keys, &key);
    const struct json *all = meta_member(parser->root, "columns");
    if (!value)
        return meta_bad(parser, key, "it is missing: the names of the array's columns");
    stk_status status = meta_names(parser, key, value, SERIES_MAX_COLUMNS, &features);
    if (!status && features.count == 0)
        status = meta_bad(parser, key, "there is none");
    if (!status)
        status = meta_names(parser, all ? "columns" : key, all ? all : value, SERIES_MAX_COLUMNS,
                            &columns);
    for (uint32_t i = 0; !status && i < features.count; i++) {
        if (i >= columns.count || strcmp(features.texts[i], columns.texts[i]))
            status = meta_bad(parser, "columns", "they do not begin with the features");
    }
    meta->columns = columns.texts;
    meta->column_count = columns.count;
    meta->feature_count = features.count;
    texts_free(features.texts, features.count);
    return status;
}

static stk_status meta_labels(const struct meta_parser *parser)
{
    static const char *const keys[] = {"labels", "label", "target", NULL};
    struct series_meta *meta = parser->meta;
    struct meta_names names = {0};
    const char *key = keys[0];
    const struct json *value = meta_find(parser->root, keys, &key);
    stk_status status = STK_OK;
    if (value)
        status = meta_names(parser, key, value, SERIES_MAX_COLUMNS, &names);
    uint32_t count = names.count ? names.count : 1; /* else the first feature */
    meta->labels = memory_zero(count, sizeof(*meta->labels));
    if (!status && !meta->labels)
        status = fail_memory(parser->err, count * sizeof(*meta->labels));
    for (uint32_t i = 0; !status && i < names.count; i++) {
        meta->labels[i] = meta_column(meta, names.texts[i]);
        if (meta->labels[i] == meta->column_count)
            status = meta_bad(parser, key, "%.100s is no column of the array", names.texts[i]);
    }
    meta->label_count = count;
    texts_free(names.texts, names.count);
    return status;
}

static stk_status meta_statics(const struct meta_parser *parser)
{
    const struct json *value = meta_member(parser->root, "statics");
    struct meta_names names = {0};
    if (!value)
        return STK_OK;
    stk_status status = meta_names(parser, "statics", value, SERIES_MAX_COLUMNS, &names);
    parser->meta->statics = names.texts;
    parser->meta->static_count = names.count;
    return status;
}

/* --- categories and what was missing --------------------------------------------------------- */

static int meta_knows(const struct series_meta *meta, const char *name)
{
    for (uint32_t i = 0; i < meta->static_count; i++) {
        if (!strcmp(meta->statics[i], name))
            return 1;
    }
    return meta_column(meta, name) < meta->column_count;
}

static stk_status meta_category(const struct meta_parser *parser, const char *name,
                                const struct json *list, struct series_category *out)
{
    const char *text;
    size_t count = json_count(list);
    if (!meta_knows(parser->meta, name))
        return meta_bad(parser, "categories", "%.100s is no column of the array", name);
    if (json_kind(list) != JSON_KIND_LIST || count > META_MOST_CODES)
        return meta_bad(parser, "categories", "%.100s is not a list of values", name);
    out->values = memory_zero(count + 1, sizeof(*out->values));
    if (!out->values)
        return fail_memory(parser->err, count * sizeof(*out->values));
    stk_status status = meta_copy(parser, name, &out->column);
    for (size_t i = 0; !status && i < count; i++) {
        if (!json_text(json_item(list, i), &text))
            status = meta_bad(parser, "categories", "%.100s: item %zu is not a text", name, i);
        else
            status = meta_copy(parser, text, &out->values[i]);
        out->count = (uint32_t)i + 1;
    }
    return status;
}

static stk_status meta_categories(const struct meta_parser *parser)
{
    struct series_meta *meta = parser->meta;
    const struct json *value = meta_member(parser->root, "categories"), *list;
    void *cursor = NULL;
    const char *name;
    stk_status status = STK_OK;
    if (!value)
        return STK_OK;
    if (json_kind(value) != JSON_KIND_OBJECT)
        return meta_bad(parser, "categories", "it is not an object");
    meta->categories = memory_zero(json_count(value) + 1, sizeof(*meta->categories));
    if (!meta->categories)
        return fail_memory(parser->err, json_count(value) * sizeof(*meta->categories));
    while (!status && (list = json_each(value, &cursor, &name)))
        status = meta_category(parser, name, list, &meta->categories[meta->category_count++]);
    return status;
}

static stk_status meta_missing(const struct meta_parser *parser)
{
    struct series_meta *meta = parser->meta;
    const struct json *value = meta_member(parser->root, "missing"), *number;
    const struct json *counts = meta_member(value, "counts");
    void *cursor = NULL;
    const char *name;
    meta->missing = memory_zero(meta->column_count, sizeof(*meta->missing));
    if (!meta->missing)
        return fail_memory(parser->err, meta->column_count * sizeof(*meta->missing));
    stk_status status = meta_text(parser, value, "policy", &meta->missing_policy);
    while (!status && (number = json_each(counts, &cursor, &name))) {
        uint32_t column = meta_column(meta, name);
        if (column == meta->column_count)
            status = meta_bad(parser, "missing", "%.100s is no column of the array", name);
        else if (!json_u64(number, &meta->missing[column]))
            status = meta_bad(parser, "missing", "the count of %.100s is no number", name);
    }
    if (!status)
        status = meta_number(parser, parser->root, "dropped_rows", 0, &meta->dropped_rows);
    if (!status)
        status = meta_number(parser, parser->root, "unused_rows", 0, &meta->unused_rows);
    return status;
}

/* --- type, rows, sequence, time -------------------------------------------------------------- */

static stk_status meta_dtype(const struct meta_parser *parser)
{
    const struct json *value = meta_member(parser->root, "dtype");
    const char *text = "float32";
    if (value && !json_text(value, &text))
        return meta_bad(parser, "dtype", "it is not a text");
    enum stk_dtype dtype = stk_dtype_parse(text);
    if (dtype != STK_F32 && dtype != STK_F16 && dtype != STK_BF16 && dtype != STK_F64)
        return meta_bad(parser, "dtype", "%.60s is none of float32, float16, bfloat16, float64",
                        text);
    parser->meta->dtype = dtype;
    return STK_OK;
}

/* As the file says; else as many as the array holds; else (array_bytes unknown) up to the last
 * entity's end. */
static stk_status meta_rows(const struct meta_parser *parser)
{
    static const char *const keys[] = {"rows", "num_rows", "total_rows", NULL};
    struct series_meta *meta = parser->meta;
    const char *key = keys[0];
    uint64_t row = meta->column_count * stk_dtype_size(meta->dtype), bytes;
    stk_status status = STK_OK;
    if (meta_find(parser->root, keys, &key)) {
        status = meta_number(parser, parser->root, key, 0, &meta->rows);
    } else if (parser->array_bytes != STK_NOWHERE) {
        meta->rows = parser->array_bytes / row;
        if (parser->array_bytes % row)
            status = meta_bad(parser, "rows",
                              "the array has %llu bytes, no whole number of rows of %llu bytes (%u "
                              "columns of %s)",
                              (unsigned long long)parser->array_bytes, (unsigned long long)row,
                              meta->column_count, stk_dtype_name(meta->dtype));
    } else {
        for (uint64_t i = 0; i < meta->entity_count; i++)
            meta->rows = meta->entities[i].end > meta->rows ? meta->entities[i].end : meta->rows;
    }
    if (!status && !checked_mul(meta->rows, row, &bytes))
        status = meta_bad(parser, key, "the array would have more than 2^64 bytes");
    return status;
}

static stk_status meta_sequence(const struct meta_parser *parser)
{
    static const char *const keys[] = {"sequence_length", "seq_len", "window", NULL};
    struct series_sequence *sequence = &parser->meta->sequence;
    const struct json *value = meta_member(parser->root, "sequence");
    const char *key;
    *sequence = (struct series_sequence){.window = 60, .horizon = 1, .stride = 1};
    if (value && json_kind(value) != JSON_KIND_OBJECT)
        return meta_bad(parser, "sequence", "it is not an object");
    stk_status status = STK_OK;
    if (meta_find(parser->root, keys, &key))
        status = meta_number(parser, parser->root, key, 1, &sequence->window);
    if (!status)
        status = meta_number(parser, value, "window", 1, &sequence->window);
    if (!status)
        status = meta_number(parser, value, "horizon", 0, &sequence->horizon);
    if (!status)
        status = meta_number(parser, value, "stride", 1, &sequence->stride);
    if (!status)
        status = meta_number(parser, value, "gap", 0, &sequence->gap);
    return status;
}

static stk_status meta_time(const struct meta_parser *parser)
{
    static const char *const units[] = {"s", "ms", "us", "ns", "d", ""};
    struct series_meta *meta = parser->meta;
    const struct json *value = meta_member(parser->root, "time");
    stk_status status = meta_text(parser, parser->root, "entity", &meta->entity_column);
    if (status || !value)
        return status;
    if (json_kind(value) != JSON_KIND_OBJECT)
        return meta_bad(parser, "time", "it is not an object with column and unit");
    status = meta_text(parser, value, "column", &meta->time_column);
    if (!status)
        status = meta_text(parser, value, "unit", &meta->time_unit);
    if (!status)
        status = meta_text(parser, value, "timezone", &meta->time_zone);
    if (!status && !meta->time_column)
        status = meta_bad(parser, "time", "column is missing");
    if (!status && !meta->time_unit)
        status = meta_copy(parser, "", &meta->time_unit);
    size_t i = 0;
    while (!status && i < 6 && strcmp(units[i], meta->time_unit))
        i++;
    if (!status && i == 6)
        status =
            meta_bad(parser, "time", "unit %.30s is none of s, ms, us, ns, d", meta->time_unit);
    return status;
}

/* --- splits ---------------------------------------------------------------------------------- */

static stk_status meta_splits(const struct meta_parser *parser)
{
    struct series_meta *meta = parser->meta;
    const struct json *value = meta_member(parser->root, "splits");
    const struct json *cuts = meta_member(value, "cuts");
    struct meta_names names = {0};
    const char *by = "";
    if (!value)
        return STK_OK;
    stk_status status = meta_text(parser, value, "text", &meta->split_text);
    if (!status)
        status = meta_names(parser, "splits.names", json_member(value, "names"), SERIES_MAX_SPLITS,
                            &names);
    for (uint32_t i = 0; i < names.count; i++) /* the texts move over */
        meta->split_names[i] = names.texts[i];
    memory_free(names.texts);
    meta->split_count = names.count;
    meta->split_by_time = json_get_text(value, "by", &by) && !strcmp(by, "time");
    if (status)
        return status;
    if (!meta->split_count)
        return meta_bad(parser, "splits.names", "there is none");
    size_t wanted = meta->split_by_time ? meta->split_count - 1 : 0;
    if (json_count(cuts) != wanted)
        return meta_bad(parser, "splits.cuts", "there are %zu, not %zu", json_count(cuts), wanted);
    for (size_t i = 0; i < wanted; i++) {
        if (!json_i64(json_item(cuts, i), &meta->cuts[i]) ||
            (i > 0 && meta->cuts[i] < meta->cuts[i - 1]))
            return meta_bad(parser, "splits.cuts", "they are not rising whole numbers");
    }
    return STK_OK;
}

/* --- scaler and the rest --------------------------------------------------------------------- */

/* Names beside the numbers, where there are any: of other columns, or in another order, they would
 * be applied to the wrong ones. */
static stk_status meta_scaler_columns(const struct meta_parser *parser, const struct json *scaler)
{
    const struct series_meta *meta = parser->meta;
    const struct json *names = meta_member(scaler, "features");
    const char *name;
    for (uint32_t i = 0; names && i < meta->column_count; i++) {
        if (!json_text(json_item(names, i), &name) || strcmp(name, meta->columns[i]))
            return meta_bad(parser, "scaler", "its feature %u is not %.100s, as in the array", i,
                            meta->columns[i]);
    }
    return STK_OK;
}

static stk_status meta_scaler(const struct meta_parser *parser)
{
    struct series_meta *meta = parser->meta;
    const struct json *value = meta_member(parser->root, "scaler");
    const char *scale = "stored";
    if (meta_member(parser->root, "scale") && (!json_get_text(parser->root, "scale", &scale) ||
                                               (strcmp(scale, "stored") && strcmp(scale, "late"))))
        return meta_bad(parser, "scale", "it is neither stored nor late");
    meta->late = !strcmp(scale, "late");
    stk_status status = meta_text(parser, parser->root, "fit_on", &meta->fit_on);
    if (status)
        return status;
    if (json_kind(value) == JSON_KIND_OBJECT) {
        status = scaler_parse(&meta->scaler, value, meta->column_count, parser->err);
        if (status)
            fail_at(parser->err, parser->path, STK_NOWHERE);
        else
            status = meta_scaler_columns(parser, value);
    } else if (meta->late || (parser->is_ours && value)) { /* by hand: maybe the name of a file */
        status = meta_bad(parser, "scaler", "it is not an object with center and scale");
    }
    return status;
}

static int hex_digit(char digit)
{
    static const char digits[] = "0123456789abcdef";
    const char *at = digit ? strchr(digits, digit) : NULL;
    return at ? (int)(at - digits) : -1;
}

static stk_status meta_fingerprint(const struct meta_parser *parser)
{
    const struct json *value = meta_member(parser->root, "fingerprint");
    const struct json *hashes = meta_member(parser->root, "hashes");
    const char *text;
    if (hashes && !json_bool(hashes, &parser->meta->has_hashes))
        return meta_bad(parser, "hashes", "it is neither true nor false");
    if (!value)
        return STK_OK;
    if (!json_text(value, &text) || strlen(text) != 32)
        return meta_bad(parser, "fingerprint", "it is not 32 digits");
    for (size_t i = 0; i < 16; i++) {
        int high = hex_digit(text[2 * i]), low = hex_digit(text[2 * i + 1]);
        if (high < 0 || low < 0)
            return meta_bad(parser, "fingerprint", "it is not hexadecimal");
        parser->meta->fingerprint[i] = (uint8_t)(high * 16 + low);
    }
    return STK_OK;
}

static stk_status meta_version(struct meta_parser *parser)
{
    const struct json *format = meta_member(parser->root, "format");
    const char *text = "";
    uint64_t version = SERIES_VERSION;
    if (!format)
        return STK_OK;
    if (!json_text(format, &text) || strcmp(text, SERIES_FORMAT))
        return meta_bad(parser, "format", "it is not \"" SERIES_FORMAT "\"");
    parser->is_ours = 1;
    if (!json_get_u64(parser->root, "version", &version))
        return meta_bad(parser, "version", "it is not a whole number");
    if (version == SERIES_VERSION)
        return STK_OK;
    fail(parser->err, STK_UNSUPPORTED, "the series is of version %llu; this build reads version %d",
         (unsigned long long)version, SERIES_VERSION);
    fail_at(parser->err, parser->path, STK_NOWHERE);
    fail_remedy(parser->err, "use a newer stoker, or pack the series again");
    return STK_UNSUPPORTED;
}

static stk_status meta_read(struct meta_parser *parser)
{
    static stk_status (*const steps[])(const struct meta_parser *) = {
        meta_columns,        meta_labels,  meta_statics, meta_categories, meta_dtype,
        meta_sequence,       meta_time,    meta_splits,  meta_entities,   meta_rows,
        meta_check_entities, meta_missing, meta_scaler,  meta_fingerprint};
    stk_status status = meta_version(parser);
    for (size_t i = 0; !status && i < sizeof(steps) / sizeof(steps[0]); i++)
        status = steps[i](parser);
    return status;
}

/* The tree: of the whole text, or of all but the list of entities when that was read already. A
 * head that is no JSON was cut in the wrong place: then the whole text says what is wrong. */
static stk_status meta_tree(struct json **out, struct series_list *list,
                            const struct series_text *from, struct stk_error *err)
{
    struct text head = {0};
    stk_status status = series_list_scan(list, from->data, from->len, err);
    *out = NULL;
    if (!status && list->count) {
        text_add(&head, from->data, list->head);
        text_add(&head, "]}", 2);
        status = head.failed ? fail_memory(err, list->head) : STK_OK;
        if (!status && json_parse(out, head.data, head.len, NULL))
            series_list_reset(list);
    }
    if (!status && !*out)
        status = json_parse(out, from->data, from->len, err);
    if (status)
        fail_at(err, from->path, err ? err->offset : STK_NOWHERE);
    text_free(&head);
    return status;
}

stk_status series_parse(struct series_meta *meta, const struct series_text *from,
                        struct stk_error *err)
{
    struct meta_parser parser = {
        .meta = meta, .path = from->path, .array_bytes = from->array_bytes, .err = err};
    struct series_list list = {0};
    struct json *json = NULL;
    memset(meta, 0, sizeof(*meta));
    stk_status status = meta_tree(&json, &list, from, err);
    if (!status) {
        parser.root = json;
        parser.list = list.count ? &list : NULL;
        status = meta_read(&parser);
    }
    if (status)
        series_meta_reset(meta);
    series_list_reset(&list);
    json_free(json);
    return status;
}
