#include "net/xml.h"

#include <string.h>

void xml_begin(struct xml *xml, const char *data, size_t length)
{
    memset(xml, 0, sizeof(*xml));
    xml->at = data;
    xml->end = data + length;
    if (length >= 3 && !memcmp(data, "\xEF\xBB\xBF", 3))
        xml->at += 3;
}

static enum xml_event bad(struct xml *xml, const char *why)
{
    xml->why = why;
    xml->at = xml->end;
    return XML_BAD;
}

static int is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static int starts(const struct xml *xml, const char *with)
{
    size_t length = strlen(with);
    return (size_t)(xml->end - xml->at) >= length && !memcmp(xml->at, with, length);
}

/* Moves behind the next `until`; 0: there is none. */
static int skip_behind(struct xml *xml, const char *until)
{
    size_t length = strlen(until);
    const char *at = memmem(xml->at, (size_t)(xml->end - xml->at), until, length);
    if (at)
        xml->at = at + length;
    return at != NULL;
}

static int text_put(struct xml *xml, const char *data, size_t length)
{
    if (sizeof(xml->text) - 1 - xml->text_length < length || memchr(data, '\0', length))
        return 0;
    memcpy(xml->text + xml->text_length, data, length);
    xml->text_length += length;
    xml->text[xml->text_length] = '\0';
    return 1;
}

static int put_code(struct xml *xml, unsigned long code)
{
    char bytes[4];
    size_t length;
    if (!code || code > 0x10FFFF || (code >= 0xD800 && code < 0xE000))
        return 0;
    if (code < 0x80) {
        bytes[0] = (char)code;
        length = 1;
    } else if (code < 0x800) {
        bytes[0] = (char)(0xC0 | code >> 6);
        length = 2;
    } else if (code < 0x10000) {
        bytes[0] = (char)(0xE0 | code >> 12);
        length = 3;
    } else {
        bytes[0] = (char)(0xF0 | code >> 18);
        length = 4;
    }
    for (size_t i = 1; i < length; i++)
        bytes[i] = (char)(0x80 | (code >> (6 * (length - 1 - i)) & 0x3F));
    return text_put(xml, bytes, length);
}

/* &#10; or &#xA; with at behind the '#'. */
static int put_number(struct xml *xml, const char *at, const char *end)
{
    unsigned long code = 0;
    unsigned base = 10;
    if (at < end && *at == 'x') {
        base = 16;
        at++;
    }
    if (at == end || end - at > 8)
        return 0;
    for (; at < end; at++) {
        unsigned digit = *at >= '0' && *at <= '9'   ? (unsigned)(*at - '0')
                         : *at >= 'a' && *at <= 'f' ? (unsigned)(*at - 'a') + 10
                         : *at >= 'A' && *at <= 'F' ? (unsigned)(*at - 'A') + 10
                                                    : 99;
        if (digit >= base)
            return 0;
        code = code * base + digit;
    }
    return put_code(xml, code);
}

static int put_entity(struct xml *xml)
{
    static const struct {
        const char *name;
        char c;
    } known[] = {{"amp", '&'}, {"lt", '<'}, {"gt", '>'}, {"quot", '"'}, {"apos", '\''}};
    const char *name = xml->at + 1;
    const char *end = memchr(name, ';', (size_t)(xml->end - name));
    if (!end || end - name > 12)
        return 0;
    xml->at = end + 1;
    if (*name == '#')
        return put_number(xml, name + 1, end);
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        if (strlen(known[i].name) == (size_t)(end - name) &&
            !memcmp(known[i].name, name, (size_t)(end - name)))
            return text_put(xml, &known[i].c, 1);
    return 0;
}

static int put_section(struct xml *xml)
{
    xml->at += strlen("<![CDATA[");
    const char *from = xml->at;
    return skip_behind(xml, "]]>") && text_put(xml, from, (size_t)(xml->at - 3 - from));
}

/* Not 0: blanks alone up to the next '<', and they are not all that an element holds. */
static int skip_blanks(struct xml *xml)
{
    const char *at = xml->at;
    while (at < xml->end && is_blank(*at))
        at++;
    if (at == xml->at || (at < xml->end && *at != '<'))
        return 0;
    if (xml->opened && xml->end - at > 1 && at[1] == '/')
        return 0;
    xml->at = at;
    return 1;
}

