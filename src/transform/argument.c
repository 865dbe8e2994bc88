#include "transform/argument.h"

#include <ctype.h>
#include <math.h>
#include <string.h>
#include <strings.h>

#include "base/fail.h"
#include "base/parse.h"

/* --- reading a value -------------------------------------------------------------------------- */

static const char *skip_blanks(const char *at)
{
    while (*at && isspace((unsigned char)*at))
        at++;
    return at;
}

static size_t word_length(const char *at)
{
    size_t len = 0;
    while (isalnum((unsigned char)at[len]) || (at[len] && strchr("._+-", at[len])))
        len++;
    return len;
}

static stk_status word_take(struct value *value, const char *word, size_t len,
                            struct stk_error *err)
{
    if (len >= sizeof value->word)
        return fail(err, STK_USAGE, "a word of %zu letters: %zu at most", len,
                    sizeof value->word - 1);
    memcpy(value->word, word, len);
    value->word[len] = 0;
    value->kind = VALUE_WORD;
    return STK_OK;
}

static stk_status list_parse(const char **at, struct value *value, struct stk_error *err)
{
    char close = **at == '(' ? ')' : ']';
    value->kind = VALUE_LIST;
    value->list.count = 0;
    for (*at = skip_blanks(*at + 1); **at != close; *at = skip_blanks(*at)) {
        size_t len = word_length(*at);
        if (value->list.count == TRANSFORM_LIST_MAX)
            return fail(err, STK_USAGE, "a list of more than %d numbers", TRANSFORM_LIST_MAX);
        if (!parse_double(*at, len, &value->list.values[value->list.count]))
            return fail(err, STK_USAGE, "a list holds numbers and ends with '%c'", close);
        value->list.count++;
        *at = skip_blanks(*at + len);
        if (**at == ',')
            ++*at;
        else if (**at != close)
            return fail(err, STK_USAGE, "a list holds numbers and ends with '%c'", close);
    }
    ++*at;
    return STK_OK;
}

stk_status value_parse(const char **at, struct value *value, struct stk_error *err)
{
    memset(value, 0, sizeof *value);
    *at = skip_blanks(*at);
    if (**at == '(' || **at == '[')
        return list_parse(at, value, err);
    if (**at == '"' || **at == '\'') {
        const char *end = strchr(*at + 1, **at);
        if (!end)
            return fail(err, STK_USAGE, "a quote that does not end");
        stk_status status = word_take(value, *at + 1, (size_t)(end - *at - 1), err);
        *at = end + 1;
        return status;
    }
    size_t len = word_length(*at);
    if (!len)
        return fail(err, STK_USAGE, "a value is missing");
    const char *word = *at;
    *at += len;
    if (parse_double(word, len, &value->number)) {
        value->kind = VALUE_NUMBER;
        return STK_OK;
    }
    if (len == 4 && !memcmp(word, "None", 4))
        return STK_OK;
    return word_take(value, word, len, err);
}

/* --- storing it ------------------------------------------------------------------------------- */

static stk_status wrong_type(const struct transform_arg *arg, const char *wanted,
                             struct stk_error *err)
{
    return fail(err, STK_USAGE, "%s must be %s", arg->name, wanted);
}

static stk_status check_range(const struct transform_arg *arg, double number, struct stk_error *err)
{
    if ((arg->least || arg->most) && !(number >= arg->least && number <= arg->most))
        return fail(err, STK_USAGE, "%s is %g, but must be within %g and %g", arg->name, number,
                    arg->least, arg->most);
    return STK_OK;
}

static stk_status store_number(const struct transform_arg *arg, const struct value *value, void *to,
                               struct stk_error *err)
{
    int whole = arg->type == ARG_INT;
    if (value->kind != VALUE_NUMBER ||
        (whole && (value->number != rint(value->number) || fabs(value->number) > 9e15)))
        return wrong_type(arg, whole ? "a whole number" : "a number", err);
    stk_status status = check_range(arg, value->number, err);
    if (status)
        return status;
    if (whole)
        *(int64_t *)to = (int64_t)value->number;
    else
        *(double *)to = value->number;
    return STK_OK;
}

static stk_status store_bool(const struct transform_arg *arg, const struct value *value, int *to,
                             struct stk_error *err)
{
    int is_word = value->kind == VALUE_WORD;
    if (is_word && !strcasecmp(value->word, "true"))
        *to = 1;
    else if (is_word && !strcasecmp(value->word, "false"))
        *to = 0;
    else if (value->kind == VALUE_NUMBER && (value->number == 0 || value->number == 1))
        *to = value->number != 0;
    else
        return wrong_type(arg, "True or False", err);
    return STK_OK;
}

/* The number of the word among "a|b|c"; -1: it is none of them. */
static int choice_number(const char *choices, const struct value *value)
{
    int number = 0;
    for (const char *at = choices; value->kind == VALUE_WORD && at; number++) {
        size_t len = strcspn(at, "|");
        if (strlen(value->word) == len && !strncasecmp(at, value->word, len))
            return number;
        at = at[len] ? at + len + 1 : NULL;
    }
    return -1;
}

static stk_status store_choice(const struct transform_arg *arg, const struct value *value, int *to,
                               struct stk_error *err)
{
    int number = choice_number(arg->choices, value);
    if (number < 0)
        return fail(err, STK_USAGE, "%s must be one of %s", arg->name, arg->choices);
    *to = number;
    return STK_OK;
}

