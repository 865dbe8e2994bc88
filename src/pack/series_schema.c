#include "pack/series_schema.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/context.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/text.h"

#define LIST_CHARS 96 /* of a schema in an error */

static const char *child_name(const struct ArrowSchema *from, int64_t child)
{
    const char *name = from->children[child]->name;
    return name ? name : "";
}

static stk_status check_table(const struct ArrowSchema *from, struct stk_error *err)
{
    stk_status status = arrow_schema_check(from, err);
    if (!status && (strcmp(from->format, "+s") || from->dictionary))
        status = fail(err, STK_CORRUPT, "the Arrow stream holds no record batches, but %.40s",
                      from->format);
    return status;
}

/* -1: none. *twice: another one has the same name. */
static int64_t find_child(const struct ArrowSchema *from, const char *name, int *twice)
{
    int64_t found = -1;

    *twice = 0;
    for (int64_t i = 0; i < from->n_children; i++) {
        if (strcmp(child_name(from, i), name))
            continue;
        *twice = found >= 0;
        if (found < 0)
            found = i;
    }
    return found;
}

/* "close: float, volume: int64", cut to fit. */
static void list_children(const struct ArrowSchema *from, char out[LIST_CHARS])
{
    size_t len = 0;
    struct arrow_type type;

    out[0] = '\0';
    for (int64_t i = 0; i < from->n_children; i++) {
        char item[LIST_CHARS];
        if (arrow_type_read(&type, from->children[i], NULL))
            snprintf(type.words, sizeof(type.words), "?");
        int wrote = snprintf(item, sizeof(item), "%s%.40s: %.40s", i ? ", " : "",
                             child_name(from, i), type.words);
        if (len + (size_t)wrote + 5 >= LIST_CHARS) {
            strcpy(out + len, ", ...");
            return;
        }
        memcpy(out + len, item, (size_t)wrote + 1);
        len += (size_t)wrote;
    }
}

static void list_columns(const struct series_schema *schema, char out[LIST_CHARS])
{
    size_t len = 0;

    out[0] = '\0';
    for (uint32_t i = 0; i < schema->count; i++) {
        char item[LIST_CHARS];
        int wrote = snprintf(item, sizeof(item), "%s%.40s: %.40s", i ? ", " : "",
                             schema->columns[i].name, schema->columns[i].first_type.words);
        if (len + (size_t)wrote + 5 >= LIST_CHARS) {
            strcpy(out + len, ", ...");
            return;
        }
        memcpy(out + len, item, (size_t)wrote + 1);
        len += (size_t)wrote;
    }
}

/* --- the first table ------------------------------------------------------------------------- */

/* What is being chosen; known or defaulted names are borrowed. */
struct chooser {
    struct series_schema *schema;
    const struct schema_ask *ask;
    const struct ArrowSchema *from;
    uint32_t cap;
};

static stk_status fail_no_column(const struct chooser *chooser, const char *name, const char *role,
                                 struct stk_error *err)
{
    char list[LIST_CHARS];
    stk_status status;

    list_children(chooser->from, list);
    status =
        fail(err, STK_USAGE, "there is no column %.60s to be %s; there are %s", name, role, list);
    fail_field(err, name);
    return status;
}

/* Appends a column that the table must have. */
static stk_status take_column(struct chooser *chooser, const char *name, const char *role,
                              struct stk_error *err)
{
    struct series_schema *schema = chooser->schema;
    int twice;
    int64_t child = find_child(chooser->from, name, &twice);

    if (child < 0)
        return fail_no_column(chooser, name, role, err);
    if (twice) {
        stk_status status = fail(err, STK_USAGE, "two columns are called %.60s", name);
        fail_remedy(err, "rename one of them");
        return status;
    }
    if (schema->count == chooser->cap)
        return fail(err, STK_LIMIT, "there are more than %d columns", SERIES_MAX_COLUMNS);
    struct schema_column *column = &schema->columns[schema->count];
    stk_status status = arrow_type_read(&column->type, chooser->from->children[child], err);
    if (status)
        return status;
    column->child = column->first_child = child;
    column->first_type = column->type;
    column->category = SCHEMA_NONE;
    column->name = memory_text(name, strlen(name));
    if (!column->name)
        return fail_memory(err, strlen(name) + 1);
    schema->count++;
    return STK_OK;
}

