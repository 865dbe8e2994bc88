#include "pack/arrow_type.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"

/* The copied ABI, as the specification lays it out on 64-bit machines. */
static_assert(sizeof(struct ArrowSchema) == 72, "ArrowSchema");
static_assert(sizeof(struct ArrowArray) == 80, "ArrowArray");
static_assert(sizeof(struct ArrowArrayStream) == 40, "ArrowArrayStream");
static_assert(offsetof(struct ArrowSchema, release) == 56, "ArrowSchema.release");
static_assert(offsetof(struct ArrowArray, release) == 64, "ArrowArray.release");
static_assert(offsetof(struct ArrowArrayStream, release) == 24, "ArrowArrayStream.release");

#define MAX_PLACES 38 /* of a decimal of 128 bits */
#define MAX_DEPTH 64  /* of nested types; Arrow itself sets no limit, and our walk is recursive */

/* Formats that are wholly this text. */
static const struct {
    const char *format, *words;
    enum arrow_kind kind;
} plain[] = {
    {"b", "bool", ARROW_BOOL},
    {"c", "int8", ARROW_I8},
    {"C", "uint8", ARROW_U8},
    {"s", "int16", ARROW_I16},
    {"S", "uint16", ARROW_U16},
    {"i", "int32", ARROW_I32},
    {"I", "uint32", ARROW_U32},
    {"l", "int64", ARROW_I64},
    {"L", "uint64", ARROW_U64},
    {"e", "halffloat", ARROW_F16},
    {"f", "float", ARROW_F32},
    {"g", "double", ARROW_F64},
    {"u", "string", ARROW_TEXT},
    {"U", "large_string", ARROW_LARGE_TEXT},
    {"vu", "string_view", ARROW_TEXT_VIEW},
    {"tdD", "date32[day]", ARROW_DATE32},
    {"tdm", "date64[ms]", ARROW_DATE64},
    {"n", "null", ARROW_OTHER},
    {"z", "binary", ARROW_OTHER},
    {"Z", "large_binary", ARROW_OTHER},
    {"vz", "binary_view", ARROW_OTHER},
    {"tts", "time32[s]", ARROW_OTHER},
    {"ttm", "time32[ms]", ARROW_OTHER},
    {"ttu", "time64[us]", ARROW_OTHER},
    {"ttn", "time64[ns]", ARROW_OTHER},
    {"tDs", "duration[s]", ARROW_OTHER},
    {"tDm", "duration[ms]", ARROW_OTHER},
    {"tDu", "duration[us]", ARROW_OTHER},
    {"tDn", "duration[ns]", ARROW_OTHER},
    {"tiM", "month_interval", ARROW_OTHER},
    {"tiD", "day_time_interval", ARROW_OTHER},
    {"tin", "month_day_nano_interval", ARROW_OTHER},
    {"+r", "run_end_encoded", ARROW_OTHER},
    {"+s", "struct", ARROW_OTHER},
    {"+l", "list", ARROW_OTHER},
    {"+L", "large_list", ARROW_OTHER},
    {"+vl", "list_view", ARROW_OTHER},
    {"+vL", "large_list_view", ARROW_OTHER},
    {"+m", "map", ARROW_OTHER},
};

static stk_status check_at(const struct ArrowSchema *schema, int depth, struct stk_error *err)
{
    if (!schema || !schema->release)
        return fail(err, STK_CORRUPT, "the Arrow schema has been released");
    if (!schema->format)
        return fail(err, STK_CORRUPT, "the Arrow schema has no format");
    if (schema->n_children < 0 || (schema->n_children > 0 && !schema->children))
        return fail(err, STK_CORRUPT, "the Arrow schema counts children that it does not have");
    if (depth == MAX_DEPTH)
        return fail(err, STK_LIMIT, "the Arrow schema is nested more than %d deep", MAX_DEPTH);
    stk_status status = STK_OK;
    for (int64_t i = 0; i < schema->n_children && !status; i++)
        status = check_at(schema->children[i], depth + 1, err);
    if (!status && schema->dictionary)
        status = check_at(schema->dictionary, depth + 1, err);
    return status;
}

stk_status arrow_schema_check(const struct ArrowSchema *schema, struct stk_error *err)
{
    return check_at(schema, 0, err);
}

/* "d:19,10" or "d:19,10,256", the last the number of bits. */
struct decimal {
    unsigned digits, bits;
    int places;
};

static int parse_decimal(const char *format, struct decimal *out)
{
    out->bits = 128;
    return sscanf(format, "d:%9u,%9d,%9u", &out->digits, &out->places, &out->bits) >= 2;
}

static int write_decimal(const char *format, char *out, size_t cap)
{
    struct decimal found;

    if (!parse_decimal(format, &found))
        return 0;
    snprintf(out, cap, "decimal%u(%u, %d)", found.bits, found.digits, found.places);
    return 1;
}

static void read_decimal(struct arrow_type *type, const char *format)
{
    struct decimal found;

    if (!parse_decimal(format, &found) || abs(found.places) > MAX_PLACES ||
        (found.bits != 32 && found.bits != 64 && found.bits != 128))
        return;
    type->kind = ARROW_DECIMAL;
    type->bits = (uint8_t)found.bits;
    type->places = (int8_t)found.places;
}

