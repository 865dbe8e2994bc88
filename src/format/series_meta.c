#include "format/series_meta.h"

#include <string.h>

#include "base/fail.h"
#include "base/json.h"
#include "base/memory.h"
#include "format/series_parse.h"
#include "store/scan.h"

#define META_MOST_BYTES (UINT64_C(1) << 30) /* of the file */

static void texts_free(char **texts, uint32_t count)
{
    for (uint32_t i = 0; texts && i < count; i++)
        memory_free(texts[i]);
    memory_free(texts);
}

void series_meta_reset(struct series_meta *meta)
{
    texts_free(meta->columns, meta->column_count);
    texts_free(meta->statics, meta->static_count);
    for (uint32_t i = 0; meta->categories && i < meta->category_count; i++) {
        memory_free(meta->categories[i].column);
        texts_free(meta->categories[i].values, meta->categories[i].count);
    }
    for (uint64_t i = 0; meta->entities && i < meta->entity_count; i++)
        memory_free(meta->entities[i].name);
    for (uint32_t i = 0; i < SERIES_MAX_SPLITS; i++)
        memory_free(meta->split_names[i]);
    scaler_reset(&meta->scaler);
    void *const blocks[] = {meta->labels,         meta->categories, meta->entity_column,
                            meta->time_column,    meta->time_unit,  meta->time_zone,
                            meta->entities,       meta->split_text, meta->ranges,
                            meta->missing_policy, meta->missing,    meta->fit_on};
    for (size_t i = 0; i < sizeof(blocks) / sizeof(blocks[0]); i++)
        memory_free(blocks[i]);
    memset(meta, 0, sizeof(*meta));
}

/* --- writing --------------------------------------------------------------------------------- */

static void add_text(struct text *text, const char *value)
{
    if (value)
        json_add_string(text, value, strlen(value));
    else
        text_add(text, "null", 4);
}

static void add_member(struct text *text, const char *name, const char *value)
{
    text_format(text, "  \"%s\": ", name);
    add_text(text, value);
    text_add(text, ",\n", 2);
}

static void add_texts(struct text *text, char *const *values, uint64_t count)
{
    text_add(text, "[", 1);
    for (uint64_t i = 0; i < count; i++) {
        if (i > 0)
            text_add(text, ", ", 2);
        add_text(text, values[i]);
    }
    text_add(text, "]", 1);
}

static void add_list(struct text *text, const char *name, char *const *values, uint64_t count)
{
    text_format(text, "  \"%s\": ", name);
    add_texts(text, values, count);
    text_add(text, ",\n", 2);
}

static void write_columns(const struct series_meta *meta, struct text *text)
{
    add_list(text, "features", meta->columns, meta->feature_count);
    add_list(text, "columns", meta->columns, meta->column_count);
    text_format(text, "  \"labels\": [");
    for (uint32_t i = 0; i < meta->label_count; i++) {
        text_format(text, "%s", i > 0 ? ", " : "");
        add_text(text, meta->columns[meta->labels[i]]);
    }
    text_format(text, "],\n");
    add_list(text, "statics", meta->statics, meta->static_count);
    text_format(text, "  \"categories\": {");
    for (uint32_t i = 0; i < meta->category_count; i++) {
        text_format(text, "%s", i > 0 ? ", " : "");
        add_text(text, meta->categories[i].column);
        text_format(text, ": ");
        add_texts(text, meta->categories[i].values, meta->categories[i].count);
    }
    text_format(text, "},\n");
}

static void write_order(const struct series_meta *meta, struct text *text)
{
    const struct series_sequence *sequence = &meta->sequence;
    text_format(text, "  \"dtype\": \"%s\",\n  \"rows\": %llu,\n", stk_dtype_name(meta->dtype),
                (unsigned long long)meta->rows);
    add_member(text, "entity", meta->entity_column);
    text_format(text, "  \"time\": ");
    if (meta->time_column) {
        text_format(text, "{\"column\": ");
        add_text(text, meta->time_column);
        text_format(text, ", \"unit\": ");
        add_text(text, meta->time_unit);
        text_format(text, ", \"timezone\": ");
        add_text(text, meta->time_zone);
        text_format(text, "},\n");
    } else {
        text_format(text, "null,\n");
    }
    text_format(text,
                "  \"sequence\": {\"window\": %llu, \"horizon\": %llu, \"stride\": %llu, "
                "\"gap\": %llu},\n",
                (unsigned long long)sequence->window, (unsigned long long)sequence->horizon,
                (unsigned long long)sequence->stride, (unsigned long long)sequence->gap);
}

static void write_splits(const struct series_meta *meta, struct text *text)
{
    int by_entity = meta->split_text && !strncmp(meta->split_text, "entity:", 7);
    if (!meta->split_count) {
        text_format(text, "  \"splits\": null,\n");
        return;
    }
    text_format(text, "  \"splits\": {\"text\": ");
    add_text(text, meta->split_text);
    text_format(text, ", \"names\": ");
    add_texts(text, meta->split_names, meta->split_count);
    text_format(text, ", \"by\": \"%s\", \"cuts\": [",
                meta->split_by_time ? "time"
                : by_entity         ? "entity"
                                    : "rows");
    for (uint32_t i = 0; meta->split_by_time && i + 1 < meta->split_count; i++)
        text_format(text, "%s%lld", i > 0 ? ", " : "", (long long)meta->cuts[i]);
    text_format(text, "]},\n");
}

