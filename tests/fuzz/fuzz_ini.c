/* Any bytes as a configuration file, a netrc, the JSON of a token's server, an escaped name. */
#include <stdlib.h>
#include <string.h>

#include "net/aws_time.h"
#include "net/escape.h"
#include "net/flat_json.h"
#include "net/ini.h"
#include "net/netrc.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_ini(const char *text, size_t size)
{
    static const char *const keys[] = {"region", "s3.addressing_style", "role_arn"};
    struct ini ini = {0};
    char value[64];
    text_add(&ini.text, text, size);
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
        if (ini_get(&ini, "default", keys[i], value, sizeof(value)) &&
            (!value[0] || !ini_has(&ini, "default")))
            abort();
    ini_free(&ini);
}

static void read_json(const char *text, size_t size)
{
    char value[64];
    static const char *const names[] = {"AccessKeyId", "Expiration", ""};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (!flat_json_get(text, size, names[i], value, sizeof(value)) && value[0])
            abort();
    (void)aws_time_read(value);
}

static void read_escapes(const char *text, size_t size)
{
    struct text plain = {0}, escaped = {0}, again = {0};
    if (!escape_decode(&plain, text, size) && plain.len) {
        escape_add(&escaped, plain.data, plain.len, 1);
        if (escape_decode(&again, escaped.data, escaped.len) || again.len != plain.len ||
            memcmp(again.data, plain.data, plain.len))
            abort();
    }
    text_free(&plain);
    text_free(&escaped);
    text_free(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size ? size : 1); /* of this very size, so that reading past it is seen */
    struct secret *secret = secret_new();
    if (!text || !secret)
        abort();
    if (size)
        memcpy(text, data, size);
    read_ini(text, size);
    read_json(text, size);
    read_escapes(text, size);
    if (netrc_find(text, size, "host.org", secret) != (secret->kind == SECRET_BASIC))
        abort();
    secret_free(secret);
    free(text);
    return 0;
}
