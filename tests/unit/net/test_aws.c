#include "base/testing.h"

#include <time.h>

#include "net/answering.h"
#include "net/aws_chain.h"

static char folder[PATH_MAX];
static struct net *net;

static int begin(void **state)
{
    (void)state;
    folder_new(folder);
    assert_int_equal(net_take(&net, NULL), STK_OK);
    return 0;
}

static int end(void **state)
{
    (void)state;
    net_give(net);
    folder_remove(folder);
    return 0;
}

/* An environment of its own for each test: no instance to ask, and a home without files. */
static int clean(void **state)
{
    (void)state;
    extern char **environ;
    for (char **at = environ; *at;) {
        char name[128];
        snprintf(name, sizeof(name), "%.*s", (int)strcspn(*at, "="), *at);
        if (!strncmp(name, "AWS_", 4))
            unsetenv(name); /* environ moves up */
        else
            at++;
    }
    setenv("HOME", folder, 1);
    setenv("AWS_EC2_METADATA_DISABLED", "true", 1);
    setenv("AWS_METADATA_SERVICE_TIMEOUT", "30", 1); /* whatever else this machine does */
    setenv("AWS_CONFIG_FILE", path_in(folder, "config"), 1);
    setenv("AWS_SHARED_CREDENTIALS_FILE", path_in(folder, "credentials"), 1);
    text_write(path_in(folder, "config"), "");
    text_write(path_in(folder, "credentials"), "");
    return 0;
}

/* What the chain finds now: "id key token" and where; or the error's words. */
static struct stk_error error;
static char where[128];
static int64_t expires_s;
static const char *found(void)
{
    static char out[512];
    struct credentials_source source = aws_chain_source(aws_env_new());
    struct secret *secret = secret_new();
    memset(&error, 0, sizeof(error));
    stk_status status = source.find(source.user, net, secret, &error);
    snprintf(out, sizeof(out), "%.100s %.100s %.200s", secret->id, secret->key, secret->token);
    if (status) {
        assert_int_equal(status, error.status);
        assert_null(strstr(error.what, "hidden"));
        assert_null(strstr(error.remedy, "hidden"));
        snprintf(out, sizeof(out), "%.400s", error.what);
    }
    strcpy(where, secret->where);
    expires_s = secret->expires_s;
    secret_free(secret);
    source.free(source.user);
    return out;
}

static void the_environment_comes_first(void **state)
{
    (void)state;
    setenv("AWS_ACCESS_KEY_ID", "EID", 1);
    assert_string_equal(found(), "AWS_ACCESS_KEY_ID is set, and AWS_SECRET_ACCESS_KEY is not");
    setenv("AWS_SECRET_ACCESS_KEY", "hidden", 1);
    assert_string_equal(found(), "EID hidden ");
    setenv("AWS_SECURITY_TOKEN", "old", 1);
    assert_string_equal(found(), "EID hidden old");
    setenv("AWS_SESSION_TOKEN", "tok", 1);
    setenv("AWS_CREDENTIAL_EXPIRATION", "2013-05-24T00:00:00Z", 1);
    text_write(path_in(folder, "credentials"),
               "[default]\naws_access_key_id = F\naws_secret_access_key = k\n");
    assert_string_equal(found(), "EID hidden tok");
    assert_string_equal(where, "the environment");
    assert_int_equal(expires_s, 1369353600);
}

static void files_come_in_their_order_and_by_profile(void **state)
{
    (void)state;
    text_write(path_in(folder, "config"),
               "[default]\naws_access_key_id = CID\naws_secret_access_key = hidden-c\n"
               "[profile work]\naws_access_key_id = WID\naws_secret_access_key = hidden-w\n"
               "aws_session_token = T\n[profile half]\naws_access_key_id = H\n");
    assert_string_equal(found(), "CID hidden-c ");
    text_write(path_in(folder, "credentials"),
               "[default]\naws_access_key_id = SID\naws_secret_access_key = hidden-s\n");
    assert_string_equal(found(), "SID hidden-s ");
    assert_non_null(strstr(where, "profile default of "));
    setenv("AWS_PROFILE", "work", 1);
    assert_string_equal(found(), "WID hidden-w T");
    setenv("AWS_PROFILE", "half", 1);
    assert_non_null(strstr(found(), "no aws_secret_access_key"));
    setenv("AWS_PROFILE", "gone", 1);
    assert_non_null(strstr(found(), "AWS_PROFILE is gone"));
}

