/* The header of .ply files: elements with their number and their properties; points are the element
 * `vertex`. What stands before it must have a length that can be known; what follows is let be. */
#include <string.h>

#include "base/checked.h"
#include "base/fail.h"
#include "codec/points_text.h"

int ply_sniff(const struct stk_bytes *bytes)
{
    return bytes->len >= 4 && !memcmp(bytes->data, "ply", 3) &&
           (bytes->data[3] == '\n' || bytes->data[3] == '\r');
}

static const struct {
    const char *name;
    enum points_type type;
    uint32_t size;
} types[] = {{"char", POINTS_I8, 1},    {"int8", POINTS_I8, 1},     {"uchar", POINTS_U8, 1},
             {"uint8", POINTS_U8, 1},   {"short", POINTS_I16, 2},   {"int16", POINTS_I16, 2},
             {"ushort", POINTS_U16, 2}, {"uint16", POINTS_U16, 2},  {"int", POINTS_I32, 4},
             {"int32", POINTS_I32, 4},  {"uint", POINTS_U32, 4},    {"uint32", POINTS_U32, 4},
             {"float", POINTS_F32, 4},  {"float32", POINTS_F32, 4}, {"double", POINTS_F64, 8},
             {"float64", POINTS_F64, 8}};
#define TYPE_COUNT (sizeof types / sizeof types[0])

/* Where the walk over the header is. */
struct ply_walk {
    struct points_layout *layout;
    enum { BEFORE, VERTEX, AFTER } place; /* which elements */
    int has_format, has_element;
    uint64_t count;  /* of the element at hand */
    uint64_t record; /* its bytes so far */
    uint64_t before; /* bytes of the elements before vertex */
    uint64_t vertex; /* bytes of one vertex */
    struct stk_error *err;
};

static stk_status bad(const struct ply_walk *walk, const struct text_span *line, const char *words)
{
    int len = (int)(line->end - line->at < 60 ? line->end - line->at : 60);
    return fail(walk->err, STK_CORRUPT, "ply header: %s \"%.*s\"", words, len, line->at);
}

static stk_status take_format(struct ply_walk *walk, struct text_span line)
{
    struct text_span word, whole = line;
    if (walk->has_format || !span_word(&line, &word))
        return bad(walk, &whole, "a wrong or second format");
    walk->has_format = 1;
    walk->layout->coding = POINTS_BINARY;
    if (span_is(&word, "ascii"))
        walk->layout->coding = POINTS_TEXT;
    else if (span_is(&word, "binary_big_endian"))
        walk->layout->swap = POINTS_LITTLE;
    else if (span_is(&word, "binary_little_endian"))
        walk->layout->swap = !POINTS_LITTLE;
    else
        return bad(walk, &whole, "an unknown format");
    return STK_OK;
}

/* The element that ends here is added to what lies before the points. */
static stk_status end_element(struct ply_walk *walk)
{
    uint64_t bytes;
    if (walk->place == VERTEX)
        walk->place = AFTER;
    if (walk->place == AFTER || !walk->has_element)
        return STK_OK;
    if (!checked_mul(walk->count, walk->record, &bytes) ||
        !checked_add(walk->before, bytes, &walk->before) ||
        !checked_add(walk->layout->skip, walk->count, &walk->layout->skip))
        return fail(walk->err, STK_CORRUPT, "ply header: an element of %llu rows is no file",
                    (unsigned long long)walk->count);
    return STK_OK;
}

static stk_status take_element(struct ply_walk *walk, struct text_span line)
{
    struct text_span name, number, whole = line;
    stk_status status = end_element(walk);
    if (status)
        return status;
    if (!span_word(&line, &name) || !span_word(&line, &number) ||
        !span_number(&number, &walk->count))
        return bad(walk, &whole, "an element without name or number");
    walk->has_element = 1;
    walk->record = 0;
    if (!span_is(&name, "vertex"))
        return STK_OK;
    if (walk->place != BEFORE)
        return bad(walk, &whole, "a second element");
    walk->place = VERTEX;
    walk->layout->count = walk->count;
    return STK_OK;
}