static uint32_t find_column(const struct series_schema *schema, const char *name)
{
    for (uint32_t i = 0; i < schema->count; i++)
        if (!strcmp(schema->columns[i].name, name))
            return i;
    return SCHEMA_NONE;
}

static stk_status fail_type(const struct schema_column *column, const char *role,
                            const char *remedy, struct stk_error *err)
{
    stk_status status = fail(err, STK_USAGE, "column %.60s is %s and cannot be %s", column->name,
                             column->type.words, role);
    fail_field(err, column->name);
    fail_remedy(err, "%s", remedy);
    return status;
}

/* A column of values: numbers, or text that becomes codes. */
static stk_status take_value(struct chooser *chooser, const char *name, const char *role,
                             struct stk_error *err)
{
    struct series_schema *schema = chooser->schema;

    if (find_column(schema, name) != SCHEMA_NONE)
        return fail(err, STK_USAGE, "column %.60s is named twice among features and statics", name);
    stk_status status = take_column(chooser, name, role, err);
    if (status)
        return status;
    struct schema_column *column = &schema->columns[schema->count - 1];
    if (arrow_type_is_text(&column->type))
        column->category = schema->category_count++;
    else if (!arrow_type_is_number(&column->type))
        status = fail_type(column, role,
                           "cast it to a float or an integer before packing, or leave it out of "
                           "--features",
                           err);
    return status;
}

static stk_status take_values(struct chooser *chooser, const char *const *names, uint32_t count,
                              const char *role, struct stk_error *err)
{
    stk_status status = STK_OK;
    for (uint32_t i = 0; i < count && !status; i++)
        status = take_value(chooser, names[i], role, err);
    return status;
}

static int is_in(const char *name, const char *const *names, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (!strcmp(names[i], name))
            return 1;
    return 0;
}

static int is_taken_elsewhere(const struct stk_series_options *options, const char *name)
{
    return (options->entity && !strcmp(options->entity, name)) ||
           (options->time && !strcmp(options->time, name)) ||
           is_in(name, options->statics, options->static_count);
}

static stk_status fail_no_number(const struct ArrowSchema *from, struct stk_error *err)
{
    char list[LIST_CHARS];

    list_children(from, list);
    return fail(err, STK_USAGE, "there is no column of numbers to take as a feature; there %s%s",
                from->n_children ? "are " : "is none at all", list);
}

/* The index of a data frame, as pandas writes it to Parquet and to CSV: it numbers rows. */
static int is_index(const char *name)
{
    return !name[0] || !strncmp(name, "__index_level_", 14);
}

/* All numbers; what else there is, is told once. */
static stk_status take_default(struct chooser *chooser, struct stk_error *err)
{
    const struct stk_series_options *options = chooser->ask->options;
    struct text left = {0};
    stk_status status = STK_OK;

    for (int64_t i = 0; i < chooser->from->n_children && !status; i++) {
        const char *name = child_name(chooser->from, i);
        struct arrow_type type;
        if (is_taken_elsewhere(options, name))
            continue;
        status = arrow_type_read(&type, chooser->from->children[i], err);
        if (!status && arrow_type_is_number(&type) && !is_index(name))
            status = take_value(chooser, name, "a feature", err);
        else if (!status && !is_in(name, options->labels, options->label_count))
            text_format(&left, "%s%s (%s)", left.len ? ", " : "", name, type.words);
    }
    if (!status && !chooser->schema->count)
        status = fail_no_number(chooser->from, err);
    if (!status && left.len)
        context_notice(chooser->ask->context, "left out of the features: %s", left.data);
    text_free(&left);
    return status;
}