static void write_scaler(const struct series_meta *meta, struct text *text)
{
    text_format(text, "  \"scale\": \"%s\",\n  \"scaler\": ", meta->late ? "late" : "stored");
    if (meta->scaler.count)
        scaler_json(&meta->scaler, (const char *const *)meta->columns, text);
    else
        text_format(text, "null");
    text_format(text, ",\n");
    add_member(text, "fit_on", meta->fit_on);
    text_format(text, "  \"missing\": {\"policy\": ");
    add_text(text, meta->missing_policy);
    text_format(text, ", \"counts\": {");
    for (uint32_t i = 0, written = 0; meta->missing && i < meta->column_count; i++) {
        if (meta->missing[i] == 0)
            continue;
        text_format(text, "%s", written++ ? ", " : "");
        add_text(text, meta->columns[i]);
        text_format(text, ": %llu", (unsigned long long)meta->missing[i]);
    }
    text_format(text, "}},\n  \"dropped_rows\": %llu,\n  \"unused_rows\": %llu,\n",
                (unsigned long long)meta->dropped_rows, (unsigned long long)meta->unused_rows);
    text_format(text, "  \"hashes\": %s,\n  \"fingerprint\": \"",
                meta->has_hashes ? "true" : "false");
    for (size_t i = 0; i < sizeof(meta->fingerprint); i++)
        text_format(text, "%02x", meta->fingerprint[i]);
    text_format(text, "\",\n");
}

/* One a line: they are what a person looks for. */
static void write_entities(const struct series_meta *meta, struct text *text)
{
    text_format(text, "  \"entities\": [");
    for (uint64_t i = 0; i < meta->entity_count; i++) {
        const struct series_entity *entity = &meta->entities[i];
        text_format(text, "%s\n    {\"name\": ", i > 0 ? "," : "");
        add_text(text, entity->name);
        text_format(text, ", \"start\": %llu, \"end\": %llu", (unsigned long long)entity->start,
                    (unsigned long long)entity->end);
        for (uint32_t s = 0; s < meta->split_count; s++) {
            const struct series_range *range = &meta->ranges[i * meta->split_count + s];
            text_format(text, "%s[%llu, %llu]", s > 0 ? ", " : ", \"splits\": [",
                        (unsigned long long)range->start, (unsigned long long)range->end);
        }
        text_format(text, meta->split_count ? "]}" : "}");
    }
    text_format(text, "\n  ]\n");
}

void series_meta_write(const struct series_meta *meta, struct text *text)
{
    text_format(text, "{\n  \"format\": \"%s\",\n  \"version\": %d,\n", SERIES_FORMAT,
                SERIES_VERSION);
    write_columns(meta, text);
    write_order(meta, text);
    write_splits(meta, text);
    write_scaler(meta, text);
    write_entities(meta, text);
    text_format(text, "}\n");
}

void series_journal_write(uint64_t rows, struct text *text)
{
    text_format(text, "{\"format\": \"stoker series append\", \"rows\": %llu}\n",
                (unsigned long long)rows);
}

/* --- reading --------------------------------------------------------------------------------- */

stk_status series_meta_parse(struct series_meta *meta, const char *text, size_t len,
                             const char *path, struct stk_error *err)
{
    struct series_text from = {text, len, path, STK_NOWHERE};
    return series_parse(meta, &from, err);
}

/* A whole file of the folder; the caller frees *out. */
static stk_status meta_slurp(const char *folder, const char *name, char **out, size_t *len,
                             struct stk_error *err)
{
    struct scan *scan = NULL;
    *out = NULL;
    *len = 0;
    stk_status status = scan_open(&scan, folder, name, err);
    uint64_t size = status ? 0 : scan_size(scan);
    if (!status && size > META_MOST_BYTES) {
        status =
            fail(err, STK_LIMIT, "it has %llu bytes, more than 1 GiB", (unsigned long long)size);
        fail_at(err, name, STK_NOWHERE);
    }
    if (!status) {
        *out = memory_alloc(size);
        *len = size;
        status = *out ? scan_read_all(scan, 0, *out, size, err) : fail_memory(err, size);
    }
    if (status) {
        memory_free(*out);
        *out = NULL;
    }
    scan_close(scan);
    return status;
}

stk_status series_meta_load(struct series_meta *meta, const char *folder, struct stk_error *err)
{
    struct text path = {0};
    char *text = NULL;
    size_t len;
    struct scan *array = NULL;
    memset(meta, 0, sizeof(*meta));
    text_format(&path, "%s/%s", folder, SERIES_METADATA);
    stk_status status =
        path.failed ? fail_memory(err, 0) : meta_slurp(folder, SERIES_METADATA, &text, &len, err);
    if (!status) {
        struct series_text from = {text, len, path.data, STK_NOWHERE};
        if (!scan_open(&array, folder, SERIES_ARRAY, NULL)) /* its lack is told by who reads it */
            from.array_bytes = scan_size(array);
        status = series_parse(meta, &from, err);
    }
    scan_close(array);
    memory_free(text);
    text_free(&path);
    return status;
}

stk_status series_journal_load(uint64_t *rows, const char *folder, struct stk_error *err)
{
    struct json *json = NULL;
    char *text = NULL;
    size_t len;
    *rows = 0;
    stk_status status = meta_slurp(folder, SERIES_JOURNAL, &text, &len, err);
    if (!status)
        status = json_parse(&json, text, len, err);
    if (!status && (!json_get_u64(json, "rows", rows) || *rows > SERIES_MOST))
        status = fail(err, STK_CORRUPT, "rows: it is not a whole number");
    if (status && status != STK_NOT_FOUND)
        fail_at(err, SERIES_JOURNAL, STK_NOWHERE);
    json_free(json);
    memory_free(text);
    return status;
}