/* All text up to the next tag; 0 and *why where it cannot be read. */
static int read_text(struct xml *xml, const char **why)
{
    xml->text_length = 0;
    xml->text[0] = '\0';
    while (xml->at < xml->end) {
        int fits = 1;
        if (starts(xml, "<!--")) {
            xml->at += 4;
            fits = skip_behind(xml, "-->");
        } else if (starts(xml, "<![CDATA[")) {
            fits = put_section(xml);
        } else if (starts(xml, "<?")) {
            fits = skip_behind(xml, "?>");
        } else if (*xml->at == '<') {
            break;
        } else if (*xml->at == '&') {
            fits = put_entity(xml);
        } else if (xml->text_length || !skip_blanks(xml)) {
            const char *from = xml->at;
            while (xml->at < xml->end && *xml->at != '<' && *xml->at != '&')
                xml->at++;
            fits = text_put(xml, from, (size_t)(xml->at - from));
        }
        if (!fits) {
            *why = "a text that is too long, does not end, or has an unknown entity or a NUL";
            return 0;
        }
    }
    return 1;
}

static int is_name(char c)
{
    return c && !is_blank(c) && !strchr("<>/=\"'&", c);
}

/* The name at `at`: raw in *open, without its prefix in xml->name. */
static int read_name(struct xml *xml, struct xml_open *open)
{
    open->name = xml->at;
    while (xml->at < xml->end && is_name(*xml->at))
        xml->at++;
    open->length = (size_t)(xml->at - open->name);
    const char *colon = memchr(open->name, ':', open->length);
    const char *from = colon ? colon + 1 : open->name;
    size_t length = (size_t)(xml->at - from);
    if (!length || length >= sizeof(xml->name))
        return 0;
    memcpy(xml->name, from, length);
    xml->name[length] = '\0';
    return 1;
}

/* From behind the name to behind the '>'. */
static int skip_attributes(struct xml *xml)
{
    while (xml->at < xml->end) {
        char c = *xml->at++;
        if (c == '>')
            return 1;
        if (c == '/' && xml->at < xml->end && *xml->at == '>') {
            xml->closes = 1;
            xml->at++;
            return 1;
        }
        if (c == '<')
            return 0;
        if (c == '"' || c == '\'') {
            const char *end = memchr(xml->at, c, (size_t)(xml->end - xml->at));
            if (!end)
                return 0;
            xml->at = end + 1;
        }
    }
    return 0;
}

static int has_encoded(const char *attributes, size_t length)
{
    static const char encoded[] = " Encoded=\"true\"";
    return memmem(attributes, length, encoded, strlen(encoded)) != NULL;
}

static enum xml_event read_tag(struct xml *xml)
{
    struct xml_open tag;
    xml->at++;
    int closing = xml->at < xml->end && *xml->at == '/';
    xml->at += closing;
    if (!read_name(xml, &tag))
        return bad(xml, "a tag without a name, or one that is too long");
    if (!closing) {
        if (xml->depth == XML_MAX_DEPTH)
            return bad(xml, "elements too deep in one another");
        const char *attributes = xml->at;
        if (!skip_attributes(xml))
            return bad(xml, "a tag that does not end");
        xml->is_encoded = has_encoded(attributes, (size_t)(xml->at - attributes));
        xml->open[xml->depth++] = tag;
        xml->opened = 1;
        return XML_OPEN;
    }
    while (xml->at < xml->end && is_blank(*xml->at))
        xml->at++;
    if (xml->at == xml->end || *xml->at++ != '>')
        return bad(xml, "a tag that does not end");
    const struct xml_open *open = xml->depth ? &xml->open[xml->depth - 1] : NULL;
    if (!open || open->length != tag.length || memcmp(open->name, tag.name, tag.length))
        return bad(xml, "a closing tag of another element");
    xml->leaves = 1;
    return XML_CLOSE;
}

enum xml_event xml_next(struct xml *xml)
{
    const char *why = NULL;
    if (xml->why)
        return XML_BAD;
    xml->depth -= xml->leaves;
    xml->leaves = 0;
    if (xml->closes) {
        xml->closes = 0;
        xml->opened = 0;
        xml->leaves = 1;
        return XML_CLOSE;
    }
    if (!read_text(xml, &why))
        return bad(xml, why);
    xml->opened = 0;
    if (xml->text_length)
        return xml->depth ? XML_TEXT : bad(xml, "text outside of all elements");
    if (xml->at == xml->end)
        return xml->depth ? bad(xml, "it ends within an element") : XML_END;
    return read_tag(xml);
}

void xml_add(struct text *to, const char *from, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        const char *escaped = from[i] == '&'   ? "&amp;"
                              : from[i] == '<' ? "&lt;"
                              : from[i] == '>' ? "&gt;"
                                               : NULL;
        if (escaped)
            text_add(to, escaped, strlen(escaped));
        else
            text_add(to, from + i, 1);
    }
}