static stk_status take_labels(struct chooser *chooser, struct stk_error *err)
{
    const struct stk_series_options *options = chooser->ask->options;
    struct series_schema *schema = chooser->schema;
    uint32_t count = options->label_count ? options->label_count : 1;
    stk_status status = STK_OK;

    schema->labels = memory_zero(count, sizeof(*schema->labels));
    if (!schema->labels)
        return fail_memory(err, count * sizeof(*schema->labels));
    schema->label_count = count;
    for (uint32_t i = 0; i < options->label_count && !status; i++) {
        uint32_t at = find_column(schema, options->labels[i]);
        if (at == SCHEMA_NONE)
            status = take_value(chooser, options->labels[i], "a label", err);
        schema->labels[i] = at == SCHEMA_NONE ? schema->count - 1 : at;
        for (uint32_t k = 0; k < i && !status; k++)
            if (schema->labels[k] == schema->labels[i])
                status = fail(err, STK_USAGE, "label %.60s is named twice", options->labels[i]);
    }
    return status;
}

static stk_status take_chosen(struct chooser *chooser, struct stk_error *err)
{
    const struct stk_series_options *options = chooser->ask->options;
    struct series_schema *schema = chooser->schema;
    stk_status status =
        options->feature_count
            ? take_values(chooser, options->features, options->feature_count, "a feature", err)
            : take_default(chooser, err);

    schema->feature_count = schema->count;
    if (!status)
        status = take_labels(chooser, err);
    schema->array_count = schema->count;
    if (!status)
        status = take_values(chooser, options->statics, options->static_count, "a static", err);
    schema->static_count = schema->count - schema->array_count;
    return status;
}

static int is_known_category(const struct series_meta *known, const char *name)
{
    for (uint32_t i = 0; i < known->category_count; i++)
        if (!strcmp(known->categories[i].column, name))
            return 1;
    return 0;
}

/* The columns of the series that is added to, with numbers and categories where it has them. */
static stk_status take_known(struct chooser *chooser, struct stk_error *err)
{
    const struct series_meta *known = chooser->ask->known;
    struct series_schema *schema = chooser->schema;
    stk_status status = take_values(chooser, (const char *const *)known->columns,
                                    known->column_count, "a feature", err);

    schema->feature_count = known->feature_count;
    schema->array_count = schema->count;
    if (!status)
        status = take_values(chooser, (const char *const *)known->statics, known->static_count,
                             "a static", err);
    schema->static_count = schema->count - schema->array_count;
    for (uint32_t i = 0; i < schema->count && !status; i++) {
        int is_text = schema->columns[i].category != SCHEMA_NONE;
        if (is_text != is_known_category(known, schema->columns[i].name))
            status =
                fail_type(&schema->columns[i], is_text ? "added to numbers" : "added to categories",
                          "cast it to what it was when the series was packed", err);
    }
    if (status)
        return status;
    schema->labels = memory_zero(known->label_count, sizeof(*schema->labels));
    if (!schema->labels)
        return fail_memory(err, known->label_count * sizeof(*schema->labels));
    memcpy(schema->labels, known->labels, known->label_count * sizeof(*schema->labels));
    schema->label_count = known->label_count;
    return STK_OK;
}

static stk_status take_entity(struct chooser *chooser, const char *name, struct stk_error *err)
{
    struct series_schema *schema = chooser->schema;

    if (!name)
        return STK_OK;
    stk_status status = take_column(chooser, name, "the entity", err);
    if (status)
        return status;
    schema->entity = schema->count - 1;
    const struct schema_column *column = &schema->columns[schema->entity];
    if (!arrow_type_is_text(&column->type) && !arrow_type_is_integer(&column->type))
        return fail_type(column, "the entity", "cast it to a string or an integer before packing",
                         err);
    return STK_OK;
}

