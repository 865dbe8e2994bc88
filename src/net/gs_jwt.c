#include "net/gs_jwt.h"

#include <inttypes.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <string.h>

#include "base/fail.h"
#include "base/json.h"
#include "net/credentials.h"
#include "net/digest.h"

#define LIFE_S 3600
#define SIGNATURE_MOST 1024 /* of a key of 8,192 bits */

/* base64 as URLs have it: - and _ for + and /, and no = at the end. */
static void add_base64url(struct text *to, const void *data, size_t length)
{
    size_t from = to->len;

    digest_base64(to, data, length);
    if (to->failed)
        return;
    for (size_t i = from; i < to->len; i++) {
        if (to->data[i] == '+')
            to->data[i] = '-';
        else if (to->data[i] == '/')
            to->data[i] = '_';
    }
    while (to->len > from && to->data[to->len - 1] == '=')
        to->data[--to->len] = 0;
}

static void add_member(struct text *to, const char *name, const char *value)
{
    text_format(to, "%s\"%s\":", to->len > 1 ? "," : "", name);
    json_add_string(to, value, strlen(value));
}

static void add_claims(struct text *to, const struct gs_claim *claim)
{
    struct text json = {0};

    text_format(&json, "{");
    add_member(&json, "alg", "RS256");
    add_member(&json, "typ", "JWT");
    if (claim->key_id && claim->key_id[0])
        add_member(&json, "kid", claim->key_id);
    text_format(&json, "}");
    add_base64url(to, json.data, json.len);
    text_add(to, ".", 1);
    json.len = 0;
    text_format(&json, "{");
    add_member(&json, "iss", claim->email);
    add_member(&json, "scope", claim->scope);
    add_member(&json, "aud", claim->audience);
    text_format(&json, ",\"iat\":%" PRId64 ",\"exp\":%" PRId64 "}", claim->now_s,
                claim->now_s + LIFE_S);
    add_base64url(to, json.data, json.len);
    to->failed |= json.failed;
    text_free(&json);
}

/* A key that is locked with a passphrase is no key: nobody is asked for one. */
static int no_passphrase(char *buf, int size, int is_writing, void *user)
{
    (void)buf;
    (void)size;
    (void)is_writing;
    (void)user;
    return -1;
}

/* 0: done. */
static int sign(EVP_PKEY *key, const struct text *text, uint8_t signature[SIGNATURE_MOST],
                size_t *length)
{
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    int is_done =
        context && EVP_DigestSignInit(context, NULL, EVP_sha256(), NULL, key) == 1 &&
        EVP_DigestSign(context, signature, length, (const uint8_t *)text->data, text->len) == 1;

    EVP_MD_CTX_free(context);
    return is_done ? 0 : -1;
}

stk_status gs_jwt_add(struct text *to, const struct gs_claim *claim, struct stk_error *err)
{
    BIO *source = BIO_new_mem_buf(claim->pem, -1);
    EVP_PKEY *key = source ? PEM_read_bio_PrivateKey(source, NULL, no_passphrase, NULL) : NULL;
    struct text text = {0};
    uint8_t signature[SIGNATURE_MOST];
    size_t length = sizeof(signature);
    stk_status status = STK_OK;

    add_claims(&text, claim);
    if (!key || EVP_PKEY_base_id(key) != EVP_PKEY_RSA || EVP_PKEY_size(key) > SIGNATURE_MOST)
        status = fail(err, STK_CORRUPT, "private_key is no RSA key");
    else if (text.failed)
        status = fail_memory(err, text.len);
    else if (sign(key, &text, signature, &length))
        status = fail(err, STK_CORRUPT, "private_key cannot sign");
    if (!status && !secret_text_room(to, text.len + 2 * length))
        status = fail_memory(err, text.len);
    if (!status) {
        text_add(to, text.data, text.len);
        text_add(to, ".", 1);
        add_base64url(to, signature, length);
        status = to->failed ? fail_memory(err, to->len) : STK_OK;
    }
    EVP_PKEY_free(key); /* wipes it */
    BIO_free(source);
    secret_text_free(&text);
    return status;
}
