#include <string.h>
#include <strings.h>

#include "base/hash.h"
#include "base/memory.h"
#include "net/web_parts.h"

/* The length of "https://host:port"; 0 and why where that is not at the URL's start. */
static size_t origin_length(const char *url, const char **words)
{
    size_t scheme = strncasecmp(url, "https://", 8) == 0  ? 8
                    : strncasecmp(url, "http://", 7) == 0 ? 7
                                                          : 0;
    size_t length = scheme ? strcspn(url + scheme, "/?#") : 0;
    if (length == 0) {
        *words = "the URL is not one of http or https";
        return 0;
    }
    if (memchr(url + scheme, '@', length)) {
        *words = "a URL must not hold a user or a password";
        return 0;
    }
    return scheme + length;
}

enum web_failure web_host_find(struct web *web, const char *url, struct web_host **out,
                               const char **words)
{
    *out = NULL;
    size_t length = origin_length(url, words);
    if (length == 0)
        return WEB_PROTOCOL;
    struct web_host **first = &web->hosts[hash_bytes(url, length, 0) % WEB_HOST_BUCKETS];
    for (struct web_host *host = *first; host; host = host->next) {
        if (host->name_length == length && memcmp(host->name, url, length) == 0) {
            *out = host;
            return WEB_FINE;
        }
    }
    struct web_host *host = memory_zero(1, sizeof *host + length + 1);
    if (!host)
        return WEB_MEMORY;
    host->name_length = length;
    memcpy(host->name, url, length);
    host->next = *first;
    *first = host;
    web->host_count++;
    *out = host;
    return WEB_FINE;
}

void web_host_add(struct web *web, struct web_request *request)
{
    struct web_host *host = request->host;
    request->next = NULL;
    if (host->last)
        host->last->next = request;
    else
        host->first = request;
    host->last = request;
    web->waiting_count++;
}

struct web_request *web_host_next(struct web *web, struct web_host *host)
{
    struct web_request *request = host->first;
    if (!request || host->running >= web->options.connections)
        return NULL;
    host->first = request->next;
    if (!host->first)
        host->last = NULL;
    web->waiting_count--;
    return request;
}

/* Takes what is over out of one queue, and puts it in front of *over. */
static void sweep_one(struct web *web, struct web_host *host, int all, int64_t now, int64_t *due,
                      struct web_request **over)
{
    struct web_request *request = host->first;
    host->first = host->last = NULL;
    while (request) {
        struct web_request *next = request->next;
        int is_late = request->deadline_ns && request->deadline_ns <= now;
        web->waiting_count--;
        if (all || request->cancelled || is_late) {
            request->next = *over;
            *over = request;
        } else {
            if (request->deadline_ns && request->deadline_ns < *due)
                *due = request->deadline_ns;
            web_host_add(web, request);
        }
        request = next;
    }
}

struct web_request *web_host_sweep(struct web *web, int all, int64_t now, int64_t *due)
{
    struct web_request *over = NULL;
    for (int i = 0; i < WEB_HOST_BUCKETS && web->waiting_count > 0; i++) {
        for (struct web_host *host = web->hosts[i]; host; host = host->next)
            sweep_one(web, host, all, now, due, &over);
    }
    return over;
}

void web_host_prune(struct web *web, struct web_host *host)
{
    if (web->host_count <= WEB_HOSTS_KEPT || host->running > 0 || host->first)
        return;
    struct web_host **at =
        &web->hosts[hash_bytes(host->name, host->name_length, 0) % WEB_HOST_BUCKETS];
    while (*at != host)
        at = &(*at)->next;
    *at = host->next;
    web->host_count--;
    memory_free(host);
}

void web_hosts_free(struct web *web)
{
    for (int i = 0; i < WEB_HOST_BUCKETS; i++) {
        while (web->hosts[i]) {
            struct web_host *host = web->hosts[i];
            web->hosts[i] = host->next;
            memory_free(host);
        }
    }
}