static void nothing_found_names_the_places_and_a_remedy(void **state)
{
    (void)state;
    assert_non_null(strstr(found(), "no credentials were found: not in the environment"));
    assert_int_equal(error.status, STK_DENIED);
    assert_non_null(strstr(error.what, "credentials or "));
    assert_non_null(strstr(error.remedy, "AWS_NO_SIGN_REQUEST=1"));
}

static void sso_is_refused_with_a_remedy(void **state)
{
    (void)state;
    text_write(path_in(folder, "config"), "[profile s]\nsso_session = x\nsso_account_id = 1\n");
    setenv("AWS_PROFILE", "s", 1);
    assert_non_null(strstr(found(), "uses SSO"));
    assert_non_null(strstr(error.remedy, "aws configure export-credentials --profile s"));
    text_write(path_in(folder, "config"), "[profile s]\nlogin_session = arn:x\n");
    assert_non_null(strstr(found(), "uses `aws login`"));
}

static void a_process_prints_credentials(void **state)
{
    (void)state;
    text_write(path_in(folder, "out.json"),
               "{\"Version\": 1, \"AccessKeyId\": \"PID\", \"SecretAccessKey\": \"hidden\", "
               "\"SessionToken\": \"t\", \"Expiration\": \"2033-01-01T00:00:00+00:00\"}");
    char config[2 * PATH_MAX];
    snprintf(config, sizeof(config), "[default]\ncredential_process = cat \"%s/out.json\"\n",
             folder);
    text_write(path_in(folder, "config"), config);
    assert_string_equal(found(), "PID hidden t");
    assert_string_equal(where, "credential_process of profile default");
    assert_int_equal(expires_s, 1988150400);
    text_write(path_in(folder, "out.json"), "{\"Version\": 2, \"AccessKeyId\": \"PID\"}");
    assert_non_null(strstr(found(), "no credentials of version 1"));
    text_write(path_in(folder, "config"), "[default]\ncredential_process = false\n");
    assert_non_null(strstr(found(), "ended with status 1"));
    text_write(path_in(folder, "config"), "[default]\ncredential_process = /no/such/file x\n");
    assert_non_null(strstr(found(), "cannot be started: /no/such/file"));
}

static int at_once(void *user)
{
    (void)user;
    return 1;
}

static void a_process_that_hangs_ends_with_the_patience(void **state)
{
    (void)state;
    struct secret *secret = secret_new();
    struct stk_error err;
    net_patience_set(&(struct net_patience){.is_over = at_once});
    assert_int_equal(aws_process_find("sleep 1000", "p", secret, &err), STK_DENIED);
    net_patience_set(NULL);
    secret_free(secret);
}

static void command_lines_are_split_as_a_shell_does(void **state)
{
    (void)state;
    char line[] = "  a 'b  c' \"d \\\"e\" f\\ g '' h'i'\"j\"  ";
    char *words[16];
    assert_int_equal(aws_process_split(line, words, 16), 6);
    assert_string_equal(words[0], "a");
    assert_string_equal(words[1], "b  c");
    assert_string_equal(words[2], "d \"e");
    assert_string_equal(words[3], "f g");
    assert_string_equal(words[4], "");
    assert_string_equal(words[5], "hij");
    assert_null(words[6]);
    char open[] = "a 'b";
    assert_int_equal(aws_process_split(open, words, 16), -1);
    char many[] = "a b c d";
    assert_int_equal(aws_process_split(many, words, 4), -1);
}

