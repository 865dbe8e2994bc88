#include "net/netrc.h"

#include <string.h>
#include <strings.h>

struct words {
    const char *at, *end;
};

static int is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* Behind the blank line that ends a macro. */
static void skip_macro(struct words *words)
{
    const char *blank = memmem(words->at, (size_t)(words->end - words->at), "\n\n", 2);
    words->at = blank ? blank + 2 : words->end;
}

/* The next word into `word`, whose quotes are taken off; 0: there is none. One that does not fit is
 * "". */
static int next_word(struct words *words, char *word, size_t cap)
{
    size_t length = 0;
    for (;;) {
        while (words->at < words->end && is_blank(*words->at))
            words->at++;
        if (words->at == words->end)
            return 0;
        if (*words->at != '#')
            break;
        while (words->at < words->end && *words->at != '\n')
            words->at++;
    }
    int quoted = *words->at == '"';
    words->at += quoted;
    while (words->at < words->end && (quoted ? *words->at != '"' : !is_blank(*words->at))) {
        if (*words->at == '\\' && words->end - words->at > 1)
            words->at++;
        if (length < cap)
            word[length++] = *words->at;
        words->at++;
    }
    words->at += quoted && words->at < words->end;
    word[length < cap ? length : 0] = '\0';
    return 1;
}

/* Takes the entry of a host (NULL: "default") over. */
static int find_entry(struct words words, const char *host, char *word, size_t cap,
                      struct secret *out)
{
    int ours = 0, found = 0; /* ours: what follows is of the host */
    while (next_word(&words, word, cap)) {
        char *field = NULL;
        size_t field_cap = 0;
        if (!strcmp(word, "machine") || !strcmp(word, "default")) {
            int named = word[0] == 'm';
            if (ours)
                break;
            if (named && !next_word(&words, word, cap))
                break;
            ours = named == (host != NULL) && (!named || !strcasecmp(word, host));
            continue;
        }
        if (!strcmp(word, "macdef")) {
            skip_macro(&words);
            continue;
        }
        if (!strcmp(word, "login")) {
            field = out->id;
            field_cap = sizeof(out->id);
        } else if (!strcmp(word, "password")) {
            field = out->key;
            field_cap = sizeof(out->key);
        }
        if (!next_word(&words, word, cap)) /* of "account" and the like, too */
            break;
        if (ours && field && secret_set(field, field_cap, word, strlen(word)))
            found = 1;
    }
    return found;
}

int netrc_find(const char *text, size_t length, const char *host, struct secret *out)
{
    struct words words = {text, text + length};
    char word[sizeof(out->key)];
    int found = find_entry(words, host, word, sizeof(word), out) ||
                find_entry(words, NULL, word, sizeof(word), out);
    secret_wipe(word, sizeof(word));
    out->kind = found ? SECRET_BASIC : SECRET_NONE;
    return found;
}
