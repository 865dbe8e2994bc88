#include "net/ini.h"

#include <string.h>
#include <strings.h>

struct span {
    const char *data;
    size_t length;
};

/* Where a walk through the file stands. */
struct walk {
    const char *at, *end;
    char section[160];
    struct span parent; /* the key without a value that indented lines belong to */
    struct span key, value;
    int is_nested;
};

void ini_free(struct ini *ini)
{
    secret_text_free(&ini->text);
}

stk_status ini_read(struct ini *out, const char *path, struct stk_error *err)
{
    return secret_file_read(&out->text, path, err);
}

static int is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

static struct span trim(struct span span)
{
    while (span.length && is_blank(span.data[0])) {
        span.data++;
        span.length--;
    }
    while (span.length && is_blank(span.data[span.length - 1]))
        span.length--;
    return span;
}

static struct span next_line(struct walk *walk)
{
    const char *end = memchr(walk->at, '\n', (size_t)(walk->end - walk->at));
    struct span line = {walk->at, (size_t)((end ? end : walk->end) - walk->at)};
    walk->at = end ? end + 1 : walk->end;
    return line;
}

/* [profile "a b"]: quotes go, blanks become single. One that is too long matches nothing. */
static void enter_section(struct walk *walk, struct span line)
{
    const char *end = memchr(line.data, ']', line.length);
    size_t used = 0;
    const char *at = line.data + 1;
    const char *last = end ? end : at;
    for (; at < last && used < sizeof(walk->section) - 1; at++) {
        if (*at == '"' || *at == '\'')
            continue;
        if (is_blank(*at) && (!used || walk->section[used - 1] == ' '))
            continue;
        walk->section[used++] = is_blank(*at) ? ' ' : *at;
    }
    while (used && walk->section[used - 1] == ' ')
        used--;
    walk->section[at < last ? 0 : used] = '\0';
    walk->parent.length = 0;
}

/* Moves to the next key. 0: there is none. */
static int next_key(struct walk *walk)
{
    while (walk->at < walk->end) {
        struct span line = next_line(walk);
        int indented = line.length && is_blank(line.data[0]);
        line = trim(line);
        if (!line.length || line.data[0] == '#' || line.data[0] == ';')
            continue;
        if (line.data[0] == '[' && !indented) {
            enter_section(walk, line);
            continue;
        }
        size_t name = 0;
        while (name < line.length && line.data[name] != '=' && line.data[name] != ':')
            name++;
        if (name == line.length)
            continue;
        walk->key = trim((struct span){line.data, name});
        walk->value = trim((struct span){line.data + name + 1, line.length - name - 1});
        walk->is_nested = indented && walk->parent.length;
        if (!indented)
            walk->parent = walk->value.length ? (struct span){0} : walk->key;
        return 1;
    }
    return 0;
}

static int span_is(struct span span, const char *text, size_t length)
{
    return span.length == length && !strncasecmp(span.data, text, length);
}

static int key_is(const struct walk *walk, const char *key)
{
    const char *dot = strchr(key, '.');
    if (!dot)
        return !walk->is_nested && span_is(walk->key, key, strlen(key));
    return walk->is_nested && span_is(walk->parent, key, (size_t)(dot - key)) &&
           span_is(walk->key, dot + 1, strlen(dot + 1));
}

static struct walk walk_of(const struct ini *ini)
{
    const char *data = ini->text.data ? ini->text.data : "";
    return (struct walk){.at = data, .end = data + ini->text.len};
}

int ini_get(const struct ini *ini, const char *section, const char *key, char *out, size_t cap)
{
    struct walk walk = walk_of(ini);
    int found = 0;
    out[0] = '\0';
    while (next_key(&walk))
        if (!strcmp(walk.section, section) && key_is(&walk, key))
            found = secret_set(out, cap, walk.value.data, walk.value.length) && walk.value.length;
    return found;
}

int ini_has(const struct ini *ini, const char *section)
{
    struct walk walk = walk_of(ini);
    while (walk.at < walk.end) {
        struct span line = next_line(&walk);
        if (!line.length || line.data[0] != '[')
            continue;
        enter_section(&walk, line);
        if (!strcmp(walk.section, section))
            return 1;
    }
    return 0;
}
