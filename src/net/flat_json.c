#include "net/flat_json.h"

#include <stdint.h>
#include <string.h>

struct place {
    const char *at, *end;
};

static void skip_blanks(struct place *place)
{
    while (place->at < place->end && strchr(" \t\r\n", *place->at) && *place->at)
        place->at++;
}

static int take(struct place *place, char c)
{
    skip_blanks(place);
    if (place->at == place->end || *place->at != c)
        return 0;
    place->at++;
    return 1;
}

/* Where a text goes; NULL: it is skipped. */
struct sink {
    char *out;
    size_t cap, used;
    int full;
};

static void put(struct sink *sink, char c)
{
    if (!sink->out)
        return;
    if (!c || sink->used + 1 >= sink->cap)
        sink->full = 1;
    else
        sink->out[sink->used++] = c;
}

static int read_four(struct place *place, uint32_t *code)
{
    *code = 0;
    if (place->end - place->at < 4)
        return 0;
    for (int i = 0; i < 4; i++) {
        char c = *place->at++;
        int digit = c >= '0' && c <= '9'   ? c - '0'
                    : c >= 'a' && c <= 'f' ? c - 'a' + 10
                    : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                           : -1;
        if (digit < 0)
            return 0;
        *code = *code << 4 | (uint32_t)digit;
    }
    return 1;
}

/* Behind the backslash. Characters beyond \u00ff are in no secret: they count as not fitting. */
static int read_escape(struct place *place, struct sink *sink)
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    if (place->at == place->end)
        return 0;
    char c = *place->at++;
    const char *known = c ? strchr(from, c) : NULL;
    uint32_t code;
    if (known) {
        put(sink, to[known - from]);
        return 1;
    }
    if (c != 'u' || !read_four(place, &code))
        return 0;
    put(sink, code < 0x80 ? (char)code : '\0');
    return 1;
}

static int read_string(struct place *place, struct sink *sink)
{
    if (!take(place, '"'))
        return 0;
    while (place->at < place->end) {
        char c = *place->at++;
        if (c == '"')
            return 1;
        if (c != '\\')
            put(sink, c);
        else if (!read_escape(place, sink))
            return 0;
    }
    return 0;
}

/* A number or a word. */
static int read_word(struct place *place, struct sink *sink)
{
    const char *from = place->at;
    while (place->at < place->end && *place->at && !strchr(" \t\r\n,]}", *place->at))
        put(sink, *place->at++);
    return place->at > from;
}

/* A list or an object, with all that is in it. */
static int skip_nested(struct place *place)
{
    struct sink nowhere = {0};
    int depth = 0;
    while (place->at < place->end) {
        char c = *place->at;
        if (c == '"') {
            if (!read_string(place, &nowhere))
                return 0;
            continue;
        }
        depth += (c == '{' || c == '[') - (c == '}' || c == ']');
        place->at++;
        if (!depth)
            return 1;
    }
    return 0;
}

static int read_value(struct place *place, struct sink *sink)
{
    skip_blanks(place);
    if (place->at == place->end)
        return 0;
    if (*place->at == '"')
        return read_string(place, sink);
    if (*place->at != '{' && *place->at != '[')
        return read_word(place, sink);
    sink->full = 1;
    return skip_nested(place);
}

int flat_json_get(const char *json, size_t length, const char *name, char *out, size_t cap)
{
    struct place place = {json, json + length};
    out[0] = '\0';
    if (!take(&place, '{'))
        return 0;
    do {
        char member[64];
        struct sink key = {.out = member, .cap = sizeof(member)};
        if (!read_string(&place, &key) || !take(&place, ':'))
            return 0;
        member[key.used] = '\0';
        int wanted = !key.full && !strcmp(member, name);
        struct sink value = {.out = wanted ? out : NULL, .cap = cap};
        int good = read_value(&place, &value);
        if (wanted || !good) {
            out[good && !value.full ? value.used : 0] = '\0';
            return good && !value.full;
        }
    } while (take(&place, ','));
    return 0;
}
