#include "net/aws_chain.h"

#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "net/aws_time.h"
#include "net/flat_json.h"

#define MOST_ROLES 8 /* roles that are assumed by roles */

/* One search. */
struct search {
    struct aws_config config;
    struct net *net;
};

static void set_where(struct secret *out, const char *format, const char *a, const char *b)
{
    char words[sizeof(out->where) * 8];
    snprintf(words, sizeof(words), format, a, b);
    snprintf(out->where, sizeof(out->where), "%.*s", (int)sizeof(out->where) - 1, words);
}

stk_status aws_denied(stk_status status, struct stk_error *err)
{
    if (!status || status == STK_MEMORY || status == STK_CANCELLED)
        return status;
    if (err)
        err->status = STK_DENIED;
    return STK_DENIED;
}

int aws_secret_from_json(const char *json, size_t length, const char *token_name,
                         struct secret *out)
{
    char expires[64];
    out->kind = SECRET_AWS;
    if (!flat_json_get(json, length, "AccessKeyId", out->id, sizeof(out->id)) ||
        !flat_json_get(json, length, "SecretAccessKey", out->key, sizeof(out->key)))
        return 0;
    if (!flat_json_get(json, length, token_name, out->token, sizeof(out->token)) ||
        !strcmp(out->token, "null"))
        out->token[0] = '\0';
    out->expires_s = flat_json_get(json, length, "Expiration", expires, sizeof(expires))
                         ? aws_time_read(expires)
                         : 0;
    return out->id[0] && out->key[0];
}

stk_status aws_environment_find(const struct aws_env *env, struct secret *out,
                                struct stk_error *err)
{
    const char *id = aws_env_get(env, AWS_ACCESS_KEY_ID);
    const char *key = aws_env_get(env, AWS_SECRET_ACCESS_KEY);
    const char *token = aws_env_get(env, AWS_SESSION_TOKEN);
    if (!*id)
        return STK_NOT_FOUND;
    if (!*key)
        return fail(err, STK_DENIED, "AWS_ACCESS_KEY_ID is set, and AWS_SECRET_ACCESS_KEY is not");
    if (!*token)
        token = aws_env_get(env, AWS_SECURITY_TOKEN);
    if (!secret_set(out->id, sizeof(out->id), id, strlen(id)) ||
        !secret_set(out->key, sizeof(out->key), key, strlen(key)) ||
        !secret_set(out->token, sizeof(out->token), token, strlen(token)))
        return fail(err, STK_DENIED, "the credentials in the environment are too long");
    out->kind = SECRET_AWS;
    out->expires_s = aws_time_read(aws_env_get(env, AWS_CREDENTIAL_EXPIRATION));
    strcpy(out->where, "the environment");
    return STK_OK;
}

/* Keys in one of the two files. */
static stk_status file_find(const struct search *search, const struct ini *file, const char *path,
                            const char *profile, struct secret *out, struct stk_error *err)
{
    const struct aws_config *config = &search->config;
    if (!aws_config_get_from(config, file, profile, "aws_access_key_id", out->id, sizeof(out->id)))
        return STK_NOT_FOUND;
    if (!aws_config_get_from(config, file, profile, "aws_secret_access_key", out->key,
                             sizeof(out->key)))
        return fail(err, STK_DENIED,
                    "profile %.80s of %.120s has aws_access_key_id, and no aws_secret_access_key",
                    profile, path);
    if (!aws_config_get_from(config, file, profile, "aws_session_token", out->token,
                             sizeof(out->token)))
        (void)aws_config_get_from(config, file, profile, "aws_security_token", out->token,
                                  sizeof(out->token));
    out->kind = SECRET_AWS;
    set_where(out, "profile %s of %s", profile, path);
    return STK_OK;
}

/* A profile that signs for another one's role is asked alone: the environment is not its own. */
enum whose { THE_CHAINS, A_SOURCES };

