#include "net/aws_config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/fail.h"

struct aws_env {
    size_t size;
    const char *values[AWS_VARIABLE_COUNT];
    char text[];
};

static const char *const names[AWS_VARIABLE_COUNT] = {
#define X(name) [AWS_##name] = "AWS_" #name,
    AWS_VARIABLE_LIST(X)
#undef X
        [AWS_HOME] = "HOME"};

struct aws_env *aws_env_new(void)
{
    const char *from[AWS_VARIABLE_COUNT];
    size_t size = sizeof(struct aws_env), used = 0;
    for (int i = 0; i < AWS_VARIABLE_COUNT; i++) {
        from[i] = getenv(names[i]);
        size += from[i] ? strlen(from[i]) + 1 : 0;
    }
    struct aws_env *env = secret_pages_new(size);
    if (!env)
        return NULL;
    env->size = size;
    for (int i = 0; i < AWS_VARIABLE_COUNT; i++) {
        if (!from[i])
            continue;
        env->values[i] = env->text + used;
        strcpy(env->text + used, from[i]);
        used += strlen(from[i]) + 1;
    }
    return env;
}

void aws_env_free(struct aws_env *env)
{
    if (env)
        secret_pages_free(env, env->size);
}

const char *aws_env_get(const struct aws_env *env, enum aws_variable variable)
{
    return env->values[variable] ? env->values[variable] : "";
}

static int is_true(const char *value)
{
    return !strcmp(value, "1") || !strcasecmp(value, "true") || !strcasecmp(value, "yes") ||
           !strcasecmp(value, "on");
}

int aws_env_is_true(const struct aws_env *env, enum aws_variable variable)
{
    return is_true(aws_env_get(env, variable));
}

/* Where a file is: by its variable, where "~" may stand for the home, else ~/.aws/NAME. */
static void file_path_of(const struct aws_env *env, enum aws_variable variable, const char *name,
                         char *out, size_t cap)
{
    const char *given = aws_env_get(env, variable), *home = aws_env_get(env, AWS_HOME);
    if (given[0] == '~' && given[1] == '/')
        snprintf(out, cap, "%s%s", home, given + 1);
    else if (*given)
        snprintf(out, cap, "%s", given);
    else
        snprintf(out, cap, "%s/.aws/%s", home, name);
}

static stk_status read_file(struct ini *file, const char *path, struct stk_error *err)
{
    stk_status status = ini_read(file, path, err);
    return status == STK_NOT_FOUND ? STK_OK : status;
}

stk_status aws_config_load(struct aws_config *out, const struct aws_env *env, struct stk_error *err)
{
    memset(out, 0, sizeof(*out));
    out->env = env;
    file_path_of(env, AWS_CONFIG_FILE, "config", out->config_path, sizeof(out->config_path));
    file_path_of(env, AWS_SHARED_CREDENTIALS_FILE, "credentials", out->credentials_path,
                 sizeof(out->credentials_path));
    const char *profile = aws_env_get(env, AWS_PROFILE);
    if (!*profile)
        profile = aws_env_get(env, AWS_DEFAULT_PROFILE);
    snprintf(out->profile, sizeof(out->profile), "%s", *profile ? profile : "default");
    stk_status status = read_file(&out->config, out->config_path, err);
    if (!status)
        status = read_file(&out->credentials, out->credentials_path, err);
    if (!status && *profile && strcmp(profile, "default") && !aws_config_has(out, profile)) {
        status =
            fail(err, STK_USAGE, "AWS_PROFILE is %.100s, and no such profile is in %.80s or %.80s",
                 profile, out->config_path, out->credentials_path);
        fail_remedy(err, "name one that is there, or unset AWS_PROFILE");
    }
    if (status)
        aws_config_reset(out);
    return status;
}

void aws_config_reset(struct aws_config *config)
{
    ini_free(&config->config);
    ini_free(&config->credentials);
}

