#include "net/token_call.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/fail.h"
#include "base/json.h"
#include "base/parse.h"
#include "net/ask.h"
#include "net/authority.h"
#include "net/escape.h"

/* How long a token that does not say so is used. */
#define UNTOLD_S (CREDENTIALS_REFRESH_BEFORE_S + 300)

void token_form_add(struct text *form, const char *name, const char *value)
{
    (void)secret_text_room(form, strlen(name) + 3 * strlen(value) + 2);
    text_format(form, "%s%s=", form->len ? "&" : "", name);
    escape_add(form, value, strlen(value), 0);
}

stk_status token_file(struct text *out, const char *path, struct stk_error *err)
{
    stk_status status = secret_file_read(out, path, err);

    while (!status && out->len && strchr(" \t\r\n", out->data[out->len - 1]))
        out->data[--out->len] = 0;
    if (!status && !out->len) {
        status = fail(err, STK_DENIED, "the file is to hold a token, and is empty");
        fail_at(err, path, STK_NOWHERE);
    }
    return status;
}

stk_status token_url_check(const char *url, const char *what, struct stk_error *err)
{
    struct authority authority;

    if (!authority_parse(&authority, url, NULL) &&
        (authority.is_tls || authority_is_loopback(&authority)))
        return STK_OK;
    return fail(err, STK_USAGE, "%s does not name an https address: no secret is sent there", what);
}

/* --- the call -------------------------------------------------------------------------------- */

static void fill_request(struct web_request *request, const struct token_call *call)
{
    request->method = call->form ? WEB_POST : WEB_GET;
    request->url = call->url;
    for (uint32_t i = 0; i < TOKEN_CALL_HEADERS && call->headers[i].name; i++)
        request->headers[request->header_count++] = call->headers[i];
    request->headers[request->header_count++] =
        (struct web_header){.name = "accept", .value = "application/json"};
    if (!call->form)
        return;
    request->headers[request->header_count++] = (struct web_header){
        .name = "content-type",
        .value = call->form_type ? call->form_type : "application/x-www-form-urlencoded"};
    request->send = call->form;
    request->send_length = strlen(call->form);
}

/* An error's own code, if it looks like one: {"error": "invalid_client"}, or with a code inside.
 */
static void error_code(const struct text *body, char code[64])
{
    struct json *json;
    const char *word;

    code[0] = 0;
    if (!body->data || json_parse(&json, body->data, body->len, NULL))
        return;
    const struct json *inside = json_member(json, "error");
    if (json_text(inside, &word) || json_get_text(inside, "status", &word) ||
        json_get_text(json, "code", &word)) {
        size_t length = strspn(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_-.");
        if (!word[length] && length < 64)
            memcpy(code, word, length + 1);
    }
    json_free(json);
}

static stk_status answer_failed(const struct token_call *call, const struct web_answer *answer,
                                struct stk_error *err)
{
    char code[64];

    if (answer->failure == WEB_CONNECT || answer->failure == WEB_RESOLVE ||
        (answer->failure == WEB_LATE && !answer->connected_ns))
        return fail(err, STK_NOT_FOUND, "%s cannot be reached: %s", call->who,
                    web_failure_words(answer->failure));
    if (answer->failure)
        return fail(err, STK_IO, "%s did not answer: %s", call->who,
                    web_failure_words(answer->failure));
    error_code(&answer->body, code);
    stk_status status = answer->status >= 500 || answer->status == 429 ? STK_IO : STK_DENIED;
    if (answer->status == 404)
        status = STK_NOT_FOUND;
    return fail(err, status, "%s gave no token: status %d%s%s", call->who, answer->status,
                code[0] ? ", " : "", code);
}

/* It is there, and has to ask others first. */
static int is_slow(const struct web_answer *answer)
{
    return answer->failure == WEB_LATE && answer->connected_ns;
}

stk_status token_call(struct net *net, const struct token_call *call, struct text *answer,
                      struct stk_error *err)
{
    const struct ask how = {.timeout_ms = call->limit_ms, .tries = call->tries};
    struct web_request request = {.method = WEB_GET};

    fill_request(&request, call);
    stk_status status = ask_now(net, &how, &request, answer);
    if (status == STK_IO && is_slow(&request.answer) && call->limit_ms < TOKEN_SERVICE_MS) {
        web_answer_free(&request.answer);
        answer->len = 0;
        status = ask_now(net, &(struct ask){TOKEN_SERVICE_MS, 1}, &request, answer);
    }
    if (status == STK_CANCELLED)
        fail(err, status, "waiting for a token of %s was stopped", call->who);
    else if (status || request.answer.failure || request.answer.status / 100 != 2)
        status = answer_failed(call, &request.answer, err);
    else if (answer->failed)
        status = fail_memory(err, answer->len);
    else if (!answer->len)
        status = fail(err, STK_IO, "%s answered nothing", call->who);
    web_answer_free(&request.answer);
    return status;
}

/* --- the answer ------------------------------------------------------------------------------ */

/* A number, or one in quotes. */
static int json_seconds(const struct json *json, const char *name, int64_t *out)
{
    const struct json *value = json_member(json, name);
    const char *word;
    double number;

    if (json_text(value, &word))
        return parse_i64(word, strlen(word), out);
    if (!json_double(value, &number) || number < 0 || number > 1e12)
        return 0;
    *out = (int64_t)number;
    return 1;
}

/* "2026-11-15T21:00:00Z", with or without a fraction. */
static int read_moment(const char *word, int64_t *out)
{
    struct tm parts = {0};
    int used = 0;

    if (sscanf(word, "%4d-%2d-%2dT%2d:%2d:%2d%n", &parts.tm_year, &parts.tm_mon, &parts.tm_mday,
               &parts.tm_hour, &parts.tm_min, &parts.tm_sec, &used) != 6)
        return 0;
    word += used;
    if (*word == '.')
        word += 1 + strspn(word + 1, "0123456789");
    if (strcmp(word, "Z"))
        return 0;
    parts.tm_year -= 1900;
    parts.tm_mon -= 1;
    *out = (int64_t)timegm(&parts);
    return 1;
}

static int64_t read_end(const struct json *json)
{
    int64_t now = (int64_t)time(NULL), seconds;
    const char *word;

    if (json_seconds(json, "expires_on", &seconds) && seconds > 0)
        return seconds;
    if (json_seconds(json, "expires_in", &seconds) && seconds > 0)
        return now + seconds;
    if (json_get_text(json, "expireTime", &word) && read_moment(word, &seconds))
        return seconds;
    return now + UNTOLD_S;
}

stk_status token_read(const struct text *answer, const char *who, const char *where,
                      struct secret *out, struct stk_error *err)
{
    struct json *json;
    const char *token = NULL;
    stk_status status = STK_OK;

    /* The parser's words may quote the text, and with it the token. */
    if (json_parse(&json, answer->data, answer->len, NULL))
        return fail(err, STK_IO, "%s answered with what is no JSON", who);
    if (!json_get_text(json, "access_token", &token) && !json_get_text(json, "accessToken", &token))
        status = fail(err, STK_IO, "%s answered without a token", who);
    else if (!secret_set(out->token, sizeof(out->token), token, strlen(token)))
        status = fail(err, STK_LIMIT, "the token of %s is too long", who);
    if (!status) {
        out->kind = SECRET_BEARER;
        out->expires_s = read_end(json);
        snprintf(out->where, sizeof(out->where), "%s", where);
    }
    if (token)
        secret_wipe((char *)token, strlen(token)); /* it is the document's, which ends here */
    json_free(json);
    return status;
}
