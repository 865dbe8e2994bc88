/* series_parser.h -- what the files of the parser of metadata.json share.
 * Owns: nothing.   Threads: any.   Errors: see series_meta.h.   Not here: the parser's face
 * (series_parse.h). */
#ifndef FORMAT_SERIES_PARSER_H
#define FORMAT_SERIES_PARSER_H

#include "base/json.h"
#include "format/series_list.h"
#include "format/series_parse.h"

struct meta_parser {
    struct series_meta *meta;
    const struct json *root;
    struct series_list *list; /* the entities, already read; NULL: they are in root */
    const char *path;
    uint64_t array_bytes;
    int is_ours; /* written by stoker: everything must be right */
    struct stk_error *err;
};

/* Says what is wrong with a key. Returns STK_CORRUPT. */
stk_status meta_bad(const struct meta_parser *parser, const char *key, const char *format, ...)
    STK_PRINTF(3, 4);
/* NULL: not there, or null. */
const struct json *meta_member(const struct json *object, const char *name);
stk_status meta_copy(const struct meta_parser *parser, const char *text, char **out);
/* Sorts names; one that is there twice, or NULL. */
const char *meta_twice(const char **names, size_t count);

/* The steps of series_entities.c: the splits are known to the first, the rows to the second. */
stk_status meta_entities(const struct meta_parser *parser);
stk_status meta_check_entities(const struct meta_parser *parser);

#endif
