/* aws_chain.h -- the places where AWS's own tools look for credentials, in botocore's order:
 * environment; a profile's role; web identity; SSO (refused, with a remedy); the credentials file;
 * a profile's process; the config file; a container's server; an instance's. Owns: a copy of the
 * environment.   Threads: one search at a time.   Errors: STK_DENIED names the places; a place that
 * is set up but fails ends the search, as botocore's does. Not here: refreshing (credentials.h),
 * signing (sigv4.h). */
#ifndef NET_AWS_CHAIN_H
#define NET_AWS_CHAIN_H

#include "net/aws_config.h"
#include "net/net.h"

/* A source for credentials_new; env is the source's from now on. */
struct credentials_source aws_chain_source(struct aws_env *env);

/* --- the places; each is asked alone by tests ------------------------------------------------ */
/* STK_NOT_FOUND: nothing is there, look further. */
STK_CHECK stk_status aws_environment_find(const struct aws_env *env, struct secret *out,
                                          struct stk_error *err);
STK_CHECK stk_status aws_container_find(const struct aws_env *env, struct net *net,
                                        struct secret *out, struct stk_error *err);
STK_CHECK stk_status aws_instance_find(const struct aws_env *env, struct net *net,
                                       struct secret *out, struct stk_error *err);
/* Runs a command line that prints a JSON object. */
STK_CHECK stk_status aws_process_find(const char *command, const char *profile, struct secret *out,
                                      struct stk_error *err);
/* Splits as a shell would, without any of its other powers: blanks, quotes, backslashes. Words are
 * cut in place; at most cap - 1 and a NULL. -1: a quote does not end, or there are too many. */
int aws_process_split(char *command, char **words, int cap);

/* A place that is set up and fails is STK_DENIED, whatever file or program it failed by: another
 * status would be read as "look further". */
STK_CHECK stk_status aws_denied(stk_status status, struct stk_error *err);

/* A role of STS. */
struct aws_role {
    char arn[256], session[128], external_id[256], duration[16];
    const char *token_file; /* web identity's; NULL: source signs */
    const struct secret *source;
};
STK_CHECK stk_status aws_role_assume(const struct aws_config *config, struct net *net,
                                     const struct aws_role *role, struct secret *out,
                                     struct stk_error *err);

/* The members that a process, a container and an instance all answer with. token_name: "Token" or
 * "SessionToken". 0: the id or the key is not there. */
int aws_secret_from_json(const char *json, size_t length, const char *token_name,
                         struct secret *out);

#endif