/* A token in a file and a role: from the environment, or from a profile. */
static stk_status web_identity_find(const struct search *search, const char *profile,
                                    enum whose whose, struct secret *out, struct stk_error *err)
{
    const struct aws_config *config = &search->config;
    const struct aws_env *env = config->env;
    int is_chains = whose == THE_CHAINS;
    const char *file = is_chains ? aws_env_get(env, AWS_WEB_IDENTITY_TOKEN_FILE) : "";
    const char *arn = is_chains ? aws_env_get(env, AWS_ROLE_ARN) : "";
    const char *session = is_chains ? aws_env_get(env, AWS_ROLE_SESSION_NAME) : "";
    char path[1024];
    struct aws_role role = {0};
    if (*file)
        snprintf(path, sizeof(path), "%s", file);
    else if (!aws_config_get(config, profile, "web_identity_token_file", path, sizeof(path)))
        return STK_NOT_FOUND;
    if (*arn)
        snprintf(role.arn, sizeof(role.arn), "%s", arn);
    else if (!aws_config_get(config, profile, "role_arn", role.arn, sizeof(role.arn)))
        return fail(err, STK_DENIED, "a web identity's token is there, and no role: AWS_ROLE_ARN");
    if (*session)
        snprintf(role.session, sizeof(role.session), "%s", session);
    else
        (void)aws_config_get(config, profile, "role_session_name", role.session,
                             sizeof(role.session));
    role.token_file = path;
    stk_status status = aws_role_assume(config, search->net, &role, out, err);
    if (!status)
        set_where(out, "web identity, role %s%s", role.arn, "");
    return status;
}

static stk_status process_find(const struct search *search, const char *profile, struct secret *out,
                               struct stk_error *err)
{
    char command[4096];
    if (!aws_config_get(&search->config, profile, "credential_process", command, sizeof(command)))
        return STK_NOT_FOUND;
    stk_status status = aws_process_find(command, profile, out, err);
    if (!status)
        set_where(out, "credential_process of profile %s%s", profile, "");
    return status;
}

static stk_status sso_find(const struct search *search, const char *profile, struct stk_error *err)
{
    char value[256];
    const struct aws_config *config = &search->config;
    int is_login = aws_config_get(config, profile, "login_session", value, sizeof(value));
    if (!is_login && !aws_config_get(config, profile, "sso_session", value, sizeof(value)) &&
        !aws_config_get(config, profile, "sso_start_url", value, sizeof(value)))
        return STK_NOT_FOUND;
    fail(err, STK_DENIED, "profile %.100s uses %s, which is not asked here", profile,
         is_login ? "`aws login`" : "SSO");
    fail_remedy(err,
                "eval \"$(aws configure export-credentials --profile %.60s --format env)\", or a "
                "credential_process that calls it",
                profile);
    return STK_DENIED;
}

/* What a profile itself offers: web identity, SSO, credentials file, process, config file. */
static stk_status profile_find(const struct search *search, const char *profile, enum whose whose,
                               struct secret *out, struct stk_error *err)
{
    const struct aws_config *config = &search->config;
    stk_status status = web_identity_find(search, profile, whose, out, err);
    if (status == STK_NOT_FOUND)
        status = sso_find(search, profile, err);
    if (status == STK_NOT_FOUND)
        status =
            file_find(search, &config->credentials, config->credentials_path, profile, out, err);
    if (status == STK_NOT_FOUND)
        status = process_find(search, profile, out, err);
    if (status == STK_NOT_FOUND)
        status = file_find(search, &config->config, config->config_path, profile, out, err);
    return status;
}

static int has_role(const struct search *search, const char *profile)
{
    char value[1024];
    const struct aws_config *config = &search->config;
    return aws_config_get(config, profile, "role_arn", value, sizeof(value)) &&
           !aws_config_get(config, profile, "web_identity_token_file", value, sizeof(value));
}

static int has_keys(const struct search *search, const char *profile)
{
    char value[256];
    int has = aws_config_get(&search->config, profile, "aws_access_key_id", value, sizeof(value));
    secret_wipe(value, sizeof(value));
    return has;
}

/* credential_source: who signs for a role, where no profile does. */
static stk_status named_source_find(const struct search *search, const char *name,
                                    struct secret *out, struct stk_error *err)
{
    const struct aws_env *env = search->config.env;
    stk_status status = STK_NOT_FOUND;
    if (!strcmp(name, "Environment"))
        status = aws_environment_find(env, out, err);
    else if (!strcmp(name, "EcsContainer"))
        status = aws_container_find(env, search->net, out, err);
    else if (!strcmp(name, "Ec2InstanceMetadata"))
        status = aws_instance_find(env, search->net, out, err);
    else
        return fail(err, STK_DENIED,
                    "credential_source is %.60s; known are Environment, EcsContainer and "
                    "Ec2InstanceMetadata",
                    name);
    if (status == STK_NOT_FOUND)
        return fail(err, STK_DENIED, "credential_source %.60s has no credentials", name);
    return status;
}

