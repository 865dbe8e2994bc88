/* The header of .pcd files, version 0.7 and those before it that are written alike: lines of a
 * keyword and its values, up to DATA. FIELDS, SIZE, TYPE and COUNT have a value a field. */
#include <string.h>

#include "base/checked.h"
#include "base/fail.h"
#include "codec/lzf.h"
#include "codec/points_text.h"

enum pcd_key {
    PCD_VERSION,
    PCD_FIELDS,
    PCD_SIZE,
    PCD_TYPE,
    PCD_COUNT,
    PCD_WIDTH,
    PCD_HEIGHT,
    PCD_VIEWPOINT,
    PCD_POINTS,
    PCD_DATA,
    PCD_KEYS
};

static const char *const key_names[PCD_KEYS] = {"VERSION", "FIELDS", "SIZE",      "TYPE",   "COUNT",
                                                "WIDTH",   "HEIGHT", "VIEWPOINT", "POINTS", "DATA"};

struct pcd_header {
    struct text_span values[PCD_KEYS]; /* at NULL: the line is missing */
    uint64_t data;                     /* offset behind the line of DATA */
};

int pcd_sniff(const struct stk_bytes *bytes)
{
    static const char *const openings[] = {"# .PCD", "#.PCD", "VERSION", "FIELDS"};
    for (size_t i = 0; i < sizeof openings / sizeof openings[0]; i++) {
        size_t len = strlen(openings[i]);
        if (bytes->len >= len && !memcmp(bytes->data, openings[i], len))
            return 1;
    }
    return 0;
}

/* ---- lines --------------------------------------------------------------------------------- */

static stk_status header_read(struct pcd_header *header, const struct stk_bytes *bytes,
                              struct stk_error *err)
{
    struct text_span line, word;
    while (!header->values[PCD_DATA].at) {
        stk_status status = header_line(bytes, &header->data, &line, err);
        if (status)
            return status;
        if (!span_word(&line, &word) || *word.at == '#')
            continue;
        uint32_t key = 0;
        while (key < PCD_KEYS && !span_is(&word, key_names[key]))
            key++;
        if (key == PCD_KEYS || header->values[key].at) {
            fail(err, STK_CORRUPT, "the pcd header has %s line \"%.*s\"",
                 key == PCD_KEYS ? "an unknown" : "a second",
                 (int)(word.end - word.at < 40 ? word.end - word.at : 40), word.at);
            fail_at(err, NULL, (uint64_t)(word.at - (const char *)bytes->data));
            return STK_CORRUPT;
        }
        header->values[key] = line;
    }
    return STK_OK;
}

static stk_status check_version(const struct pcd_header *header, struct stk_error *err)
{
    static const char *const known[] = {".7", "0.7", ".6", "0.6", ".5", "0.5"};
    struct text_span values = header->values[PCD_VERSION], word;
    if (!values.at)
        return STK_OK;
    int is_there = span_word(&values, &word);
    for (size_t i = 0; is_there && i < sizeof known / sizeof known[0]; i++)
        if (span_is(&word, known[i]))
            return STK_OK;
    return fail(err, STK_UNSUPPORTED, "pcd version %.*s: 0.7 is read",
                is_there && word.end - word.at < 20 ? (int)(word.end - word.at) : 0, word.at);
}

/* A line's one number; `preset` where the line is missing. 0: it is none. */
static int header_number(const struct pcd_header *header, enum pcd_key key, uint64_t preset,
                         uint64_t *out)
{
    struct text_span values = header->values[key], word;
    *out = preset;
    return !values.at || (span_word(&values, &word) && span_number(&word, out));
}

/* POINTS must be WIDTH times HEIGHT; either side may be missing. */
static stk_status count_points(const struct pcd_header *header, uint64_t *count,
                               struct stk_error *err)
{
    uint64_t width, height, grid, points;
    int has_points = header->values[PCD_POINTS].at != NULL;
    int has_grid = header->values[PCD_WIDTH].at != NULL;
    if (!header_number(header, PCD_WIDTH, 0, &width) ||
        !header_number(header, PCD_HEIGHT, 1, &height) ||
        !header_number(header, PCD_POINTS, 0, &points))
        return fail(err, STK_CORRUPT, "pcd header: WIDTH, HEIGHT or POINTS is no number");
    if (!has_points && !has_grid)
        return fail(err, STK_CORRUPT,
                    "pcd header: neither POINTS nor WIDTH says how many there are");
    if (!checked_mul(width, height, &grid) || (has_points && has_grid && grid != points))
        return fail(err, STK_CORRUPT, "pcd header: WIDTH %llu times HEIGHT %llu is not POINTS %llu",
                    (unsigned long long)width, (unsigned long long)height,
                    (unsigned long long)points);
    *count = has_points ? points : grid;
    return STK_OK;
}

