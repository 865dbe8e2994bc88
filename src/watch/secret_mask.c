#include "watch/secret_mask.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

struct words {
    const char *data;
    size_t len;
};

#define BLANKS " \t\n"

static int blank_in(struct words text)
{
    for (size_t i = 0; i < text.len; i++)
        if (text.data[i] && strchr(BLANKS, text.data[i]))
            return 1;
    return 0;
}

static int is_secret_word(const char *word, size_t len)
{
    static const char *const secret[] = {"key",        "apikey",      "token",     "secret",
                                         "password",   "passwd",      "pwd",       "auth",
                                         "credential", "credentials", "accesskey", "passphrase"};
    static const char *const ending[] = {"token", "secret", "password", "apikey"};
    for (size_t i = 0; i < sizeof secret / sizeof secret[0]; i++)
        if (strlen(secret[i]) == len && strncasecmp(secret[i], word, len) == 0)
            return 1;
    for (size_t i = 0; i < sizeof ending / sizeof ending[0]; i++) { /* "accessToken" */
        size_t end = strlen(ending[i]);
        if (len > end && strncasecmp(ending[i], word + len - end, end) == 0)
            return 1;
    }
    return 0;
}

/* "--api-key", "HF_TOKEN", "wandb.api_key": one of the parts is such a word. */
static int is_secret_name(struct words name)
{
    size_t start = 0;
    for (size_t i = 0; i <= name.len; i++) {
        if (i < name.len && isalnum((unsigned char)name.data[i]))
            continue;
        if (is_secret_word(name.data + start, i - start))
            return 1;
        start = i + 1;
    }
    return 0;
}

/* scheme://user:PASSWORD@host: where the password lies; 0: there is none. */
static size_t password_in(struct words argument, size_t *len)
{
    const char *end = argument.data + argument.len;
    const char *host = memmem(argument.data, argument.len, "://", 3);
    if (!host)
        return 0;
    host += 3;
    const char *slash = memchr(host, '/', (size_t)(end - host));
    const char *colon = memchr(host, ':', (size_t)((slash ? slash : end) - host));
    const char *at = colon ? memrchr(colon, '@', (size_t)((slash ? slash : end) - colon)) : NULL;
    if (!at)
        return 0;
    *len = (size_t)(at - colon) - 1;
    return (size_t)(colon - argument.data) + 1;
}

static void mask_line(struct text *text, struct words line);

static void mask_words(struct text *text, struct words argument, struct words before)
{
    const char *equals = memchr(argument.data, '=', argument.len);
    size_t name_len = equals ? (size_t)(equals - argument.data) : 0;
    size_t at, len = 0;
    if (equals && is_secret_name((struct words){argument.data, name_len})) {
        text_add(text, argument.data, name_len + 1);
        text_add(text, "***", 3);
    } else if (before.len > 1 && before.data[0] == '-' && !memchr(before.data, '=', before.len) &&
               (!argument.len || argument.data[0] != '-') && is_secret_name(before)) {
        text_add(text, "***", 3);
    } else if (blank_in(argument)) {
        mask_line(text, argument); /* of a shell: sh -c "..." */
    } else if ((at = password_in(argument, &len))) {
        text_add(text, argument.data, at);
        text_add(text, "***", 3);
        text_add(text, argument.data + at + len, argument.len - at - len);
    } else {
        text_add(text, argument.data, argument.len);
    }
}

/* The next word: up to a blank that is in no quotes. A quote that nothing ends is a letter. */
static size_t word_len(struct words line)
{
    for (size_t at = 0; at < line.len; at++) {
        const char *one = line.data + at, *end = NULL;
        if (strchr(BLANKS, *one))
            return at;
        if (*one == '"' || *one == '\'')
            end = memchr(one + 1, *one, line.len - at - 1);
        if (end)
            at = (size_t)(end - line.data);
    }
    return line.len;
}

static void mask_line(struct text *text, struct words line)
{
    struct words before = {"", 0};
    while (line.len > 0) {
        struct words one = {line.data, word_len(line)};
        if (one.len == line.len && blank_in(one)) /* all of it in quotes: what is in them */
            one.len = 1;
        mask_words(text, one, before);
        if (one.len > 0)
            before = one;
        line.data += one.len;
        line.len -= one.len;
        for (; line.len > 0 && strchr(BLANKS, *line.data); line.data++, line.len--)
            text_add(text, line.data, 1);
    }
}

void secret_mask_add(struct text *text, const char *argument, const char *before)
{
    struct words last = {before ? before : "", before ? strlen(before) : 0};
    mask_words(text, (struct words){argument, strlen(argument)}, last);
}

void secret_mask_line(struct text *text, const char *line)
{
    mask_line(text, (struct words){line, strlen(line)});
}
