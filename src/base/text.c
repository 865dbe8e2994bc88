#include "base/text.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"

/* Makes room for len more bytes and the NUL. */
static int make_room(struct text *text, size_t len)
{
    if (text->failed)
        return 0;
    if (len < text->cap - text->len)
        return 1;
    size_t cap = text->cap < 64 ? 64 : text->cap;
    while (cap - text->len <= len && cap <= SIZE_MAX / 2)
        cap *= 2;
    char *data = cap - text->len > len ? memory_grow(text->data, cap) : NULL;
    if (!data) {
        text->failed = 1;
        return 0;
    }
    text->data = data;
    text->cap = cap;
    return 1;
}

void text_add(struct text *text, const char *data, size_t len)
{
    if (!make_room(text, len))
        return;
    if (len)
        memcpy(text->data + text->len, data, len);
    text->len += len;
    text->data[text->len] = '\0';
}

void text_format(struct text *text, const char *format, ...)
{
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int len = vsnprintf(NULL, 0, format, args);
    if (len < 0)
        text->failed = 1;
    else if (make_room(text, (size_t)len))
        text->len += (size_t)vsnprintf(text->data + text->len, (size_t)len + 1, format, again);
    va_end(again);
    va_end(args);
}

void text_free(struct text *text)
{
    memory_free(text->data);
    *text = (struct text){0};
}
