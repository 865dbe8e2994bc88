#include "net/connection_string.h"

#include <string.h>
#include <strings.h>

static int is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/* Moves both ends inwards, past blanks. */
static void trim(const char **from, const char **to)
{
    while (*from < *to && is_blank(**from))
        (*from)++;
    while (*to > *from && is_blank((*to)[-1]))
        (*to)--;
}

const char *connection_string_find(const char *string, const char *name, size_t *length)
{
    size_t name_length = strlen(name);

    *length = 0;
    while (*string) {
        const char *end = strchrnul(string, ';');
        /* The first one: keys and signatures have such signs in them. */
        const char *equals = memchr(string, '=', (size_t)(end - string));
        if (equals) {
            const char *from = string, *to = equals, *value = equals + 1, *value_end = end;
            trim(&from, &to);
            trim(&value, &value_end);
            if ((size_t)(to - from) == name_length && !strncasecmp(from, name, name_length) &&
                value < value_end) {
                *length = (size_t)(value_end - value);
                return value;
            }
        }
        string = *end ? end + 1 : end;
    }
    return NULL;
}
