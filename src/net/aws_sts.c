#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/fail.h"
#include "base/memory.h"
#include "net/ask.h"
#include "net/authority.h"
#include "net/aws_chain.h"
#include "net/aws_time.h"
#include "net/digest.h"
#include "net/escape.h"
#include "net/sigv4.h"
#include "net/xml.h"

#define MOST_SKEW_S 240 /* AWS allows 300 or 900 */

static const struct ask patience = {.timeout_ms = 10000, .tries = 3};

static void add_field(struct text *body, const char *name, const char *value)
{
    if (!*value)
        return;
    text_format(body, "&%s=", name);
    escape_add(body, value, strlen(value), 0);
}

/* What a web identity's file holds, without the line's end. */
static stk_status read_token(const struct aws_role *role, struct text *out, struct stk_error *err)
{
    stk_status status = secret_file_read(out, role->token_file, err);
    if (status) {
        fail_remedy(err, "AWS_WEB_IDENTITY_TOKEN_FILE names a file that can be read");
        return aws_denied(status, err);
    }
    while (out->len && strchr(" \t\r\n", out->data[out->len - 1]))
        out->data[--out->len] = '\0';
    return STK_OK;
}

static stk_status write_body(const struct aws_role *role, struct text *body, struct stk_error *err)
{
    struct text token = {0};
    char session[64];
    snprintf(session, sizeof(session), "stoker-%ld", (long)getpid());
    if (role->token_file) {
        stk_status status = read_token(role, &token, err);
        if (status)
            return status;
    }
    if (!secret_text_reserve(body, 4096 + 3 * token.len)) {
        secret_text_free(&token);
        return fail_memory(err, 4096);
    }
    text_format(body, "Action=%s&Version=2011-06-15",
                role->token_file ? "AssumeRoleWithWebIdentity" : "AssumeRole");
    add_field(body, "RoleArn", role->arn);
    add_field(body, "RoleSessionName", role->session[0] ? role->session : session);
    add_field(body, "ExternalId", role->external_id);
    add_field(body, "DurationSeconds", role->duration);
    if (role->token_file)
        add_field(body, "WebIdentityToken", token.data ? token.data : "");
    secret_text_free(&token);
    return STK_OK;
}

/* The endpoint that is given, or that of the region. */
static stk_status write_url(const struct aws_config *config, const char *region, struct text *url,
                            struct stk_error *err)
{
    char endpoint[512];
    struct authority authority;
    if (!aws_config_endpoint(config, "sts", endpoint, sizeof(endpoint))) {
        int is_fips = aws_config_is_true(config, AWS_USE_FIPS_ENDPOINT, "use_fips_endpoint");
        text_format(url, "https://sts%s.%s.%s/", is_fips ? "-fips" : "", region,
                    aws_region_suffix(region));
        return STK_OK;
    }
    stk_status status = authority_parse(&authority, endpoint, err);
    if (!status)
        text_format(url, "%s/", authority.origin);
    return status;
}

/* ahead_s: the server's clock less ours. */
static stk_status write_request(const struct aws_config *config, const struct aws_role *role,
                                int64_t ahead_s, struct site_made *made, struct stk_error *err)
{
    char region[64], payload[65];
    uint8_t hash[32];
    aws_config_region(config, region, sizeof(region));
    made->request.method = WEB_POST;
    stk_status status = write_url(config, region, &made->url, err);
    if (!status)
        status = write_body(role, &made->body, err);
    struct text *type = site_header(made, "Content-Type");
    if (type)
        text_format(type, "application/x-www-form-urlencoded; charset=utf-8");
    if (status || role->token_file)
        return status ? status : site_made_finish(made, err);
    status = digest_sha256(made->body.data, made->body.len, hash);
    if (status)
        return fail(err, status, "a request cannot be signed");
    digest_hex(hash, sizeof(hash), payload);
    struct sigv4 how = {region, "sts", payload, (int64_t)time(NULL) + ahead_s, NULL};
    return sigv4_sign(made, role->source, &how, err);
}