/* Looks through the environment and both files, and runs a process. */
static int find_once(void *user)
{
    struct aws_env *env = aws_env_new();
    struct secret *secret = secret_new();
    stk_status status = STK_MEMORY;
    (void)user;
    if (env && secret) {
        struct credentials_source source = aws_chain_source(env);
        status = source.find(source.user, net, secret, NULL);
        assert_true(!status || status == STK_MEMORY);
    }
    secret_free(secret);
    aws_env_free(env);
    return !status;
}

static void memory_that_runs_out_anywhere_is_told(void **state)
{
    (void)state;
    char config[2 * PATH_MAX];
    text_write(path_in(folder, "out.json"), "{\"Version\": 1, \"AccessKeyId\": \"PID\", "
                                            "\"SecretAccessKey\": \"hidden\"}");
    snprintf(config, sizeof(config), "[default]\ncredential_process = cat %s/out.json\n", folder);
    text_write(path_in(folder, "config"), config);
    fail_each_allocation(find_once, NULL);
}

/* --- servers --------------------------------------------------------------------------------- */

#define JSON                                                                                       \
    "{\"Code\": \"Success\", \"AccessKeyId\": \"MID\", \"SecretAccessKey\": \"hidden\", "          \
    "\"Token\": \"tok\", \"Expiration\": \"2033-01-01T00:00:00Z\"}"

static struct answering_step step(const char *method, const char *path, const char *body)
{
    return (struct answering_step){
        .method = method, .path = path, .status = 200, .body = body, .length = strlen(body)};
}

static void an_instance_is_asked_with_a_token(void **state)
{
    (void)state;
    const struct answering_step steps[] = {
        step("GET", "/latest/meta-data/iam/security-credentials/my-role", JSON),
        step("GET", "/latest/meta-data/iam/security-credentials/", "my-role\n"),
        step("PUT", "/latest/api/token", "session"),
    };
    struct answering *server = answering_start(steps, 3);
    unsetenv("AWS_EC2_METADATA_DISABLED");
    setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", answering_url(server, "/"), 1);
    assert_string_equal(found(), "MID hidden tok");
    assert_string_equal(where, "the instance's role my-role");
    assert_int_equal(expires_s, 1988150400);
    assert_true(answering_had(server, 0, "x-aws-ec2-metadata-token-ttl-seconds", "21600"));
    assert_true(answering_had(server, 1, "x-aws-ec2-metadata-token", "session"));
    assert_true(answering_had(server, 2, "x-aws-ec2-metadata-token", "session"));
    answering_stop(server);
}

/* An instance, or what imitates one, that knows no sessions: botocore asks it without. */
static void an_instance_without_sessions_is_asked_without_a_token(void **state)
{
    (void)state;
    const int refusals[] = {403, 404, 405};
    unsetenv("AWS_EC2_METADATA_DISABLED");
    for (size_t i = 0; i < 3; i++) {
        const struct answering_step steps[] = {
            step("GET", "/latest/meta-data/iam/security-credentials/my-role", JSON),
            step("GET", "/latest/meta-data/iam/security-credentials/", "my-role"),
            {.method = "PUT", .status = refusals[i]},
        };
        struct answering *server = answering_start(steps, 3);
        setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", answering_url(server, ""), 1);
        assert_string_equal(found(), "MID hidden tok");
        assert_false(answering_had(server, 1, "x-aws-ec2-metadata-token", NULL));
        setenv("AWS_EC2_METADATA_V1_DISABLED", "true", 1);
        assert_non_null(strstr(found(), "no container or instance has them"));
        unsetenv("AWS_EC2_METADATA_V1_DISABLED");
        answering_stop(server);
    }
}