/* ---- fields -------------------------------------------------------------------------------- */

struct pcd_field {
    struct text_span name;
    uint64_t size, count;
    enum points_type type;
    int is_padding;
};

/* The type of TYPE and SIZE; 0: there is none such. */
static int field_type(char letter, uint64_t size, enum points_type *out)
{
    static const struct {
        char letter;
        uint64_t size;
        enum points_type type;
    } types[] = {{'F', 4, POINTS_F32}, {'F', 8, POINTS_F64}, {'I', 1, POINTS_I8},
                 {'I', 2, POINTS_I16}, {'I', 4, POINTS_I32}, {'I', 8, POINTS_I64},
                 {'U', 1, POINTS_U8},  {'U', 2, POINTS_U16}, {'U', 4, POINTS_U32},
                 {'U', 8, POINTS_U64}};
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        if (types[i].letter == letter && types[i].size == size) {
            *out = types[i].type;
            return 1;
        }
    }
    return 0;
}

/* The next field of the four lines, which are moved on. */
static stk_status field_take(struct text_span lines[PCD_KEYS], struct pcd_field *field,
                             struct stk_error *err)
{
    struct text_span size, type, count;
    int len = (int)(field->name.end - field->name.at < 40 ? field->name.end - field->name.at : 40);
    field->count = 1;
    field->is_padding = span_is(&field->name, "_");
    if (!span_word(&lines[PCD_SIZE], &size) || !span_word(&lines[PCD_TYPE], &type) ||
        (lines[PCD_COUNT].at && !span_word(&lines[PCD_COUNT], &count)))
        return fail(err, STK_CORRUPT,
                    "pcd header: SIZE, TYPE or COUNT has fewer values than FIELDS");
    if (!span_number(&size, &field->size) ||
        (lines[PCD_COUNT].at && !span_number(&count, &field->count)))
        return fail(err, STK_CORRUPT, "pcd header: SIZE or COUNT of field %.*s is no number", len,
                    field->name.at);
    if (type.end - type.at != 1 || !field_type(*type.at, field->size, &field->type))
        return fail(err, STK_CORRUPT, "pcd header: field %.*s has TYPE %.*s of SIZE %llu", len,
                    field->name.at, type.end - type.at < 20 ? (int)(type.end - type.at) : 20,
                    type.at, (unsigned long long)field->size);
    if (field->count == 0 || field->count > POINTS_COLUMNS)
        return fail(err, STK_LIMIT, "pcd header: field %.*s has COUNT %llu, %d is the most", len,
                    field->name.at, (unsigned long long)field->count, POINTS_COLUMNS);
    return STK_OK;
}

/* Its columns: strides are known once all fields are, and set then. */
static stk_status field_add(struct points_layout *layout, const struct pcd_field *field,
                            uint64_t offset, struct stk_error *err)
{
    size_t name_len = field->count == 1 ? (size_t)(field->name.end - field->name.at) : 0;
    for (uint64_t i = 0; i < field->count; i++) {
        struct points_column column = {.type = field->type};
        if (layout->coding == POINTS_TEXT)
            column.offset = layout->words + i;
        else if (layout->coding == POINTS_BINARY)
            column.offset = offset + i * field->size;
        else /* planes: all points' values of one field, then those of the next */
            column = (struct points_column){.offset = layout->count * offset + i * field->size,
                                            .stride = (uint32_t)(field->count * field->size),
                                            .type = field->type};
        stk_status status = field->is_padding
                                ? STK_OK
                                : points_layout_add(layout, field->name.at, name_len, &column, err);
        if (status)
            return status;
    }
    layout->words += (uint32_t)field->count;
    return STK_OK;
}

/* *record: bytes of one point. */
static stk_status add_fields(struct points_layout *layout, const struct pcd_header *header,
                             uint64_t *record, struct stk_error *err)
{
    struct text_span lines[PCD_KEYS];
    struct pcd_field field;
    memcpy(lines, header->values, sizeof lines);
    if (!lines[PCD_FIELDS].at || !lines[PCD_SIZE].at || !lines[PCD_TYPE].at)
        return fail(err, STK_CORRUPT, "pcd header: FIELDS, SIZE or TYPE is missing");
    while (span_word(&lines[PCD_FIELDS], &field.name)) {
        stk_status status = field_take(lines, &field, err);
        if (!status)
            status = field_add(layout, &field, *record, err);
        if (status)
            return status;
        *record += field.size * field.count;
        if (layout->words > POINTS_WORDS)
            return fail(err, STK_LIMIT, "pcd header: a point has more than %d values",
                        POINTS_WORDS);
    }
    for (uint32_t i = 0; layout->coding == POINTS_BINARY && i < layout->columns; i++)
        layout->column[i].stride = (uint32_t)*record;
    return layout->columns ? STK_OK : fail(err, STK_CORRUPT, "pcd header: FIELDS names no field");
}

