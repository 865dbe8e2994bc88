#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/fail.h"
#include "base/memory.h"
#include "base/parse.h"
#include "net/ask.h"
#include "net/authority.h"
#include "net/aws_chain.h"
#include "net/flat_json.h"

/* Who asks, and how long it waits. */
struct asker {
    struct net *net;
    struct ask patience;
};

/* They are near or not there at all: botocore's variables say how long they are waited for. */
static struct asker asker_of(const struct aws_env *env, struct net *net, struct ask usual)
{
    const char *timeout = aws_env_get(env, AWS_METADATA_SERVICE_TIMEOUT);
    const char *attempts = aws_env_get(env, AWS_METADATA_SERVICE_NUM_ATTEMPTS);
    struct asker asker = {net, usual};
    uint64_t number;
    if (parse_u64(timeout, strlen(timeout), &number) && number && number <= 60)
        asker.patience.timeout_ms = (uint32_t)number * 1000;
    if (parse_u64(attempts, strlen(attempts), &number) && number && number <= 10)
        asker.patience.tries = (uint32_t)number;
    return asker;
}

/* One question. STK_OK: *body has a good answer; STK_NOT_FOUND: it was refused, *http_status says
 * how, or it was heard and not answered in time (0); else nobody is there. */
static stk_status question(const struct asker *asker, enum web_method method, const char *url,
                           const struct web_header *header, struct text *body, int *http_status)
{
    struct web_request *request = memory_zero(1, sizeof(*request));
    *http_status = 0;
    if (!request)
        return STK_MEMORY;
    request->method = method;
    request->url = url;
    if (header && header->value && header->value[0])
        request->headers[request->header_count++] = *header;
    body->len = 0;
    stk_status status = ask_now(asker->net, &asker->patience, request, body);
    *http_status = request->answer.status;
    if (!status && (*http_status < 200 || *http_status > 299))
        status = STK_NOT_FOUND;
    if (status == STK_IO && request->answer.failure == WEB_LATE && request->answer.connected_ns)
        status = STK_NOT_FOUND;
    web_answer_free(&request->answer);
    memory_free(request);
    return status;
}

/* Plain http to elsewhere would hand the container's credentials to whoever listens. */
static int may_ask(const struct authority *authority)
{
    static const char *const known[] = {"169.254.170.2", "169.254.170.23", "[fd00:ec2::23]"};
    if (authority->is_tls || authority_is_loopback(authority))
        return 1;
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        if (!strcmp(authority->name, known[i]))
            return 1;
    return 0;
}

static stk_status container_url(const struct aws_env *env, char *out, size_t cap,
                                struct stk_error *err)
{
    const char *relative = aws_env_get(env, AWS_CONTAINER_CREDENTIALS_RELATIVE_URI);
    const char *full = aws_env_get(env, AWS_CONTAINER_CREDENTIALS_FULL_URI);
    struct authority authority;
    if (*relative) {
        snprintf(out, cap, "http://169.254.170.2%s%s", relative[0] == '/' ? "" : "/", relative);
        return STK_OK;
    }
    if (!*full)
        return STK_NOT_FOUND;
    snprintf(out, cap, "%s", full);
    stk_status status = authority_parse(&authority, full, err);
    if (!status && !may_ask(&authority))
        status = fail(err, STK_DENIED,
                      "AWS_CONTAINER_CREDENTIALS_FULL_URI names a host that is "
                      "neither this machine nor reached by https");
    return status;
}

/* What the server wants to see: the file's content counts before the variable's. */
static stk_status container_token(const struct aws_env *env, struct text *out,
                                  struct stk_error *err)
{
    const char *file = aws_env_get(env, AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE);
    const char *token = aws_env_get(env, AWS_CONTAINER_AUTHORIZATION_TOKEN);
    stk_status status = STK_OK;
    if (*file) {
        status = aws_denied(secret_file_read(out, file, err), err);
        while (out->len && strchr("\r\n", out->data[out->len - 1]))
            out->data[--out->len] = '\0';
    } else if (*token) {
        text_add(out, token, strlen(token));
    }
    if (!status && out->data && strpbrk(out->data, "\r\n"))
        status =
            fail(err, STK_DENIED, "the container's authorization token has a line's end in it");
    return status;
}

