#include "store/site_probe.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/fail.h"
#include "base/memory.h"
#include "store/probe_connect.h"
#include "store/probe_speed.h"
#include "store/remote_glob.h"

#define PROBE_OBJECTS 64   /* that speeds are measured over */
#define PROBE_LOOKS 9      /* reads of one byte that the latency is taken from */
#define PROBE_TLS_S 15     /* seconds for one bare request */
#define PROBE_PAGE 1000    /* names that are asked for */
#define PROBE_TEXT 4194304 /* most bytes of such a page */
#define PROBE_KEY 1100     /* bytes of a key; clouds know 1024 */

struct probe {
    const struct probe_options *options;
    struct net *net;
    struct site *site;
    const char *key; /* of the URI, in the site */
    int https;
    int64_t began; /* the step that is under way */
    struct probe_object objects[PROBE_OBJECTS];
    uint32_t object_count;
};

static void tell(struct probe *probe, const char *step, enum probe_state state, const char *remedy,
                 const char *format, ...) STK_PRINTF(5, 6);

static void tell(struct probe *probe, const char *step, enum probe_state state, const char *remedy,
                 const char *format, ...)
{
    char value[512];
    va_list list;
    va_start(list, format);
    vsnprintf(value, sizeof value, format, list);
    va_end(list);
    int64_t now = clock_now();
    struct probe_row row = {
        .step = step,
        .state = state,
        .value = value,
        .remedy = remedy,
        .seconds = state == PROBE_ABSENT ? 0 : (double)(now - probe->began) * 1e-9,
    };
    probe->options->row(probe->options->user, &row);
    probe->began = now;
}

/* A step that failed: what its error says, in a row. */
static stk_status tell_bad(struct probe *probe, const char *step, const struct stk_error *err)
{
    if (err->status != STK_CANCELLED)
        tell(probe, step, PROBE_BAD, err->remedy, "%s", err->what);
    return err->status;
}

/* ---- up to the server ---------------------------------------------------------------------- */

static stk_status step_reach(struct probe *probe, struct stk_error *err)
{
    char host[PROBE_HOST], port[8], told[256], proxy[PROBE_HOST];
    struct addrinfo *addresses = NULL;
    uint32_t silent = 0;
    probe_host_split(probe->site->host, host, port);
    if (probe_proxy(probe->https, host, proxy)) {
        tell(probe, "resolve", PROBE_ABSENT, "", "left to the proxy %s", proxy);
        tell(probe, "connect", PROBE_ABSENT, "", "left to the proxy %s", proxy);
        return STK_OK;
    }
    stk_status status = probe_resolve(host, port, &addresses, told, sizeof told, err);
    if (status)
        return tell_bad(probe, "resolve", err);
    tell(probe, "resolve", PROBE_GOOD, "", "%s", told);
    status = probe_connect(addresses, &silent, told, sizeof told, err);
    freeaddrinfo(addresses);
    if (status)
        return tell_bad(probe, "connect", err);
    tell(probe, "connect", silent ? PROBE_BAD : PROBE_GOOD,
         silent ? "each connection may wait for it first: have the network route it or drop it"
                : "",
         "%s", told);
    return STK_OK;
}

static void tls_words(const struct web_answer *answer, struct stk_error *err)
{
    fail(err, STK_IO, "%s%s%s", web_failure_words(answer->failure), *answer->words ? ": " : "",
         answer->words);
    if (answer->failure == WEB_TLS)
        fail_remedy(err, "a certificate of your own authority: --ca FILE or STOKER_CA; else check "
                         "this machine's clock and the host's name");
    else
        fail_remedy(err, "something between here and there does not let HTTPS through: check "
                         "https_proxy and the firewall");
}

/* A bare request, unsigned: any answer at all shows that the server is trusted. */
static stk_status step_tls(struct probe *probe, struct stk_error *err)
{
    if (!probe->https) {
        tell(probe, "tls", PROBE_ABSENT, "", "plain http: what is read can be read by others");
        return STK_OK;
    }
    struct text url = {0};
    text_format(&url, "https://%s/", probe->site->host);
    if (url.failed) {
        text_free(&url);
        return fail_memory(err, 0);
    }
    struct web_request request = {
        .method = WEB_HEAD,
        .url = url.data,
        .range_first = WEB_NO_RANGE,
        .deadline_ns = clock_now() + PROBE_TLS_S * INT64_C(1000000000),
        .new_connection = 1,
    };
    web_wait(net_web(probe->net), &request);
    const struct web_answer *answer = &request.answer;
    stk_status status = answer->status ? STK_OK : STK_IO;
    if (status) {
        tls_words(answer, err);
        tell_bad(probe, "tls", err);
    } else {
        tell(probe, "tls", PROBE_GOOD, "", "trusted, HTTP/%s, connected in %.0f ms",
             answer->http2 ? "2" : "1.1", (double)answer->connected_ns * 1e-6);
    }
    web_answer_free(&request.answer);
    text_free(&url);
    return status;
}

