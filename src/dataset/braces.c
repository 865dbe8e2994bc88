#include "dataset/braces.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "base/memory.h"
#include "base/parse.h"

struct braces {
    stk_status (*each)(void *user, const char *name, struct stk_error *err);
    void *user;
    uint64_t count;
    struct stk_error *err;
};

struct group {
    const char *open, *close; /* the braces */
    int commas;               /* a list; else a range */
    int64_t first, last, step;
    int width;   /* digits to pad to; 0: none */
    int letters; /* first and last are letters */
};

static stk_status braces_walk(struct braces *braces, const char *text, size_t from);

/* The brace that ends the one at open, or NULL; *commas: whether it is a list. */
static const char *group_close(const char *open, int *commas)
{
    int depth = 0;
    *commas = 0;
    for (const char *at = open; *at; at++) {
        if (*at == '{')
            depth++;
        else if (*at == ',' && depth == 1)
            *commas = 1;
        else if (*at == '}' && --depth == 0)
            return at;
    }
    return NULL;
}

static int is_padded(const char *text, size_t len)
{
    if (len && *text == '-')
        text++, len--;
    return len > 1 && *text == '0';
}

/* a..e, A..E: both small or both large. */
static int take_letters(struct group *group, const char *first, const char *last)
{
    int is_small = *first >= 'a' && *first <= 'z' && *last >= 'a' && *last <= 'z';
    int is_large = *first >= 'A' && *first <= 'Z' && *last >= 'A' && *last <= 'Z';
    group->first = *first;
    group->last = *last;
    group->letters = is_small || is_large;
    return group->letters;
}

/* FIRST..LAST or FIRST..LAST..STEP between the braces. The step's sign says nothing: the ends do.
 */
static int group_range(struct group *group)
{
    const char *text = group->open + 1;
    const char *dots = strstr(text, "..");
    if (!dots || dots >= group->close)
        return 0;
    const char *second = dots + 2;
    const char *more = strstr(second, "..");
    const char *end = more && more < group->close ? more : group->close;
    size_t first_len = (size_t)(dots - text), last_len = (size_t)(end - second);
    group->step = 1;
    if ((!parse_i64(text, first_len, &group->first) ||
         !parse_i64(second, last_len, &group->last)) &&
        (first_len != 1 || last_len != 1 || !take_letters(group, text, second)))
        return 0;
    if (end != group->close &&
        (!parse_i64(end + 2, (size_t)(group->close - end - 2), &group->step) || !group->step ||
         group->step == INT64_MIN))
        return 0;
    if (group->step < 0)
        group->step = -group->step;
    size_t width = first_len > last_len ? first_len : last_len;
    int padded = is_padded(text, first_len) || is_padded(second, last_len);
    group->width = padded && width < 20 ? (int)width : 0;
    return 1;
}

/* The first group at or after text that means something. */
static int group_find(const char *text, struct group *group)
{
    for (const char *open = strchr(text, '{'); open; open = strchr(open + 1, '{')) {
        *group = (struct group){.open = open};
        group->close = group_close(open, &group->commas);
        if (group->close && (group->commas || group_range(group)))
            return 1;
    }
    return 0;
}

int braces_any(const char *text)
{
    struct group group;
    return group_find(text, &group);
}

/* Goes on with the group replaced by one of its choices, which may hold groups of its own. */
static stk_status braces_choose(struct braces *braces, const char *text, const struct group *group,
                                const char *choice, size_t choice_len)
{
    size_t before = (size_t)(group->open - text), after = strlen(group->close + 1);
    char *name = memory_alloc(before + choice_len + after + 1);
    if (!name)
        return fail_memory(braces->err, before + choice_len + after + 1);
    memcpy(name, text, before);
    memcpy(name + before, choice, choice_len);
    memcpy(name + before + choice_len, group->close + 1, after + 1);
    stk_status status = braces_walk(braces, name, before);
    memory_free(name);
    return status;
}

static stk_status braces_list(struct braces *braces, const char *text, const struct group *group)
{
    stk_status status = STK_OK;
    const char *begin = group->open + 1;
    int depth = 0;
    for (const char *at = begin; at <= group->close && !status; at++) {
        int ends = depth == 0 && (*at == ',' || at == group->close);
        if (ends) {
            status = braces_choose(braces, text, group, begin, (size_t)(at - begin));
            begin = at + 1;
        } else {
            depth += *at == '{' ? 1 : *at == '}' ? -1 : 0;
        }
    }
    return status;
}

static stk_status braces_range(struct braces *braces, const char *text, const struct group *group)
{
    int up = group->last >= group->first;
    uint64_t span = up ? (uint64_t)group->last - (uint64_t)group->first
                       : (uint64_t)group->first - (uint64_t)group->last;
    uint64_t steps = span / (uint64_t)group->step;
    if (steps >= BRACES_MAX)
        return fail(braces->err, STK_LIMIT, "%s means more than %d names", text, BRACES_MAX);
    for (uint64_t i = 0; i <= steps; i++) {
        uint64_t moved = i * (uint64_t)group->step;
        int64_t number = (int64_t)((uint64_t)group->first + (up ? moved : 0 - moved));
        char digits[32];
        int len = group->letters
                      ? snprintf(digits, sizeof digits, "%c", (char)number)
                      : snprintf(digits, sizeof digits, "%0*" PRId64, group->width, number);
        stk_status status = braces_choose(braces, text, group, digits, (size_t)len);
        if (status)
            return status;
    }
    return STK_OK;
}

static stk_status braces_walk(struct braces *braces, const char *text, size_t from)
{
    struct group group;
    if (group_find(text + from, &group))
        return group.commas ? braces_list(braces, text, &group)
                            : braces_range(braces, text, &group);
    if (++braces->count > BRACES_MAX)
        return fail(braces->err, STK_LIMIT, "a brace list means more than %d names", BRACES_MAX);
    return braces->each(braces->user, text, braces->err);
}

stk_status braces_expand(const char *text,
                         stk_status (*each)(void *user, const char *name, struct stk_error *err),
                         void *user, struct stk_error *err)
{
    struct braces braces = {.each = each, .user = user, .err = err};
    return braces_walk(&braces, text, 0);
}