stk_status aws_container_find(const struct aws_env *env, struct net *net, struct secret *out,
                              struct stk_error *err)
{
    char url[2048];
    struct text token = {0}, body = {0};
    int http_status = 0;
    stk_status status = container_url(env, url, sizeof(url), err);
    if (!status)
        status = container_token(env, &token, err);
    if (status)
        goto done;
    /* A container whose variables are set has a server, however busy. */
    struct asker asker = asker_of(env, net, (struct ask){.timeout_ms = 2000, .tries = 3});
    struct web_header header = {"Authorization", token.data};
    status = question(&asker, WEB_GET, url, &header, &body, &http_status);
    if (status == STK_CANCELLED || status == STK_MEMORY)
        fail(err, status, "stopped while the container's credentials were asked for");
    else if (status || !aws_secret_from_json(body.data, body.len, "Token", out))
        status = fail(err, STK_DENIED,
                      "the container's server gave no credentials (HTTP status %d)", http_status);
    if (!status)
        strcpy(out->where, "the container's server");
done:
    secret_text_free(&token);
    secret_text_free(&body);
    return status;
}

static void instance_base(const struct aws_env *env, char *out, size_t cap)
{
    const char *given = aws_env_get(env, AWS_EC2_METADATA_SERVICE_ENDPOINT);
    int is_v6 = !strcasecmp(aws_env_get(env, AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE), "ipv6");
    if (*given)
        snprintf(out, cap, "%.500s", given);
    else
        snprintf(out, cap, "%s", is_v6 ? "http://[fd00:ec2::254]" : "http://169.254.169.254");
    size_t length = strlen(out);
    while (length && out[length - 1] == '/')
        out[--length] = '\0';
}

/* The name of the instance's role, then its credentials, both with a session's token, if there is
 * one. */
static stk_status instance_ask(const char *base, const struct asker *asker,
                               const struct web_header *token, struct secret *out,
                               struct text *body, int *http_status)
{
    static const char path[] = "/latest/meta-data/iam/security-credentials/";
    char url[1400], role[256], code[32];
    snprintf(url, sizeof(url), "%s%s", base, path);
    stk_status status = question(asker, WEB_GET, url, token, body, http_status);
    if (status)
        return status;
    size_t length = strcspn(body->data, "\r\n");
    if (!length || !secret_set(role, sizeof(role), body->data, length))
        return STK_NOT_FOUND;
    snprintf(url, sizeof(url), "%s%s%s", base, path, role);
    status = question(asker, WEB_GET, url, token, body, http_status);
    if (status)
        return status;
    if (flat_json_get(body->data, body->len, "Code", code, sizeof(code)) && strcmp(code, "Success"))
        return STK_NOT_FOUND;
    if (!aws_secret_from_json(body->data, body->len, "Token", out))
        return STK_NOT_FOUND;
    snprintf(out->where, sizeof(out->where), "the instance's role %.90s", role);
    return STK_OK;
}

/* Not 0: the server is there, and knows no sessions (IMDSv1), or their answers get lost on the way
 * into a container. */
static int may_go_without(const struct aws_env *env, stk_status status, int http_status)
{
    if (aws_env_is_true(env, AWS_EC2_METADATA_V1_DISABLED))
        return 0;
    return status == STK_NOT_FOUND &&
           (http_status == 403 || http_status == 404 || http_status == 405 || !http_status);
}

/* IMDSv2, else v1. An instance without a role, and a machine that is none, have nothing. */
stk_status aws_instance_find(const struct aws_env *env, struct net *net, struct secret *out,
                             struct stk_error *err)
{
    static const struct web_header lifetime = {"x-aws-ec2-metadata-token-ttl-seconds", "21600"};
    char base[512], url[1024];
    struct text token = {0}, body = {0};
    int http_status = 0;
    if (aws_env_is_true(env, AWS_EC2_METADATA_DISABLED))
        return STK_NOT_FOUND;
    struct asker asker = asker_of(env, net, (struct ask){.timeout_ms = 1000, .tries = 2});
    instance_base(env, base, sizeof(base));
    snprintf(url, sizeof(url), "%s/latest/api/token", base);
    stk_status status = question(&asker, WEB_PUT, url, &lifetime, &token, &http_status);
    if (status && may_go_without(env, status, http_status)) {
        secret_text_free(&token);
        status = STK_OK;
    }
    if (!status) {
        struct web_header header = {"x-aws-ec2-metadata-token", token.data};
        status = instance_ask(base, &asker, &header, out, &body, &http_status);
    }
    if (status == STK_CANCELLED || status == STK_MEMORY)
        fail(err, status, "stopped while the instance's credentials were asked for");
    else if (status == STK_IO)
        status = STK_NOT_FOUND;
    secret_text_free(&token);
    secret_text_free(&body);
    return status;
}
