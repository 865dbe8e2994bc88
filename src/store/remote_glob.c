#include "store/remote_glob.h"

#include <stdint.h>
#include <string.h>

#define PATTERN_MOST 4096 /* a longer one matches nothing */

/* All places of the pattern that what was read of the key may have led to are kept at once, so that
 * no pattern takes longer than its length times the key's. */
struct glob {
    const char *pattern, *key;
    uint8_t reached[2][PATTERN_MOST + 1];
};

size_t remote_glob_literal(const char *pattern)
{
    return strcspn(pattern, "*?[\\");
}

int remote_glob_hides(const char *name)
{
    return name[0] == '.' || strstr(name, "/.") != NULL;
}

static int begins_part(const struct glob *glob, size_t at)
{
    return at == 0 || glob->key[at - 1] == '/';
}

/* A dot there is matched by a dot alone. */
static int is_hidden(const struct glob *glob, size_t at)
{
    return glob->key[at] == '.' && begins_part(glob, at);
}

/* A set: *after is behind its bracket. -1: the bracket is not closed, so it is a plain one. */
static int set_matches(const char *set, char c, const char **after)
{
    const char *at = set + 1;
    int negated = *at == '!' || *at == '^', found = 0;
    at += negated;
    for (int first = 1; *at && (*at != ']' || first); first = 0, at++) {
        if (at[0] == '\\' && at[1])
            at++;
        unsigned char low = (unsigned char)*at, high = low;
        if (at[1] == '-' && at[2] && at[2] != ']') {
            at += 2;
            if (at[0] == '\\' && at[1])
                at++;
            high = (unsigned char)*at;
        }
        found |= (unsigned char)c >= low && (unsigned char)c <= high;
    }
    if (*at != ']')
        return -1;
    *after = at + 1;
    return found != negated;
}

/* One character of the pattern against one of the key; *place moves on. */
static int one_matches(const struct glob *glob, size_t *place, size_t at)
{
    const char *from = glob->pattern + *place, *after;
    char c = glob->key[at];
    int wild = c != '/' && !is_hidden(glob, at);
    if (*from == '?') {
        ++*place;
        return wild;
    }
    if (*from == '[') {
        int found = set_matches(from, c, &after);
        if (found >= 0) {
            *place = (size_t)(after - glob->pattern);
            return found && wild;
        }
    }
    if (*from == '\\' && from[1])
        from++;
    *place = (size_t)(from + 1 - glob->pattern);
    return *from == c;
}

enum star { STAR_NONE, STAR_PART, STAR_DEEP, STAR_FOLDERS };

/* What stands at a place: *, **, or ** that is a part of its own; *rest is behind it. */
static enum star star_at(const struct glob *glob, size_t place, size_t *rest)
{
    const char *pattern = glob->pattern;
    if (pattern[place] != '*')
        return STAR_NONE;
    *rest = place + strspn(pattern + place, "*");
    if (pattern[place + 1] != '*')
        return STAR_PART;
    if (pattern[*rest] != '/' || (place > 0 && pattern[place - 1] != '/'))
        return STAR_DEEP;
    ++*rest;
    return STAR_FOLDERS;
}

/* A place is reached before the key's byte `at`, and what lies behind a star with it. */
static void reach(struct glob *glob, uint8_t *reached, size_t place, size_t at)
{
    size_t rest;
    for (;;) {
        reached[place] = 1;
        enum star star = star_at(glob, place, &rest);
        if (star == STAR_NONE ||
            (star == STAR_FOLDERS ? !begins_part(glob, at) : is_hidden(glob, at)))
            return;
        place = rest;
    }
}

static void step(struct glob *glob, size_t place, size_t at, uint8_t *next)
{
    size_t rest;
    enum star star = star_at(glob, place, &rest);
    if (star == STAR_NONE) {
        if (one_matches(glob, &place, at))
            reach(glob, next, place, at + 1);
    } else if (!is_hidden(glob, at) && (star != STAR_PART || glob->key[at] != '/')) {
        reach(glob, next, place, at + 1);
    }
}

int remote_glob_matches(const char *pattern, const char *key)
{
    struct glob glob;
    size_t len = strlen(pattern), at = 0;
    if (len > PATTERN_MOST)
        return 0;
    glob.pattern = pattern;
    glob.key = key;
    memset(glob.reached[0], 0, len + 1);
    reach(&glob, glob.reached[0], 0, 0);
    for (; key[at]; at++) {
        uint8_t *now = glob.reached[at % 2], *next = glob.reached[(at + 1) % 2];
        if (now[len] && key[at] == '/' && key[at + 1] && !remote_glob_hides(key + at + 1))
            return 1; /* a folder */
        memset(next, 0, len + 1);
        for (size_t place = 0; place < len; place++)
            if (now[place])
                step(&glob, place, at, next);
    }
    return glob.reached[at % 2][len];
}
