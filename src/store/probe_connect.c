#include "store/probe_connect.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fail.h"

#define CONNECT_MS 5000 /* for all addresses together, half of what is left for each */

void probe_host_split(const char *from, char host[PROBE_HOST], char port[8])
{
    const char *bracket = *from == '[' ? strchr(from, ']') : NULL;
    const char *colon = strrchr(bracket ? bracket : from, ':');
    const char *end = bracket ? bracket : colon ? colon : from + strlen(from);
    const char *begin = bracket ? from + 1 : from;
    snprintf(host, PROBE_HOST, "%.*s", (int)(end - begin), begin);
    snprintf(port, 8, "%.7s", colon && colon[1] ? colon + 1 : "443");
}

/* Whether no_proxy names the host, itself or a domain of it. */
static int is_direct(const char *host)
{
    const char *list = getenv("no_proxy");
    size_t host_len = strlen(host);
    if (!list)
        list = getenv("NO_PROXY");
    while (list && *list) {
        size_t len = strcspn(list, ", ");
        const char *name = list;
        size_t name_len = len;
        if (name_len && *name == '.')
            name++, name_len--;
        int ends = name_len && name_len <= host_len &&
                   !strncasecmp(host + host_len - name_len, name, name_len) &&
                   (name_len == host_len || host[host_len - name_len - 1] == '.');
        if (ends || (name_len == 1 && *name == '*'))
            return 1;
        list += len;
        list += strspn(list, ", ");
    }
    return 0;
}

/* libcurl's own rule: http_proxy in lower case only, the others in both. */
int probe_proxy(int https, const char *host, char out[PROBE_HOST])
{
    static const char *const names[2][4] = {
        {"http_proxy", "all_proxy", "ALL_PROXY", NULL},
        {"https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"},
    };
    const char *found = NULL;
    for (int i = 0; i < 4 && !found && names[https != 0][i]; i++) {
        found = getenv(names[https != 0][i]);
        if (found && !*found)
            found = NULL;
    }
    if (!found || is_direct(host))
        return 0;
    const char *rest = strstr(found, "://");
    rest = rest ? rest + 3 : found;
    const char *at = strrchr(rest, '@');
    snprintf(out, PROBE_HOST, "%s", at ? at + 1 : rest);
    return 1;
}

static void address_words(const struct addrinfo *address, char *out, size_t cap)
{
    if (getnameinfo(address->ai_addr, address->ai_addrlen, out, (socklen_t)cap, NULL, 0,
                    NI_NUMERICHOST))
        snprintf(out, cap, "an address of no known kind");
}

stk_status probe_resolve(const char *host, const char *port, struct addrinfo **out, char *told,
                         size_t cap, struct stk_error *err)
{
    struct addrinfo wanted = {.ai_socktype = SOCK_STREAM, .ai_family = AF_UNSPEC};
    *out = NULL;
    int result = getaddrinfo(host, port, &wanted, out);
    if (result) {
        stk_status status = fail(err, STK_IO, "%s is not known here: %s", host,
                                 result == EAI_SYSTEM ? strerror(errno) : gai_strerror(result));
        fail_remedy(err, "check the name (account, bucket, endpoint) and this machine's DNS");
        return status;
    }
    char first[64];
    unsigned count = 0;
    for (const struct addrinfo *each = *out; each; each = each->ai_next)
        count++;
    address_words(*out, first, sizeof first);
    snprintf(told, cap, "%s: %s%s", host, first, count > 1 ? " and more" : "");
    return STK_OK;
}

/* 0 or errno. */
static int connect_one(const struct addrinfo *address, int wait_ms)
{
    int fd = socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return errno;
    int number = connect(fd, address->ai_addr, address->ai_addrlen) ? errno : 0;
    if (number == EINPROGRESS) {
        struct pollfd look = {.fd = fd, .events = POLLOUT};
        socklen_t len = sizeof number;
        int ready = poll(&look, 1, wait_ms);
        if (ready <= 0)
            number = ready < 0 ? errno : ETIMEDOUT;
        else if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &number, &len))
            number = errno;
    }
    close(fd);
    return number;
}

stk_status probe_connect(const struct addrinfo *addresses, uint32_t *silent, char *told, size_t cap,
                         struct stk_error *err)
{
    int left = CONNECT_MS, last = 0, reached = 0;
    char name[64], bad[64] = "";
    *silent = 0;
    for (const struct addrinfo *each = addresses; each && left > 100; each = each->ai_next) {
        int64_t begun = clock_now();
        int number = connect_one(each, each->ai_next ? left / 2 : left);
        left -= (int)((clock_now() - begun) / 1000000);
        address_words(each, name, sizeof name);
        if (number == EINTR)
            return fail(err, STK_CANCELLED, "stopped on request");
        if (number) {
            last = number;
            ++*silent;
            snprintf(bad, sizeof bad, "%s", name);
        } else if (!reached++) {
            snprintf(told, cap, "%s answers", name);
        }
    }
    if (!reached) {
        stk_status status = fail(err, STK_IO, "nothing answers at %s: %s", bad, strerror(last));
        fail_remedy(err, "check the endpoint and its port, the firewall, and https_proxy");
        return status;
    }
    if (*silent) {
        size_t len = strlen(told);
        snprintf(told + len, cap - len, "; %s does not: %s", bad, strerror(last));
    }
    return STK_OK;
}
