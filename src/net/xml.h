/* xml.h -- reads the small XML that clouds answer with, one element at a time.
 * Owns: nothing; text points into a buffer of the caller.   Threads: one at a time for one reader.
 * Errors: XML_BAD, and why. No entities but the five and numbers, no DTD, depth at most 32.
 * Blanks between elements are left out; blanks that are all that an element holds are told.
 * Not here: what elements mean. */
#ifndef NET_XML_H
#define NET_XML_H

#include <stddef.h>

#include "base/text.h"

#define XML_MAX_DEPTH 32

enum xml_event { XML_OPEN, XML_CLOSE, XML_TEXT, XML_END, XML_BAD };

struct xml {
    const char *at, *end;
    int depth; /* elements that are open; 1 is the root's. CLOSE: still with the one that closes */
    char name[64];   /* OPEN, CLOSE: without its prefix (a:b is b) */
    char text[4096]; /* TEXT: decoded; longer ones are XML_BAD */
    size_t text_length;
    int is_encoded; /* OPEN: the tag says Encoded="true", as Azure does of names that no XML can
                       hold */
    int closes;     /* <a/>: its CLOSE is still to be told */
    int opened;     /* the last event was OPEN */
    int leaves;     /* the last event was CLOSE: depth falls by one before the next */
    struct xml_open {
        const char *name; /* with its prefix; points into data */
        size_t length;
    } open[XML_MAX_DEPTH];
    const char *why; /* BAD */
};

void xml_begin(struct xml *xml, const char *data, size_t length);
enum xml_event xml_next(struct xml *xml);
/* Adds text to be written into an element, escaped. */
void xml_add(struct text *to, const char *from, size_t length);

#endif