/* A container one hop too far away gets no answer to its PUT, and one to its GETs. */
static void an_instance_whose_token_gets_lost_is_asked_without_one(void **state)
{
    (void)state;
    const struct answering_step steps[] = {
        step("GET", "/latest/meta-data/iam/security-credentials/my-role", JSON),
        step("GET", "/latest/meta-data/iam/security-credentials/", "my-role"),
        {.method = "PUT", .holds = 1},
    };
    struct answering *server = answering_start(steps, 3);
    unsetenv("AWS_EC2_METADATA_DISABLED");
    setenv("AWS_METADATA_SERVICE_TIMEOUT", "2", 1);
    setenv("AWS_METADATA_SERVICE_NUM_ATTEMPTS", "1", 1);
    setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", answering_url(server, ""), 1);
    assert_string_equal(found(), "MID hidden tok");
    answering_stop(server);
}

static void a_machine_that_is_no_instance_has_nothing(void **state)
{
    (void)state;
    struct answering *server = answering_start(&(struct answering_step){.status = 404}, 1);
    unsetenv("AWS_EC2_METADATA_DISABLED");
    setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", answering_url(server, ""), 1);
    assert_non_null(strstr(found(), "no container or instance has them"));
    answering_stop(server);
    assert_non_null(strstr(found(), "no container or instance has them")); /* nobody listens */
}

static void a_container_is_asked_with_its_token(void **state)
{
    (void)state;
    const struct answering_step steps[] = {step("GET", "/creds", JSON)};
    struct answering *server = answering_start(steps, 1);
    setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", answering_url(server, "/creds"), 1);
    setenv("AWS_CONTAINER_AUTHORIZATION_TOKEN", "hidden-t", 1);
    assert_string_equal(found(), "MID hidden tok");
    assert_string_equal(where, "the container's server");
    assert_true(answering_had(server, 0, "Authorization", "hidden-t"));
    text_write(path_in(folder, "token"), "hidden-f\n");
    setenv("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", path_in(folder, "token"), 1);
    assert_string_equal(found(), "MID hidden tok");
    assert_true(answering_had(server, 1, "Authorization", "hidden-f"));
    text_write(path_in(folder, "token"), "hidden\nInjected: 1");
    assert_non_null(strstr(found(), "a line's end"));
    answering_stop(server);
    setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://example.org/creds", 1);
    assert_non_null(strstr(found(), "neither this machine nor reached by https"));
}

#define GIVEN(action)                                                                              \
    "<" action "Response><" action "Result><Credentials><AccessKeyId>RID</AccessKeyId>"            \
    "<SecretAccessKey>hidden</SecretAccessKey><SessionToken>rt</SessionToken>"                     \
    "<Expiration>2033-01-01T00:00:00Z</Expiration></Credentials></" action "Result></" action      \
    "Response>"

static const char *body_of(struct answering *server, uint32_t number)
{
    static char out[2048];
    size_t length;
    const void *body = answering_body(server, number, &length);
    assert_true(length < sizeof(out));
    memcpy(out, body, length);
    out[length] = '\0';
    return out;
}