/* Formats whose parameters follow a colon. */
static void write_parametric(const char *format, char *out, size_t cap)
{
    static const struct {
        const char *start, *words;
    } starts[] = {{"w:", "fixed_size_binary"},
                  {"+w:", "fixed_size_list"},
                  {"+ud:", "dense_union"},
                  {"+us:", "sparse_union"}};

    if (write_decimal(format, out, cap))
        return;
    for (size_t i = 0; i < sizeof(starts) / sizeof(starts[0]); i++) {
        size_t len = strlen(starts[i].start);
        if (!strncmp(format, starts[i].start, len)) {
            snprintf(out, cap, "%s(%.40s)", starts[i].words, format + len);
            return;
        }
    }
    snprintf(out, cap, "format %.40s", format);
}

/* A format without its children and its dictionary. */
static enum arrow_kind read_plain(const char *format, char *words, size_t cap)
{
    for (size_t i = 0; i < sizeof(plain) / sizeof(plain[0]); i++) {
        if (!strcmp(format, plain[i].format)) {
            snprintf(words, cap, "%s", plain[i].words);
            return plain[i].kind;
        }
    }
    write_parametric(format, words, cap);
    return ARROW_OTHER;
}

static stk_status read_timestamp(struct arrow_type *type, const char *format, struct stk_error *err)
{
    static const char letters[] = "smun";
    static const char *const units[] = {"s", "ms", "us", "ns"};
    const char *letter = strchr(letters, format[2]);
    const char *zone = format + 4;

    if (!format[2] || !letter || format[3] != ':')
        return fail(err, STK_CORRUPT, "%.40s is no timestamp of Arrow", format);
    if (strlen(zone) >= sizeof(type->zone))
        return fail(err, STK_CORRUPT, "the name of the time zone is too long: %.40s...", zone);
    type->kind = ARROW_TIMESTAMP;
    strcpy(type->unit, units[letter - letters]);
    strcpy(type->zone, zone);
    snprintf(type->words, sizeof(type->words), zone[0] ? "timestamp[%s, tz=%s]" : "timestamp[%s]",
             type->unit, zone);
    return STK_OK;
}

static void read_dictionary(struct arrow_type *type, const struct ArrowSchema *schema)
{
    char index[48], values[48];

    type->index = read_plain(schema->format, index, sizeof(index));
    type->kind = read_plain(schema->dictionary->format, values, sizeof(values));
    snprintf(type->words, sizeof(type->words), "dictionary<%.36s, %.36s>", values, index);
    int is_index = type->index >= ARROW_I8 && type->index <= ARROW_U64;
    int is_text = type->kind >= ARROW_TEXT && type->kind <= ARROW_TEXT_VIEW;
    type->is_dictionary = is_index && is_text && !schema->dictionary->dictionary;
    if (!type->is_dictionary)
        type->kind = type->index = ARROW_OTHER;
}

/* The one child of a list is worth a word. */
static void add_child(struct arrow_type *type, const struct ArrowSchema *schema)
{
    char child[40];
    size_t len = strlen(type->words);

    if (schema->n_children != 1 || strncmp(schema->format, "+", 1))
        return;
    read_plain(schema->children[0]->format, child, sizeof(child));
    snprintf(type->words + len, sizeof(type->words) - len, "<%s>", child);
}

stk_status arrow_type_read(struct arrow_type *type, const struct ArrowSchema *schema,
                           struct stk_error *err)
{
    memset(type, 0, sizeof(*type));
    if (schema->dictionary) {
        read_dictionary(type, schema);
        return STK_OK;
    }
    if (!strncmp(schema->format, "ts", 2))
        return read_timestamp(type, schema->format, err);
    type->kind = read_plain(schema->format, type->words, sizeof(type->words));
    if (type->kind == ARROW_OTHER)
        read_decimal(type, schema->format);
    if (type->kind == ARROW_DATE32)
        strcpy(type->unit, "d");
    if (type->kind == ARROW_DATE64)
        strcpy(type->unit, "ms");
    add_child(type, schema);
    return STK_OK;
}

int arrow_type_is_number(const struct arrow_type *type)
{
    return type->kind >= ARROW_BOOL && type->kind <= ARROW_DECIMAL;
}

int arrow_type_is_integer(const struct arrow_type *type)
{
    return type->kind >= ARROW_I8 && type->kind <= ARROW_U64;
}

int arrow_type_is_text(const struct arrow_type *type)
{
    return type->kind >= ARROW_TEXT && type->kind <= ARROW_TEXT_VIEW;
}

int arrow_type_is_time(const struct arrow_type *type)
{
    return arrow_type_is_integer(type) || type->kind >= ARROW_TIMESTAMP;
}

int arrow_type_fits_f32(const struct arrow_type *type)
{
    switch (type->kind) {
    case ARROW_I32:
    case ARROW_U32:
    case ARROW_I64:
    case ARROW_U64:
    case ARROW_F64:
    case ARROW_DECIMAL:
        return 0;
    default:
        return 1; /* codes of text stay below 2^24 */
    }
}

int arrow_type_same(const struct arrow_type *a, const struct arrow_type *b)
{
    if (arrow_type_is_text(a) && arrow_type_is_text(b))
        return 1;
    if (a->kind == ARROW_OTHER || b->kind == ARROW_OTHER)
        return a->kind == b->kind && !strcmp(a->words, b->words);
    return a->kind == b->kind && !strcmp(a->unit, b->unit) && !strcmp(a->zone, b->zone);
}
