/* arrow_type.h -- the type of an Arrow column: read from a schema, compared, put into Arrow's
 * words. Owns: nothing; a type is a plain value that outlives its schema.   Threads: any.   Errors:
 * STK_CORRUPT for a schema that breaks the C data interface.   Not here: values (arrow_column.h).
 */
#ifndef PACK_ARROW_TYPE_H
#define PACK_ARROW_TYPE_H

#include "stoker/arrow.h"
#include "stoker/error.h"

enum arrow_kind {
    ARROW_OTHER, /* lists, binary, ...: there are words for it, and no values */
    ARROW_BOOL,
    ARROW_I8,
    ARROW_U8,
    ARROW_I16,
    ARROW_U16,
    ARROW_I32,
    ARROW_U32,
    ARROW_I64,
    ARROW_U64,
    ARROW_F16,
    ARROW_F32,
    ARROW_F64,
    ARROW_DECIMAL,    /* of up to 128 bits; wider ones are ARROW_OTHER */
    ARROW_TEXT,       /* utf8: 32-bit offsets */
    ARROW_LARGE_TEXT, /* 64-bit offsets */
    ARROW_TEXT_VIEW,
    ARROW_TIMESTAMP,
    ARROW_DATE32, /* days */
    ARROW_DATE64  /* milliseconds */
};

#define ARROW_ZONE_MAX 64

/* Extension types are their storage: metadata is not looked at. */
struct arrow_type {
    enum arrow_kind kind;      /* of the values */
    enum arrow_kind index;     /* a dictionary: of its indices; else ARROW_OTHER */
    int is_dictionary;         /* of text; any other dictionary is ARROW_OTHER */
    uint8_t bits;              /* decimals: 32, 64 or 128 */
    int8_t places;             /* decimals: behind the point; may be below 0 */
    char unit[3];              /* times: "s", "ms", "us", "ns", "d"; "" else */
    char zone[ARROW_ZONE_MAX]; /* timestamps; "": none */
    char words[96];            /* "timestamp[ns, tz=UTC]"; cut when longer */
};

/* Whether a schema may be walked: not released, its pointers there. Deep schemas are STK_LIMIT. */
STK_CHECK stk_status arrow_schema_check(const struct ArrowSchema *schema, struct stk_error *err);
/* schema was checked. */
STK_CHECK stk_status arrow_type_read(struct arrow_type *type, const struct ArrowSchema *schema,
                                     struct stk_error *err);

int arrow_type_is_number(const struct arrow_type *type);  /* bool, integers, floats, decimals */
int arrow_type_is_integer(const struct arrow_type *type); /* signed and unsigned; no bool */
int arrow_type_is_text(const struct arrow_type *type);    /* all layouts, dictionaries too */
int arrow_type_is_time(const struct arrow_type *type);    /* timestamps, dates, integers */
int arrow_type_fits_f32(const struct arrow_type *type);   /* every value of it is exact there */
/* Whether two tables agree: text is text however it is laid out, and so are decimals. */
int arrow_type_same(const struct arrow_type *a, const struct arrow_type *b);

#endif