static stk_status store_dtype(const struct transform_arg *arg, const struct value *value, int *to,
                              struct stk_error *err)
{
    enum stk_dtype dtype =
        value->kind == VALUE_WORD ? stk_dtype_parse(value->word) : STK_DTYPE_COUNT;
    if (dtype == STK_DTYPE_COUNT)
        return wrong_type(arg, "a dtype, such as float32", err);
    *to = (int)dtype;
    return STK_OK;
}

static stk_status store_list(const struct transform_arg *arg, const struct value *value,
                             struct transform_list *to, struct stk_error *err)
{
    struct transform_list list = value->list;
    int word = choice_number(arg->choices, value);
    if (word >= 0) {
        *to = (struct transform_list){.values = {word + 1}};
        return STK_OK;
    }
    if (value->kind == VALUE_NUMBER)
        list = (struct transform_list){.count = 1, .values = {value->number}};
    else if (value->kind != VALUE_LIST)
        return wrong_type(arg, "a number or a list of numbers", err);
    if (list.count < arg->least_count || list.count > arg->most_count)
        return fail(err, STK_USAGE, "%s has %u numbers, but takes %u to %u", arg->name, list.count,
                    arg->least_count, arg->most_count);
    for (uint32_t i = 0; i < list.count; i++) {
        stk_status status = check_range(arg, list.values[i], err);
        if (status)
            return status;
    }
    *to = list;
    return STK_OK;
}

stk_status argument_store(const struct transform_arg *arg, const struct value *value, void *args,
                          struct stk_error *err)
{
    void *to = (char *)args + arg->offset;
    if (value->kind == VALUE_NONE) {
        if (arg->preset && !strcmp(arg->preset, "None"))
            return STK_OK; /* the struct's zero */
        if (arg->type == ARG_FLOATS && !arg->choices && arg->preset && !strcmp(arg->preset, "0"))
            return argument_preset(arg, args, err); /* torchvision's word for no fill, no jitter */
        return fail(err, STK_USAGE, "%s cannot be None", arg->name);
    }
    switch (arg->type) {
    case ARG_INT:
    case ARG_FLOAT:
        return store_number(arg, value, to, err);
    case ARG_BOOL:
        return store_bool(arg, value, to, err);
    case ARG_CHOICE:
        return store_choice(arg, value, to, err);
    case ARG_DTYPE:
        return store_dtype(arg, value, to, err);
    case ARG_FLOATS:
        return store_list(arg, value, to, err);
    case ARG_TEXT:
        if (value->kind != VALUE_WORD)
            return wrong_type(arg, "a word", err);
        memcpy(to, value->word, sizeof value->word);
        return STK_OK;
    }
    return fail(err, STK_USAGE, "%s is of no known type", arg->name);
}

stk_status argument_preset(const struct transform_arg *arg, void *args, struct stk_error *err)
{
    struct value value;
    const char *at = arg->preset;
    if (!at || !strcmp(at, "None"))
        return STK_OK;
    stk_status status = value_parse(&at, &value, err);
    return status ? status : argument_store(arg, &value, args, err);
}

/* --- back to text ----------------------------------------------------------------------------- */

static size_t argument_size(const struct transform_arg *arg)
{
    switch (arg->type) {
    case ARG_INT:
        return sizeof(int64_t);
    case ARG_FLOAT:
        return sizeof(double);
    case ARG_FLOATS:
        return sizeof(struct transform_list);
    case ARG_TEXT:
        return TRANSFORM_TEXT_MAX;
    default:
        return sizeof(int);
    }
}

int argument_same(const struct transform_arg *arg, const void *a, const void *b)
{
    return !memcmp((const char *)a + arg->offset, (const char *)b + arg->offset,
                   argument_size(arg));
}

static void choice_text(const char *choices, int number, struct text *text)
{
    for (; number > 0; number--)
        choices += strcspn(choices, "|") + 1;
    text_format(text, "'%.*s'", (int)strcspn(choices, "|"), choices);
}

/* A word holds one kind of quotes at most: it was written between the other. */
static void word_text(const char *word, struct text *text)
{
    const char *quote = strchr(word, '\'') ? "\"" : "'";
    text_format(text, "%s%s%s", quote, word, quote);
}

static void list_text(const struct transform_arg *arg, const struct transform_list *list,
                      struct text *text)
{
    if (!list->count && arg->choices && list->values[0] >= 1) {
        choice_text(arg->choices, (int)list->values[0] - 1, text);
        return;
    }
    if (list->count == 1) {
        text_format(text, "%.15g", list->values[0]);
        return;
    }
    for (uint32_t i = 0; i < list->count; i++)
        text_format(text, "%s%.15g", i ? ", " : "(", list->values[i]);
    text_format(text, "%s", list->count ? ")" : "None");
}

void argument_text(const struct transform_arg *arg, const void *args, struct text *text)
{
    const void *from = (const char *)args + arg->offset;
    switch (arg->type) {
    case ARG_INT:
        text_format(text, "%lld", (long long)*(const int64_t *)from);
        break;
    case ARG_FLOAT:
        text_format(text, "%.15g", *(const double *)from);
        break;
    case ARG_BOOL:
        text_format(text, "%s", *(const int *)from ? "True" : "False");
        break;
    case ARG_CHOICE:
        choice_text(arg->choices, *(const int *)from, text);
        break;
    case ARG_DTYPE:
        text_format(text, "'%s'", stk_dtype_name((enum stk_dtype) * (const int *)from));
        break;
    case ARG_FLOATS:
        list_text(arg, from, text);
        break;
    case ARG_TEXT:
        word_text(from, text);
        break;
    }
}