/* The config file calls them "profile NAME", all but "default". */
static void config_section(const char *profile, char *out, size_t cap)
{
    snprintf(out, cap, "profile %s", profile);
}

int aws_config_has(const struct aws_config *config, const char *profile)
{
    char section[160];
    config_section(profile, section, sizeof(section));
    return ini_has(&config->credentials, profile) || ini_has(&config->config, section) ||
           (!strcmp(profile, "default") && ini_has(&config->config, profile));
}

int aws_config_get_from(const struct aws_config *config, const struct ini *file,
                        const char *profile, const char *key, char *out, size_t cap)
{
    char section[160];
    if (file == &config->credentials)
        return ini_get(file, profile, key, out, cap);
    config_section(profile, section, sizeof(section));
    if (ini_get(file, section, key, out, cap))
        return 1;
    return !strcmp(profile, "default") && ini_get(file, profile, key, out, cap);
}

int aws_config_get(const struct aws_config *config, const char *profile, const char *key, char *out,
                   size_t cap)
{
    return aws_config_get_from(config, &config->credentials, profile, key, out, cap) ||
           aws_config_get_from(config, &config->config, profile, key, out, cap);
}

void aws_config_region(const struct aws_config *config, char *out, size_t cap)
{
    const char *region = aws_env_get(config->env, AWS_REGION);
    if (!*region)
        region = aws_env_get(config->env, AWS_DEFAULT_REGION);
    if (*region)
        snprintf(out, cap, "%s", region);
    else if (!aws_config_get(config, config->profile, "region", out, cap))
        snprintf(out, cap, "us-east-1");
}

int aws_config_is_true(const struct aws_config *config, enum aws_variable variable, const char *key)
{
    const char *told = aws_env_get(config->env, variable);
    char value[16];
    if (*told)
        return is_true(told);
    return aws_config_get(config, config->profile, key, value, sizeof(value)) && is_true(value);
}

const char *aws_region_suffix(const char *region)
{
    static const struct {
        const char *prefix, *suffix;
    } partitions[] = {{"cn-", "amazonaws.com.cn"},    {"eusc-", "amazonaws.eu"},
                      {"us-iso-", "c2s.ic.gov"},      {"us-isob-", "sc2s.sgov.gov"},
                      {"eu-isoe-", "cloud.adc-e.uk"}, {"us-isof-", "csp.hci.ic.gov"}};
    for (size_t i = 0; i < sizeof(partitions) / sizeof(partitions[0]); i++)
        if (!strncmp(region, partitions[i].prefix, strlen(partitions[i].prefix)))
            return partitions[i].suffix;
    return "amazonaws.com";
}

/* [services NAME] of the config file, which the profile's key "services" names. */
static int services_endpoint(const struct aws_config *config, const char *service, char *out,
                             size_t cap)
{
    char name[128], section[160], key[64];
    if (!aws_config_get(config, config->profile, "services", name, sizeof(name)))
        return 0;
    snprintf(section, sizeof(section), "services %s", name);
    snprintf(key, sizeof(key), "%s.endpoint_url", service);
    return ini_get(&config->config, section, key, out, cap);
}

int aws_config_endpoint(const struct aws_config *config, const char *service, char *out, size_t cap)
{
    const struct aws_env *env = config->env;
    const char *given =
        aws_env_get(env, !strcmp(service, "s3") ? AWS_ENDPOINT_URL_S3 : AWS_ENDPOINT_URL_STS);
    out[0] = '\0';
    if (aws_env_is_true(env, AWS_IGNORE_CONFIGURED_ENDPOINT_URLS))
        return 0;
    if (!*given)
        given = aws_env_get(env, AWS_ENDPOINT_URL);
    if (*given)
        return secret_set(out, cap, given, strlen(given));
    return services_endpoint(config, service, out, cap) ||
           aws_config_get(config, config->profile, "endpoint_url", out, cap);
}
