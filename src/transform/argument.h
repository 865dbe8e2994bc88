/* argument.h -- one argument of a transform: from text into its struct, and back.
 * Owns: nothing.   Threads: any.   Errors: STK_USAGE, words without the place in the text.
 * Not here: steps and their names (chain.h). */
#ifndef TRANSFORM_ARGUMENT_H
#define TRANSFORM_ARGUMENT_H

#include "base/text.h"
#include "transform/transform.h"

enum value_kind { VALUE_NONE, VALUE_NUMBER, VALUE_WORD, VALUE_LIST };

/* A value as it is written: None, 1.5, bilinear or 'bilinear', (1, 2). */
struct value {
    enum value_kind kind;
    double number;
    char word[TRANSFORM_TEXT_MAX];
    struct transform_list list;
};

/* Reads a value at *at and moves behind it. */
STK_CHECK stk_status value_parse(const char **at, struct value *value, struct stk_error *err);
/* Puts it into the arguments' struct; checks type and range. */
STK_CHECK stk_status argument_store(const struct transform_arg *arg, const struct value *value,
                                    void *args, struct stk_error *err);
/* The argument's default. */
STK_CHECK stk_status argument_preset(const struct transform_arg *arg, void *args,
                                     struct stk_error *err);
/* Whether two structs hold the same value of it. */
int argument_same(const struct transform_arg *arg, const void *a, const void *b);
/* As it would be written. */
void argument_text(const struct transform_arg *arg, const void *args, struct text *text);

#endif
