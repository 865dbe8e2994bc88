#include "option_value.h"

#include <stdio.h>
#include <string.h>

int option_value_number(const char *text, uint64_t max, uint64_t *out)
{
    uint64_t value = 0;

    if (!*text)
        return 0;
    for (; *text; text++) {
        if (*text < '0' || *text > '9' || __builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, (uint64_t)(*text - '0'), &value))
            return 0;
    }
    if (value > max)
        return 0;
    *out = value;
    return 1;
}

/* The unit's factor; 0 when there is no such unit. Powers of 1024, but of 1000 where a B follows
 * alone. */
static double unit_factor(const char *unit)
{
    static const char letters[] = "kmgtp";
    char first = (char)(*unit | 0x20);
    const char *found = *unit ? strchr(letters, first) : NULL;
    double factor = 1;

    if (!*unit || !strcmp(unit, "B") || !strcmp(unit, "b"))
        return 1;
    if (!found)
        return 0;
    int decimal = unit[1] == 'B';
    if (unit[1] && strcmp(unit + 1, "i") && strcmp(unit + 1, "iB") && strcmp(unit + 1, "B"))
        return 0;
    for (const char *letter = letters; letter <= found; letter++)
        factor *= decimal ? 1000 : 1024;
    return factor;
}

int option_value_size(const char *text, uint64_t *out)
{
    size_t digits = strspn(text, "0123456789");
    size_t fraction = text[digits] == '.' ? strspn(text + digits + 1, "0123456789") : 0;
    double whole = 0, scale = 1, factor;

    if (digits == 0 || digits > 18 || (text[digits] == '.' && fraction == 0))
        return 0;
    for (size_t i = 0; i < digits; i++)
        whole = whole * 10 + (text[i] - '0');
    for (size_t i = 0; i < fraction; i++) {
        scale /= 10;
        whole += scale * (text[digits + 1 + i] - '0');
    }
    const char *unit = text + digits + (text[digits] == '.' ? fraction + 1 : 0);
    unit += strspn(unit, " ");
    factor = unit_factor(unit);
    if (factor == 0 || whole * factor >= 9e18)
        return 0;
    *out = (uint64_t)(whole * factor);
    return 1;
}

static int read_choice(const char *choices, const char *text, int *out)
{
    size_t len = strlen(text);
    int number = 0;

    for (const char *at = choices; len && at; number++) {
        size_t word = strcspn(at, "|");
        if (word == len && !memcmp(at, text, len)) {
            *out = number;
            return 1;
        }
        at = at[word] ? at + word + 1 : NULL;
    }
    return 0;
}

static int read_shape(char *text, struct option_shape *out)
{
    struct option_shape shape = {0};
    uint64_t size;

    for (char *word = text; word;) {
        char *comma = strchr(word, ',');
        if (comma)
            *comma = 0;
        int good = shape.rank < STK_MAX_RANK && option_value_number(word, INT64_MAX, &size);
        if (comma)
            *comma = ','; /* a message may still want to show it whole */
        if (!good)
            return 0;
        shape.shape[shape.rank++] = (int64_t)size;
        word = comma ? comma + 1 : NULL;
    }
    *out = shape;
    return 1;
}

static int read_list(char *text, struct option_list *out)
{
    size_t len = strlen(text);
    uint32_t count = 1;

    for (size_t i = 0; i < len; i++)
        count += text[i] == ',';
    if (len == 0 || text[0] == ',' || text[len - 1] == ',' || strstr(text, ",,") ||
        count > OPTION_LIST_CAP)
        return 0;
    out->count = 0;
    for (char *word = text; word;) {
        char *comma = strchr(word, ',');
        if (comma)
            *comma = 0;
        out->words[out->count++] = word;
        word = comma ? comma + 1 : NULL;
    }
    return 1;
}

static int add_word(const char *text, struct option_list *out)
{
    if (!*text || out->count == OPTION_LIST_CAP)
        return 0;
    out->words[out->count++] = text;
    return 1;
}

static int read_u32(const char *text, uint32_t *out)
{
    uint64_t value;

    if (!option_value_number(text, UINT32_MAX, &value))
        return 0;
    *out = (uint32_t)value;
    return 1;
}

const char *option_value_read(const struct option *option, char *text, void *to)
{
    switch (option->kind) {
    case OPTION_FLAG:
        *(int *)to = 1;
        return NULL;
    case OPTION_TEXT:
        *(const char **)to = text;
        return *text ? NULL : "something";
    case OPTION_U32:
        return read_u32(text, to) ? NULL : "a number below 2^32";
    case OPTION_U64:
        return option_value_number(text, UINT64_MAX, to) ? NULL : "a number";
    case OPTION_SIZE:
        return option_value_size(text, to) ? NULL : "a size such as 512MiB";
    case OPTION_CHOICE:
        return read_choice(option->argument, text, to) ? NULL : option->argument;
    case OPTION_DTYPE:
        *(enum stk_dtype *)to = stk_dtype_parse(text);
        return *(enum stk_dtype *)to == STK_DTYPE_COUNT ? "a type such as f16, f32 or u8" : NULL;
    case OPTION_SHAPE:
        return read_shape(text, to) ? NULL : "a shape such as 16,112,112,3 of at most 8 numbers";
    case OPTION_LIST:
        return read_list(text, to) ? NULL : "names separated by commas";
    case OPTION_EACH:
        return add_word(text, to) ? NULL : "something, and not so often";
    }
    return "something";
}