/* ---- credentials --------------------------------------------------------------------------- */

static const char *secret_words(enum secret_kind kind)
{
    static const char *const words[] = {
        [SECRET_NONE] = "none: anonymous",
        [SECRET_AWS] = "an access key",
        [SECRET_SHARED_KEY] = "an account key",
        [SECRET_SAS] = "a shared access signature",
        [SECRET_BEARER] = "a token",
    };
    return (unsigned)kind < sizeof words / sizeof words[0] ? words[kind] : "credentials";
}

/* Where they were found, never what they are. Whether they are taken, the next step shows. */
static stk_status step_credentials(struct probe *probe, struct stk_error *err)
{
    const struct secret *secret = NULL;
    char expires[64] = "";
    if (!probe->site->credentials) {
        tell(probe, "auth", PROBE_GOOD, "", "%s", secret_words(SECRET_NONE));
        return STK_OK;
    }
    stk_status status = credentials_take(probe->site->credentials, 1, &secret, err);
    if (status)
        return tell_bad(probe, "auth", err);
    if (secret->expires_s)
        snprintf(expires, sizeof expires, ", for %.0f minutes",
                 difftime((time_t)secret->expires_s, time(NULL)) / 60);
    if (secret->kind == SECRET_NONE)
        tell(probe, "auth", PROBE_GOOD, "", "%s", secret_words(secret->kind));
    else
        tell(probe, "auth", PROBE_GOOD, "", "%s from %s%s", secret_words(secret->kind),
             *secret->where ? secret->where : "the URI", expires);
    credentials_give(probe->site->credentials, secret);
    return STK_OK;
}

/* ---- objects ------------------------------------------------------------------------------- */

static stk_status keep_object(struct probe *probe, const char *key, uint64_t size,
                              struct stk_error *err)
{
    if (!size || probe->object_count == PROBE_OBJECTS)
        return STK_OK;
    char *copy = memory_text(key, strlen(key));
    if (!copy)
        return fail_memory(err, strlen(key));
    probe->objects[probe->object_count++] = (struct probe_object){copy, size};
    return STK_OK;
}

static stk_status step_list(struct probe *probe, struct stk_error *err)
{
    struct text body = {0};
    struct site_page page = {0};
    char prefix[PROBE_KEY];
    /* Of a pattern what stands before it. */
    snprintf(prefix, sizeof prefix, "%.*s", (int)remote_glob_literal(probe->key), probe->key);
    struct fetch fetch = {
        .site = probe->site,
        .call = {.verb = SITE_LIST, .key = prefix, .page = PROBE_PAGE},
        .text = &body,
        .text_most = PROBE_TEXT,
    };
    if (!probe->site->can_list) {
        tell(probe, "list", PROBE_ABSENT, "", "plain HTTP has no lists: name each object");
        return STK_OK;
    }
    stk_status status = probe_fetch(&fetch, &page, err);
    for (uint64_t i = 0; i < page.count && !status; i++)
        if (!page.entries[i].is_folder)
            status = keep_object(probe, page.entries[i].key, page.entries[i].size, err);
    if (!status && !page.count) {
        status = fail(err, STK_NOT_FOUND, "nothing lies under %s/%.300s", probe->site->uri, prefix);
        fail_remedy(err, "check the spelling: names are case-sensitive");
    }
    if (status)
        tell_bad(probe, "list", err);
    else
        tell(probe, "list", PROBE_GOOD, "", "%llu names%s", (unsigned long long)page.count,
             page.token ? " on the first page, and more" : "");
    site_page_reset(&page);
    text_free(&body);
    return status;
}

/* Plain HTTP: the URI is the object. */
static stk_status step_look(struct probe *probe, struct stk_error *err)
{
    struct fetch fetch = {
        .site = probe->site,
        .call = {.verb = SITE_STAT, .key = probe->key},
    };
    stk_status status = probe_fetch(&fetch, NULL, err);
    if (status)
        return tell_bad(probe, "range", err);
    if (fetch.object_size == STK_NOWHERE || !fetch.object_size) {
        status = fail(err, STK_UNSUPPORTED, "the server does not tell how long it is");
        fail_remedy(err, "name an object, not a page: the URI of a shard");
        return tell_bad(probe, "range", err);
    }
    return keep_object(probe, probe->key, fetch.object_size, err);
}