static stk_status take_time(struct chooser *chooser, const char *name, struct stk_error *err)
{
    const struct series_meta *known = chooser->ask->known;
    struct series_schema *schema = chooser->schema;

    if (!name)
        return STK_OK;
    stk_status status = take_column(chooser, name, "the time", err);
    if (status)
        return status;
    schema->time = schema->count - 1;
    const struct schema_column *column = &schema->columns[schema->time];
    if (!arrow_type_is_time(&column->type))
        return fail_type(column, "the time",
                         "cast it to a timestamp, a date or an integer before packing", err);
    if (known && (strcmp(known->time_unit ? known->time_unit : "", column->type.unit) ||
                  strcmp(known->time_zone ? known->time_zone : "", column->type.zone))) {
        status = fail(err, STK_MISMATCH,
                      "column %.60s is %s, and the times of the series are in unit '%s', zone '%s'",
                      name, column->type.words, known->time_unit ? known->time_unit : "",
                      known->time_zone ? known->time_zone : "");
        fail_remedy(err, "cast it to the series' unit and zone before adding to it");
    }
    return status;
}

/* --- options that must not contradict a series that is there ------------------------------------
 */

struct names {
    const char *const *list;
    uint32_t count;
};

static stk_status check_names(const char *what, struct names asked, struct names there,
                              struct stk_error *err)
{
    int is_same = asked.count == there.count;

    for (uint32_t i = 0; i < there.count && is_same; i++)
        is_same = !strcmp(asked.list[i], there.list[i]);
    if (is_same || !asked.count)
        return STK_OK;
    stk_status status = fail(err, STK_MISMATCH, "the series has other %s than asked for", what);
    fail_remedy(err, "leave out the option: a series that is added to keeps its columns");
    return status;
}

static stk_status check_name(const char *what, const char *asked, const char *there,
                             struct stk_error *err)
{
    if (!asked || (there && !strcmp(asked, there)))
        return STK_OK;
    return fail(err, STK_MISMATCH, "the series has %s%.60s as its %s, not %.60s",
                there ? "" : "no column", there ? there : "", what, asked);
}

static stk_status check_known(const struct schema_ask *ask, struct stk_error *err)
{
    const struct stk_series_options *options = ask->options;
    const struct series_meta *known = ask->known;
    const char **labels = memory_zero(known->label_count + 1, sizeof(*labels));
    const struct {
        const char *what;
        struct names asked, there;
    } lists[] = {
        {"features",
         {options->features, options->feature_count},
         {(const char *const *)known->columns, known->feature_count}},
        {"labels", {options->labels, options->label_count}, {labels, known->label_count}},
        {"statics",
         {options->statics, options->static_count},
         {(const char *const *)known->statics, known->static_count}},
    };

    if (!labels)
        return fail_memory(err, (known->label_count + 1) * sizeof(*labels));
    for (uint32_t i = 0; i < known->label_count; i++)
        labels[i] = known->columns[known->labels[i]];
    stk_status status = STK_OK;
    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]) && !status; i++)
        status = check_names(lists[i].what, lists[i].asked, lists[i].there, err);
    if (!status)
        status = check_name("entity", options->entity, known->entity_column, err);
    if (!status)
        status = check_name("time", options->time, known->time_column, err);
    memory_free(labels);
    return status;
}

static stk_status choose(struct chooser *chooser, struct stk_error *err)
{
    const struct schema_ask *ask = chooser->ask;
    const struct series_meta *known = ask->known;
    stk_status status = known ? check_known(ask, err) : STK_OK;

    if (!status)
        status = known ? take_known(chooser, err) : take_chosen(chooser, err);
    if (!status && chooser->schema->array_count > SERIES_MAX_COLUMNS)
        status = fail(err, STK_LIMIT, "there are more than %d columns", SERIES_MAX_COLUMNS);
    if (!status)
        status = take_entity(chooser, known ? known->entity_column : ask->options->entity, err);
    if (!status)
        status = take_time(chooser, known ? known->time_column : ask->options->time, err);
    return status;
}