static stk_status role_find(const struct search *search, const char *profile, int depth,
                            struct secret *out, struct stk_error *err);

/* Whoever signs for the role of a profile. */
static stk_status role_source_find(const struct search *search, const char *profile, int depth,
                                   struct secret *out, struct stk_error *err)
{
    const struct aws_config *config = &search->config;
    char source[128];
    if (aws_config_get(config, profile, "credential_source", source, sizeof(source)))
        return named_source_find(search, source, out, err);
    if (!aws_config_get(config, profile, "source_profile", source, sizeof(source)))
        return fail(
            err, STK_DENIED,
            "profile %.80s has a role_arn, and neither source_profile nor credential_source",
            profile);
    if (!aws_config_has(config, source))
        return fail(err, STK_DENIED, "source_profile %.80s of profile %.80s is not there", source,
                    profile);
    if (has_role(search, source) && !has_keys(search, source))
        return role_find(search, source, depth + 1, out, err);
    stk_status status = profile_find(search, source, A_SOURCES, out, err);
    if (status == STK_NOT_FOUND)
        return fail(err, STK_DENIED, "source_profile %.80s of profile %.80s has no credentials",
                    source, profile);
    return status;
}

static stk_status role_find(const struct search *search, const char *profile, int depth,
                            struct secret *out, struct stk_error *err)
{
    const struct aws_config *config = &search->config;
    struct aws_role role = {0};
    char value[256];
    if (!has_role(search, profile))
        return STK_NOT_FOUND;
    if (depth == MOST_ROLES)
        return fail(err, STK_DENIED, "the roles of profile %.100s lead around in a circle",
                    profile);
    (void)aws_config_get(config, profile, "role_arn", role.arn, sizeof(role.arn));
    (void)aws_config_get(config, profile, "role_session_name", role.session, sizeof(role.session));
    (void)aws_config_get(config, profile, "external_id", role.external_id,
                         sizeof(role.external_id));
    (void)aws_config_get(config, profile, "duration_seconds", role.duration, sizeof(role.duration));
    if (aws_config_get(config, profile, "mfa_serial", value, sizeof(value))) {
        fail(err, STK_DENIED, "profile %.100s wants a code of MFA, which is not asked for here",
             profile);
        fail_remedy(err,
                    "eval \"$(aws configure export-credentials --profile %.60s --format env)\"",
                    profile);
        return STK_DENIED;
    }
    struct secret *source = secret_new();
    stk_status status = source ? role_source_find(search, profile, depth, source, err)
                               : fail_memory(err, sizeof(*source));
    role.source = source;
    if (!status)
        status = aws_role_assume(config, search->net, &role, out, err);
    if (!status)
        set_where(out, "role %s of profile %s", role.arn, profile);
    secret_free(source);
    return status;
}

static stk_status found_nothing(const struct search *search, struct stk_error *err)
{
    const struct aws_config *config = &search->config;
    int asked = !aws_env_is_true(config->env, AWS_EC2_METADATA_DISABLED);
    fail(err, STK_DENIED,
         "no credentials were found: not in the environment, not in profile %.60s of %.70s or "
         "%.70s, and no container%s has them",
         config->profile, config->credentials_path, config->config_path,
         asked ? " or instance" : "");
    fail_remedy(err, "`aws configure`, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY; for public "
                     "data AWS_NO_SIGN_REQUEST=1");
    return STK_DENIED;
}

static stk_status chain_find(void *user, struct net *net, struct secret *out, struct stk_error *err)
{
    const struct aws_env *env = user;
    struct search search = {.net = net};
    stk_status status = aws_environment_find(env, out, err);
    if (status != STK_NOT_FOUND)
        return status;
    status = aws_config_load(&search.config, env, err);
    if (status)
        return status;
    status = role_find(&search, search.config.profile, 0, out, err);
    if (status == STK_NOT_FOUND)
        status = profile_find(&search, search.config.profile, THE_CHAINS, out, err);
    if (status == STK_NOT_FOUND)
        status = aws_container_find(env, net, out, err);
    if (status == STK_NOT_FOUND)
        status = aws_instance_find(env, net, out, err);
    if (status == STK_NOT_FOUND)
        status = found_nothing(&search, err);
    aws_config_reset(&search.config);
    return status;
}

static void chain_free(void *user)
{
    aws_env_free(user);
}

struct credentials_source aws_chain_source(struct aws_env *env)
{
    return (struct credentials_source){chain_find, chain_free, env};
}