static stk_status refuse_list(const struct ply_walk *walk)
{
    fail(walk->err, STK_UNSUPPORTED, "ply: a list property %s",
         walk->place == VERTEX ? "of the element vertex" : "of an element before vertex");
    fail_remedy(walk->err, "write the cloud again with plain properties of vertices");
    return STK_UNSUPPORTED;
}

static stk_status take_property(struct ply_walk *walk, struct text_span line)
{
    struct text_span type, name, whole = line;
    struct points_layout *layout = walk->layout;
    size_t row = 0;
    if (!walk->has_element || !span_word(&line, &type) || !span_word(&line, &name))
        return bad(walk, &whole, "a property without element, type or name");
    if (walk->place == AFTER)
        return STK_OK;
    if (span_is(&type, "list"))
        return refuse_list(walk);
    while (row < TYPE_COUNT && !span_is(&type, types[row].name))
        row++;
    if (row == TYPE_COUNT)
        return bad(walk, &whole, "a property of unknown type");
    uint64_t offset = layout->coding == POINTS_TEXT ? layout->words : walk->record;
    walk->record += types[row].size;
    if (walk->place != VERTEX)
        return STK_OK;
    layout->words++;
    walk->vertex = walk->record;
    struct points_column column = {.offset = offset, .type = types[row].type};
    return points_layout_add(layout, name.at, (size_t)(name.end - name.at), &column, walk->err);
}

static stk_status take_line(struct ply_walk *walk, struct text_span line, int *is_end)
{
    struct text_span word, whole = line;
    *is_end = 0;
    if (!span_word(&line, &word) || span_is(&word, "comment") || span_is(&word, "obj_info"))
        return STK_OK;
    if (span_is(&word, "format"))
        return take_format(walk, line);
    if (!walk->has_format)
        return bad(walk, &whole, "no format stands before");
    if (span_is(&word, "element"))
        return take_element(walk, line);
    if (span_is(&word, "property"))
        return take_property(walk, line);
    *is_end = span_is(&word, "end_header");
    return *is_end ? end_element(walk) : bad(walk, &whole, "an unknown line");
}

/* Binary: the points lie behind the elements before them. Text: lines are passed over. */
static stk_status set_place(struct ply_walk *walk, uint64_t header_end, uint64_t total)
{
    struct points_layout *layout = walk->layout;
    if (walk->place == BEFORE || layout->columns == 0)
        return fail(walk->err, STK_CORRUPT,
                    "ply header: there is no element vertex, or it has no property");
    layout->data = header_end;
    if (layout->coding == POINTS_TEXT)
        return layout->skip <= total
                   ? STK_OK
                   : fail(walk->err, STK_CORRUPT,
                          "the ply header says %llu lines before the points, %llu bytes are there",
                          (unsigned long long)layout->skip, (unsigned long long)total);
    if (!checked_inside(header_end, walk->before, total))
        return fail(walk->err, STK_CORRUPT,
                    "the ply header says %llu bytes before the points, "
                    "%llu are there",
                    (unsigned long long)walk->before, (unsigned long long)(total - header_end));
    layout->data += walk->before;
    for (uint32_t i = 0; i < layout->columns; i++)
        layout->column[i].stride = (uint32_t)walk->vertex;
    return points_layout_fits(layout, walk->vertex, total, walk->err);
}

stk_status ply_layout(struct points_layout *layout, const struct stk_bytes *bytes,
                      struct stk_error *err)
{
    struct ply_walk walk = {.layout = layout, .err = err};
    struct text_span line;
    uint64_t offset = 0;
    int is_end = 0;
    layout->format = "ply";
    stk_status status = header_line(bytes, &offset, &line, err); /* "ply" */
    while (!status && !is_end) {
        status = header_line(bytes, &offset, &line, err);
        if (!status)
            status = take_line(&walk, line, &is_end);
    }
    if (!status && layout->count > POINTS_COUNT_CAP)
        status = fail(err, STK_CORRUPT, "the ply header says %llu points, %zu bytes are there",
                      (unsigned long long)layout->count, bytes->len);
    if (!status)
        status = set_place(&walk, offset, bytes->len);
    if (!status)
        points_layout_order(layout);
    return status;
}