/* ---- data ---------------------------------------------------------------------------------- */

static stk_status set_coding(struct points_layout *layout, const struct pcd_header *header,
                             struct stk_error *err)
{
    struct text_span values = header->values[PCD_DATA], word;
    if (span_word(&values, &word)) {
        if (span_is(&word, "ascii"))
            layout->coding = POINTS_TEXT;
        else if (span_is(&word, "binary"))
            layout->coding = POINTS_BINARY;
        else if (span_is(&word, "binary_compressed"))
            layout->coding = POINTS_PACKED;
        else
            return fail(err, STK_UNSUPPORTED,
                        "pcd data is ascii, binary or binary_compressed, not %.*s",
                        word.end - word.at < 40 ? (int)(word.end - word.at) : 40, word.at);
        return STK_OK;
    }
    return fail(err, STK_CORRUPT, "pcd header: DATA does not say how points are written");
}

static uint32_t load_u32(const uint8_t *at)
{
    return at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

/* Two lengths stand before packed bytes. They are held against the header, and against what LZF
 * can make of so few bytes, before memory is asked for. */
static stk_status fits_packed(struct points_layout *layout, uint64_t record,
                              const struct stk_bytes *bytes, struct stk_error *err)
{
    uint64_t wanted;
    if (!checked_inside(layout->data, 8, bytes->len))
        return fail(err, STK_TRUNCATED, "the bytes end before the lengths of the packed points");
    layout->packed = load_u32(bytes->data + layout->data);
    layout->unpacked = load_u32(bytes->data + layout->data + 4);
    layout->data += 8;
    if (!checked_inside(layout->data, layout->packed, bytes->len))
        return fail(err, STK_TRUNCATED, "%llu bytes of packed points are said, %llu are there",
                    (unsigned long long)layout->packed,
                    (unsigned long long)(bytes->len - layout->data));
    if (!checked_mul(layout->count, record, &wanted) || wanted != layout->unpacked)
        return fail(err, STK_CORRUPT,
                    "the pcd header says %llu points of %llu bytes, but they unpack to %llu bytes",
                    (unsigned long long)layout->count, (unsigned long long)record,
                    (unsigned long long)layout->unpacked);
    if (layout->unpacked > layout->packed * LZF_RATIO)
        return fail(err, STK_CORRUPT, "%llu packed bytes cannot hold %llu",
                    (unsigned long long)layout->packed, (unsigned long long)layout->unpacked);
    return STK_OK;
}

/* More whole points than the header says: one of both lies. */
static stk_status fits_binary(const struct points_layout *layout, uint64_t record,
                              const struct stk_bytes *bytes, struct stk_error *err)
{
    stk_status status = points_layout_fits(layout, record, bytes->len, err);
    if (!status && bytes->len - layout->data - layout->count * record >= record)
        status = fail(err, STK_CORRUPT,
                      "the pcd header says %llu points of %llu bytes, but %llu bytes are there",
                      (unsigned long long)layout->count, (unsigned long long)record,
                      (unsigned long long)(bytes->len - layout->data));
    return status;
}

stk_status pcd_layout(struct points_layout *layout, const struct stk_bytes *bytes,
                      struct stk_error *err)
{
    struct pcd_header header = {0};
    uint64_t record = 0;
    layout->format = "pcd";
    layout->swap = !POINTS_LITTLE;
    layout->exact = 1;
    stk_status status = header_read(&header, bytes, err);
    if (!status)
        status = check_version(&header, err);
    if (!status)
        status = set_coding(layout, &header, err);
    if (!status)
        status = count_points(&header, &layout->count, err);
    if (!status && layout->count > POINTS_COUNT_CAP)
        status = fail(err, STK_CORRUPT, "the pcd header says %llu points, %zu bytes are there",
                      (unsigned long long)layout->count, bytes->len);
    if (!status)
        status = add_fields(layout, &header, &record, err);
    if (status)
        return status;
    layout->data = header.data;
    points_layout_order(layout);
    if (layout->coding == POINTS_BINARY)
        return fits_binary(layout, record, bytes, err);
    return layout->coding == POINTS_PACKED ? fits_packed(layout, record, bytes, err) : STK_OK;
}