stk_status series_schema_first(struct series_schema *schema, const struct schema_ask *ask,
                               const struct ArrowSchema *from, struct stk_error *err)
{
    struct chooser chooser = {schema, ask, from, SERIES_MAX_COLUMNS + 2};
    stk_status status = check_table(from, err);

    memset(schema, 0, sizeof(*schema));
    schema->entity = schema->time = SCHEMA_NONE;
    schema->table = memory_text(ask->table, strlen(ask->table));
    schema->columns = memory_zero(chooser.cap, sizeof(*schema->columns));
    if (!schema->table || !schema->columns)
        return fail_memory(err, chooser.cap * sizeof(*schema->columns));
    if (!status)
        status = choose(&chooser, err);
    if (status)
        fail_at(err, ask->table, STK_NOWHERE);
    return status;
}

/* --- later tables ---------------------------------------------------------------------------- */

static const char *file_part(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash && slash[1] ? slash + 1 : path;
}

/* The words end with both schemas, each cut to fit. */
static stk_status fail_differs(const struct series_schema *schema, const struct ArrowSchema *from,
                               const char *difference, struct stk_error *err)
{
    char there[LIST_CHARS], here[LIST_CHARS];

    list_columns(schema, there);
    list_children(from, here);
    stk_status status = fail(err, STK_SHAPE, "%.100s (%.40s: %s; here: %s)", difference,
                             file_part(schema->table), there, here);
    fail_remedy(err,
                "all tables need the columns of the first, %.100s: rename or cast them, or "
                "choose others with --features",
                schema->table);
    return status;
}

/* A column of the same type at the same place that nobody asked for is perhaps the one. */
static const char *guess_renamed(const struct series_schema *schema, const struct ArrowSchema *from,
                                 const struct schema_column *column)
{
    struct arrow_type type;

    if (column->first_child >= from->n_children)
        return NULL;
    if (arrow_type_read(&type, from->children[column->first_child], NULL))
        return NULL;
    const char *name = child_name(from, column->first_child);
    if (!arrow_type_same(&type, &column->first_type) || find_column(schema, name) != SCHEMA_NONE)
        return NULL;
    return name;
}

static stk_status find_again(const struct series_schema *schema, struct schema_column *column,
                             const struct ArrowSchema *from, struct stk_error *err)
{
    char difference[200];
    int twice = 0;
    int64_t child = column->child; /* most tables are alike: look where it was before */

    if (child >= from->n_children || strcmp(child_name(from, child), column->name))
        child = find_child(from, column->name, &twice);
    if (child < 0) {
        const char *renamed = guess_renamed(schema, from, column);
        snprintf(difference, sizeof(difference),
                 renamed ? "column %.40s is missing; perhaps %.40s is it"
                         : "column %.40s is missing",
                 column->name, renamed);
        return fail_differs(schema, from, difference, err);
    }
    if (twice) {
        snprintf(difference, sizeof(difference), "two columns are called %.40s", column->name);
        return fail_differs(schema, from, difference, err);
    }
    stk_status status = arrow_type_read(&column->type, from->children[child], err);
    if (!status && !arrow_type_same(&column->type, &column->first_type)) {
        snprintf(difference, sizeof(difference), "column %.30s is %.30s and was %.30s",
                 column->name, column->type.words, column->first_type.words);
        return fail_differs(schema, from, difference, err);
    }
    column->child = child;
    return status;
}

stk_status series_schema_next(struct series_schema *schema, const char *table,
                              const struct ArrowSchema *from, struct stk_error *err)
{
    stk_status status = check_table(from, err);

    for (uint32_t i = 0; i < schema->count && !status; i++) {
        status = find_again(schema, &schema->columns[i], from, err);
        if (status)
            fail_field(err, schema->columns[i].name);
    }
    if (status)
        fail_at(err, table, STK_NOWHERE);
    return status;
}

enum stk_dtype series_schema_dtype(const struct series_schema *schema)
{
    for (uint32_t i = 0; i < schema->array_count; i++)
        if (!arrow_type_fits_f32(&schema->columns[i].first_type))
            return STK_F64;
    return STK_F32;
}

void series_schema_reset(struct series_schema *schema)
{
    for (uint32_t i = 0; i < schema->count; i++)
        memory_free(schema->columns[i].name);
    memory_free(schema->columns);
    memory_free(schema->labels);
    memory_free(schema->table);
    memset(schema, 0, sizeof(*schema));
}
