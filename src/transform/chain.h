/* chain.h -- the text form of a list of transforms, and what it is parsed into:
 *     RandomResizedCrop(224, scale=(0.08, 1)) | RandomHorizontalFlip | Normalize(imagenet)
 * Owns: a chain owns its steps and their arguments.   Threads: immutable once parsed.
 * Errors: STK_USAGE with the place in the text, and the nearest name for a misspelt one.
 * Not here: whether the steps fit a field (pipeline/pipeline.h). */
#ifndef TRANSFORM_CHAIN_H
#define TRANSFORM_CHAIN_H

#include "transform/transform.h"

#define CHAIN_MAX_STEPS 32

struct chain_step {
    const struct transform_ops *ops;
    void *args;
};
struct chain {
    struct chain_step steps[CHAIN_MAX_STEPS];
    uint32_t count;
};

struct transform_registry; /* plugins' transforms beside the table; NULL: the table alone */

/* text may be NULL or empty: no step. */
STK_CHECK stk_status chain_parse(struct chain *chain, const char *text,
                                 const struct transform_registry *plugins, struct stk_error *err);
void chain_reset(struct chain *chain); /* zeroed is fine */
/* The canonical text: names, then arguments that differ from their defaults. Returns its length;
 * writes at most cap bytes with the NUL. */
size_t chain_text(const struct chain *chain, char *text, size_t cap);

#endif