static void a_role_is_assumed_with_its_sources_keys(void **state)
{
    (void)state;
    const struct answering_step steps[] = {step("POST", "/", GIVEN("AssumeRole"))};
    struct answering *server = answering_start(steps, 1);
    setenv("AWS_ENDPOINT_URL_STS", answering_url(server, ""), 1);
    setenv("AWS_PROFILE", "outer", 1);
    text_write(path_in(folder, "config"),
               "[profile outer]\nrole_arn = arn:aws:iam::1:role/a\nsource_profile = inner\n"
               "role_session_name = me\nexternal_id = x y\nduration_seconds = 900\n"
               "[profile inner]\nrole_arn = arn:aws:iam::1:role/b\nsource_profile = base\n"
               "[profile looped]\nrole_arn = r\nsource_profile = looped\n"
               "[profile alone]\nrole_arn = r\n"
               "[profile coded]\nrole_arn = r\nsource_profile = base\nmfa_serial = m\n"
               "[profile env]\nrole_arn = r\ncredential_source = EcsContainer\n");
    text_write(path_in(folder, "credentials"),
               "[base]\naws_access_key_id = BID\naws_secret_access_key = hidden\n");
    assert_string_equal(found(), "RID hidden rt");
    assert_string_equal(where, "role arn:aws:iam::1:role/a of profile outer");
    assert_int_equal(expires_s, 1988150400);
    assert_int_equal(answering_requests(server), 2);
    assert_non_null(strstr(answering_head(server, 0), "Credential=BID/"));
    assert_non_null(strstr(answering_head(server, 0), "/us-east-1/sts/aws4_request"));
    assert_non_null(strstr(answering_head(server, 1), "Credential=RID/"));
    assert_true(answering_had(server, 1, "x-amz-security-token", "rt"));
    assert_string_equal(body_of(server, 1),
                        "Action=AssumeRole&Version=2011-06-15&RoleArn=arn%3Aaws%3Aiam%3A%3A1%3A"
                        "role%2Fa&RoleSessionName=me&ExternalId=x%20y&DurationSeconds=900");
    setenv("AWS_PROFILE", "looped", 1);
    assert_non_null(strstr(found(), "around in a circle"));
    setenv("AWS_PROFILE", "alone", 1);
    assert_non_null(strstr(found(), "neither source_profile nor credential_source"));
    setenv("AWS_PROFILE", "coded", 1);
    assert_non_null(strstr(found(), "MFA"));
    setenv("AWS_PROFILE", "env", 1);
    assert_non_null(strstr(found(), "credential_source EcsContainer has no credentials"));
    answering_stop(server);
}

static void a_web_identity_becomes_a_role(void **state)
{
    (void)state;
    const struct answering_step steps[] = {step("POST", "/", GIVEN("AssumeRoleWithWebIdentity"))};
    struct answering *server = answering_start(steps, 1);
    setenv("AWS_ENDPOINT_URL_STS", answering_url(server, ""), 1);
    setenv("AWS_ROLE_ARN", "arn:r", 1);
    setenv("AWS_ROLE_SESSION_NAME", "s", 1);
    setenv("AWS_WEB_IDENTITY_TOKEN_FILE", path_in(folder, "token"), 1);
    text_write(path_in(folder, "token"), "ey.J-w_t\n");
    assert_string_equal(found(), "RID hidden rt");
    assert_string_equal(where, "web identity, role arn:r");
    assert_string_equal(body_of(server, 0),
                        "Action=AssumeRoleWithWebIdentity&Version=2011-06-15&RoleArn=arn%3Ar&"
                        "RoleSessionName=s&WebIdentityToken=ey.J-w_t");
    assert_false(answering_had(server, 0, "Authorization", NULL));
    unlink(path_in(folder, "token"));
    assert_non_null(strstr(found(), "cannot open"));
    answering_stop(server);
}

/* botocore: the environment's web identity is not that of a profile which signs for another. */
static void a_source_profile_does_not_take_the_environments_web_identity(void **state)
{
    (void)state;
    const struct answering_step steps[] = {step("POST", "/", GIVEN("AssumeRole"))};
    struct answering *server = answering_start(steps, 1);
    setenv("AWS_ENDPOINT_URL_STS", answering_url(server, ""), 1);
    setenv("AWS_ROLE_ARN", "arn:of-the-pod", 1);
    setenv("AWS_WEB_IDENTITY_TOKEN_FILE", path_in(folder, "token"), 1);
    text_write(path_in(folder, "token"), "hidden-t");
    setenv("AWS_PROFILE", "outer", 1);
    text_write(path_in(folder, "config"),
               "[profile outer]\nrole_arn = arn:r\nsource_profile = base\n");
    text_write(path_in(folder, "credentials"),
               "[base]\naws_access_key_id = BID\naws_secret_access_key = hidden\n");
    assert_string_equal(found(), "RID hidden rt");
    assert_int_equal(answering_requests(server), 1);
    assert_non_null(strstr(answering_head(server, 0), "Credential=BID/"));
    answering_stop(server);
}