/* What STS answers, good or bad: an id, a key, a token; or a code and words. */
struct sts_answer {
    struct secret *secret;
    char code[64], words[256];
};

static void take_text(struct sts_answer *answer, const struct xml *xml)
{
    struct secret *secret = answer->secret;
    const char *text = xml->text;
    if (!strcmp(xml->name, "AccessKeyId"))
        (void)secret_set(secret->id, sizeof(secret->id), text, xml->text_length);
    else if (!strcmp(xml->name, "SecretAccessKey"))
        (void)secret_set(secret->key, sizeof(secret->key), text, xml->text_length);
    else if (!strcmp(xml->name, "SessionToken"))
        (void)secret_set(secret->token, sizeof(secret->token), text, xml->text_length);
    else if (!strcmp(xml->name, "Expiration"))
        secret->expires_s = aws_time_read(text);
    else if (!strcmp(xml->name, "Code"))
        snprintf(answer->code, sizeof(answer->code), "%.60s", text);
    else if (!strcmp(xml->name, "Message"))
        snprintf(answer->words, sizeof(answer->words), "%.250s", text);
}

static void read_answer(const struct text *body, struct sts_answer *answer)
{
    struct xml *xml = memory_alloc(sizeof(*xml));
    if (!xml || !body->data) {
        memory_free(xml);
        return;
    }
    xml_begin(xml, body->data, body->len);
    for (enum xml_event event = xml_next(xml); event != XML_END && event != XML_BAD;
         event = xml_next(xml))
        if (event == XML_TEXT)
            take_text(answer, xml);
    secret_wipe(xml, sizeof(*xml));
    memory_free(xml);
}

static stk_status judge(const struct aws_role *role, const struct web_answer *web,
                        const struct text *body, struct secret *out, struct stk_error *err)
{
    struct sts_answer answer = {.secret = out};
    read_answer(web->status < 300 ? body : &web->body, &answer);
    if (web->status < 300 && out->id[0] && out->key[0] && out->token[0]) {
        out->kind = SECRET_AWS;
        return STK_OK;
    }
    fail(err, STK_DENIED, "STS did not give the role %.80s: %d %.40s %.120s", role->arn,
         web->status, answer.code, answer.words);
    fail_remedy(err, "check the role's trust policy, and who asks for it: aws sts "
                     "get-caller-identity");
    return STK_DENIED;
}

/* *ahead_s: as write_request's; set where a refusal shows that our clock is wrong. */
static stk_status assume(const struct aws_config *config, struct net *net,
                         const struct aws_role *role, int64_t *ahead_s, struct secret *out,
                         struct stk_error *err)
{
    struct site_made *made = memory_zero(1, sizeof(*made));
    struct text body = {0};
    if (!made)
        return fail_memory(err, sizeof(*made));
    stk_status status = write_request(config, role, *ahead_s, made, err);
    if (status)
        goto done;
    status = ask_now(net, &patience, &made->request, &body);
    const struct web_answer *answer = &made->request.answer;
    if (status == STK_OK && answer->status >= 400 && answer->date_s && role->source)
        *ahead_s = answer->date_s - (int64_t)time(NULL);
    if (status == STK_OK)
        status = judge(role, answer, &body, out, err);
    else
        fail(err, status, "STS cannot be asked for the role %.100s: %s: %s", role->arn,
             web_failure_words(answer->failure), answer->words);
    web_answer_free(&made->request.answer);
done:
    site_made_reset(made);
    memory_free(made);
    secret_text_free(&body);
    return status;
}

stk_status aws_role_assume(const struct aws_config *config, struct net *net,
                           const struct aws_role *role, struct secret *out, struct stk_error *err)
{
    int64_t ahead_s = 0;
    stk_status status = assume(config, net, role, &ahead_s, out, err);
    if (status == STK_DENIED && (ahead_s > MOST_SKEW_S || ahead_s < -MOST_SKEW_S))
        status = assume(config, net, role, &ahead_s, out, err); /* by the server's clock */
    return status;
}
