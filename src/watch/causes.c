#include "watch/causes.h"

#include <assert.h>

#define CAUSE_TEXT(name, id, words) {id, words},
static const struct {
    const char *id, *words;
} causes[CAUSE_COUNT] = {CAUSES(CAUSE_TEXT)};
#undef CAUSE_TEXT

const char *cause_id(enum cause cause)
{
    assert((unsigned)cause < CAUSE_COUNT);
    return causes[cause].id;
}

const char *cause_words(enum cause cause)
{
    assert((unsigned)cause < CAUSE_COUNT);
    return causes[cause].words;
}