/* STS refuses what is signed by a clock that is wrong, and says what it is there. */
static void a_wrong_clock_is_set_by_that_of_sts(void **state)
{
    (void)state;
    struct answering_step late = step("POST", "/", "<ErrorResponse/>");
    late.status = 403;
    late.times = 1;
    late.headers = "Date: Fri, 24 May 2013 00:00:00 GMT\r\n";
    const struct answering_step steps[] = {late, step("POST", "/", GIVEN("AssumeRole"))};
    struct answering *server = answering_start(steps, 2);
    setenv("AWS_ENDPOINT_URL_STS", answering_url(server, ""), 1);
    setenv("AWS_PROFILE", "outer", 1);
    text_write(path_in(folder, "config"),
               "[profile outer]\nrole_arn = arn:r\nsource_profile = outer\n"
               "aws_access_key_id = BID\naws_secret_access_key = hidden\n");
    assert_string_equal(found(), "RID hidden rt");
    assert_int_equal(answering_requests(server), 2);
    assert_non_null(strstr(answering_head(server, 1), "Credential=BID/20130524/"));
    answering_stop(server);
}

static void each_part_of_aws_has_hosts_of_its_own(void **state)
{
    (void)state;
    static const char *const wanted[][2] = {
        {"us-east-1", "amazonaws.com"},     {"us-gov-west-1", "amazonaws.com"},
        {"cn-north-1", "amazonaws.com.cn"}, {"eusc-de-east-1", "amazonaws.eu"},
        {"us-iso-east-1", "c2s.ic.gov"},    {"us-isob-east-1", "sc2s.sgov.gov"},
        {"auto", "amazonaws.com"},
    };
    for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++)
        assert_string_equal(aws_region_suffix(wanted[i][0]), wanted[i][1]);
}

static void a_refusal_of_sts_is_told_with_its_words(void **state)
{
    (void)state;
    static const char body[] = "<ErrorResponse><Error><Code>AccessDenied</Code><Message>not "
                               "yours</Message></Error></ErrorResponse>";
    struct answering_step refusal = step("POST", "/", body);
    refusal.status = 403;
    struct answering *server = answering_start(&refusal, 1);
    setenv("AWS_ENDPOINT_URL", answering_url(server, ""), 1);
    setenv("AWS_ROLE_ARN", "arn:r", 1);
    setenv("AWS_WEB_IDENTITY_TOKEN_FILE", path_in(folder, "token"), 1);
    text_write(path_in(folder, "token"), "hidden");
    assert_string_equal(found(), "STS did not give the role arn:r: 403 AccessDenied not yours");
    assert_int_equal(error.status, STK_DENIED);
    answering_stop(server);
}

#define TEST(name) cmocka_unit_test_setup(name, clean)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_environment_comes_first),
        TEST(files_come_in_their_order_and_by_profile),
        TEST(nothing_found_names_the_places_and_a_remedy),
        TEST(sso_is_refused_with_a_remedy),
        TEST(a_process_prints_credentials),
        TEST(a_process_that_hangs_ends_with_the_patience),
        TEST(command_lines_are_split_as_a_shell_does),
        TEST(memory_that_runs_out_anywhere_is_told),
        TEST(an_instance_is_asked_with_a_token),
        TEST(an_instance_without_sessions_is_asked_without_a_token),
        TEST(an_instance_whose_token_gets_lost_is_asked_without_one),
        TEST(a_machine_that_is_no_instance_has_nothing),
        TEST(a_container_is_asked_with_its_token),
        TEST(a_role_is_assumed_with_its_sources_keys),
        TEST(a_web_identity_becomes_a_role),
        TEST(a_source_profile_does_not_take_the_environments_web_identity),
        TEST(a_wrong_clock_is_set_by_that_of_sts),
        TEST(each_part_of_aws_has_hosts_of_its_own),
        TEST(a_refusal_of_sts_is_told_with_its_words),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
