/* aws_config.h -- what the environment and the two files of AWS's tools say.
 * Owns: copies of both, wiped when they go.   Threads: an environment is read on the caller's
 * thread once, and by any later; a config is one thread's.   Errors: status; words name files and
 * profiles.   Not here: what follows from it (aws_chain.h, s3_site.c). */
#ifndef NET_AWS_CONFIG_H
#define NET_AWS_CONFIG_H

#include "net/ini.h"

/* The variables that are known. */
#define AWS_VARIABLE_LIST(X)                                                                       \
    X(ACCESS_KEY_ID)                                                                               \
    X(SECRET_ACCESS_KEY)                                                                           \
    X(SESSION_TOKEN)                                                                               \
    X(SECURITY_TOKEN)                                                                              \
    X(CREDENTIAL_EXPIRATION)                                                                       \
    X(PROFILE)                                                                                     \
    X(DEFAULT_PROFILE)                                                                             \
    X(CONFIG_FILE)                                                                                 \
    X(SHARED_CREDENTIALS_FILE)                                                                     \
    X(ROLE_ARN)                                                                                    \
    X(ROLE_SESSION_NAME)                                                                           \
    X(WEB_IDENTITY_TOKEN_FILE)                                                                     \
    X(CONTAINER_CREDENTIALS_RELATIVE_URI)                                                          \
    X(CONTAINER_CREDENTIALS_FULL_URI)                                                              \
    X(CONTAINER_AUTHORIZATION_TOKEN)                                                               \
    X(CONTAINER_AUTHORIZATION_TOKEN_FILE)                                                          \
    X(EC2_METADATA_V1_DISABLED)                                                                    \
    X(EC2_METADATA_DISABLED)                                                                       \
    X(EC2_METADATA_SERVICE_ENDPOINT)                                                               \
    X(EC2_METADATA_SERVICE_ENDPOINT_MODE)                                                          \
    X(METADATA_SERVICE_TIMEOUT)                                                                    \
    X(METADATA_SERVICE_NUM_ATTEMPTS)                                                               \
    X(REGION)                                                                                      \
    X(DEFAULT_REGION)                                                                              \
    X(ENDPOINT_URL)                                                                                \
    X(ENDPOINT_URL_S3)                                                                             \
    X(ENDPOINT_URL_STS)                                                                            \
    X(USE_FIPS_ENDPOINT)                                                                           \
    X(USE_DUALSTACK_ENDPOINT)                                                                      \
    X(REQUEST_PAYER)                                                                               \
    X(IGNORE_CONFIGURED_ENDPOINT_URLS)                                                             \
    X(NO_SIGN_REQUEST)

enum aws_variable {
#define X(name) AWS_##name,
    AWS_VARIABLE_LIST(X)
#undef X
        AWS_HOME, /* HOME, without the prefix */
    AWS_VARIABLE_COUNT
};

/* A copy, since a thread of ours reads it while the program may change its environment. */
struct aws_env;
struct aws_env *aws_env_new(void); /* NULL: no memory */
void aws_env_free(struct aws_env *env);
const char *aws_env_get(const struct aws_env *env, enum aws_variable variable); /* "" : not set */
int aws_env_is_true(const struct aws_env *env, enum aws_variable variable); /* 1, true, yes, on */

struct aws_config {
    const struct aws_env *env;
    struct ini config, credentials;
    char config_path[512], credentials_path[512];
    char profile[128];
};

/* Files that are not there are empty. STK_USAGE: AWS_PROFILE names a profile that neither has. */
STK_CHECK stk_status aws_config_load(struct aws_config *out, const struct aws_env *env,
                                     struct stk_error *err);
void aws_config_reset(struct aws_config *config);

int aws_config_has(const struct aws_config *config, const char *profile);
/* As ini_get: a profile's key, from the credentials file or else from the config file. */
int aws_config_get(const struct aws_config *config, const char *profile, const char *key, char *out,
                   size_t cap);
/* From one of the files alone. */
int aws_config_get_from(const struct aws_config *config, const struct ini *file,
                        const char *profile, const char *key, char *out, size_t cap);
/* AWS_REGION, AWS_DEFAULT_REGION, the profile's, else us-east-1. */
void aws_config_region(const struct aws_config *config, char *out, size_t cap);
/* A switch that the environment or the profile sets: AWS_USE_FIPS_ENDPOINT, use_fips_endpoint. */
int aws_config_is_true(const struct aws_config *config, enum aws_variable variable,
                       const char *key);
/* What the names of AWS's hosts end with in a region: "amazonaws.com" in most. */
const char *aws_region_suffix(const char *region);
/* The endpoint of a service ("s3", "sts"): its variable, AWS_ENDPOINT_URL, the profile's. 0: none
 * is given. */
int aws_config_endpoint(const struct aws_config *config, const char *service, char *out,
                        size_t cap);

#endif