static stk_status read_byte(struct probe *probe, double *seconds, struct stk_error *err)
{
    uint8_t byte;
    struct iovec part = {&byte, 1};
    struct fetch fetch = {
        .site = probe->site,
        .call = {.verb = SITE_READ, .key = probe->objects[0].key},
        .length = 1,
        .parts = &part,
        .part_count = 1,
    };
    stk_status status = probe_fetch(&fetch, NULL, err);
    *seconds = (double)fetch.took_ns * 1e-9;
    return status;
}

static stk_status step_range(struct probe *probe, struct stk_error *err)
{
    double seconds;
    stk_status status = STK_OK;
    if (!probe->object_count && !probe->site->can_list)
        status = step_look(probe, err);
    if (status)
        return status;
    if (!probe->object_count) {
        tell(probe, "range", PROBE_ABSENT, "", "there is nothing to read");
        return STK_OK;
    }
    status = read_byte(probe, &seconds, err);
    if (status)
        return tell_bad(probe, "range", err);
    tell(probe, "range", PROBE_GOOD, "", "parts of objects can be read (%s)",
         probe->objects[0].key);
    return STK_OK;
}

static int real_compare(const void *a, const void *b)
{
    double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

static stk_status step_latency(struct probe *probe, struct stk_error *err)
{
    double seconds[PROBE_LOOKS];
    stk_status status = STK_OK;
    for (int i = 0; i < PROBE_LOOKS && !status; i++)
        status = read_byte(probe, &seconds[i], err);
    if (status)
        return tell_bad(probe, "latency", err);
    qsort(seconds, PROBE_LOOKS, sizeof *seconds, real_compare);
    double middle = seconds[PROBE_LOOKS / 2];
    tell(probe, "latency", PROBE_GOOD, "", "%.1f ms (%.1f to %.1f)", middle * 1e3, seconds[0] * 1e3,
         seconds[PROBE_LOOKS - 1] * 1e3);
    return STK_OK;
}

static stk_status step_speed(struct probe *probe, struct stk_error *err)
{
    const struct probe_options *options = probe->options;
    struct probe_load load = {
        .site = probe->site,
        .objects = probe->objects,
        .object_count = probe->object_count,
        .seconds = options->seconds,
    };
    for (load.at_once = 1; load.at_once <= options->most_at_once; load.at_once *= 2) {
        char value[64];
        double rate;
        stk_status status = probe_speed(&load, &rate, err);
        if (status)
            return tell_bad(probe, "speed", err);
        snprintf(value, sizeof value, "%.1f MB/s", rate * 1e-6);
        struct probe_row row = {.step = "speed",
                                .value = value,
                                .remedy = "",
                                .seconds = options->seconds,
                                .at_once = load.at_once,
                                .bytes_per_s = rate};
        options->row(options->user, &row);
        load.expected = rate;
    }
    return STK_OK;
}

/* ---- the whole ----------------------------------------------------------------------------- */

/* Whether requests go by https shows in one that is made: without credentials, which the probe has
 * not come to yet. */
static int goes_by_https(const struct probe *probe)
{
    struct site_made made = {0};
    struct site_call call = {.verb = SITE_STAT, .key = "-"};
    struct site *site = probe->site;
    int https = !site->ops->make(site, &call, NULL, &made, NULL) && made.url.data &&
                !strncmp(made.url.data, "https://", 8);
    site_made_reset(&made);
    return https;
}

stk_status site_probe(const struct probe_options *options, struct stk_error *err)
{
    struct stk_error own = {0};
    struct probe probe = {.options = options, .began = clock_now()};
    stk_status status = net_take(&probe.net, &own);
    if (!status)
        status = site_open(&probe.site, probe.net, options->uri, &probe.key, &own);
    if (status) {
        tell_bad(&probe, "resolve", &own);
        goto done;
    }
    probe.https = goes_by_https(&probe);
    status = step_reach(&probe, &own);
    if (!status)
        status = step_tls(&probe, &own);
    if (!status)
        status = step_credentials(&probe, &own);
    if (!status)
        status = step_list(&probe, &own);
    if (!status)
        status = step_range(&probe, &own);
    if (!status && probe.object_count)
        status = step_latency(&probe, &own);
    if (!status && probe.object_count)
        status = step_speed(&probe, &own);
done:
    if (status && err)
        *err = own;
    for (uint32_t i = 0; i < probe.object_count; i++)
        memory_free(probe.objects[i].key);
    site_close(probe.site);
    if (probe.net)
        net_give(probe.net);
    return status;
}
