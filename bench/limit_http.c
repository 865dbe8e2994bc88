/* limit_http.c -- what libcurl gives at most: ranges of URLs, so many at a time, into memory that
 * is used again and again.
 *
 *     limit_http RANGES IN_FLIGHT SECONDS [poll|epoll] [stored] [ring MIB] [buffer KIB]
 *                [header LINE]...
 *
 * RANGES is a text file with a line "offset length URL" for each; length 0 asks for all of it. The
 * order is drawn anew for each pass, or is the stored one. One thread, keep-alive connections,
 * receive buffers of 64 KiB each (larger ones fall out of the caches before they are copied); by
 * curl_multi_poll or, the quicker way, by epoll and curl_multi_socket_action. STOKER_CA:
 * certificates to trust. With a ring each range goes to the next place of so much memory, as in a
 * loader that reads ahead; else to one of IN_FLIGHT places, which may all lie in the processor's
 * cache. Prints one JSON object; cpu_s_per_gb is of this process alone. */
#include <curl/curl.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "limit.h"

enum { MAX_IN_FLIGHT = 1024, EVENTS = 64, URL_CAP = 8192 };

struct range {
    char *url;
    uint64_t offset, length;
};

struct client;

struct slot {
    struct client *client;
    CURL *easy;
    struct range *range;
    uint8_t *memory;
    uint64_t cap, received;
};

struct client {
    CURLM *multi;
    int epoll; /* -1: curl_multi_poll is used */
    double due;
    struct range *ranges;
    uint32_t *order;
    uint32_t count, next, running, in_flight;
    uint64_t largest, bytes, requests;
    int stored;
    uint8_t *ring;
    uint64_t places, place;
    long buffer;
    struct curl_slist *headers;
    struct slot slots[MAX_IN_FLIGHT];
};

static _Noreturn void die(const char *what, const char *why)
{
    fprintf(stderr, "limit_http: %s: %s\n", what, why);
    exit(1);
}

static double seconds_of_cpu(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           1e-6 * (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

static void ranges_load(struct client *client, const char *path)
{
    FILE *file = fopen(path, "r");
    if (!file)
        limit_fail(path);
    char url[URL_CAP];
    unsigned long long offset, length;
    uint32_t room = 0;
    while (fscanf(file, "%llu %llu %8191[^\n]", &offset, &length, url) == 3) {
        if (client->count == room) {
            room = room ? 2 * room : 1024;
            client->ranges = realloc(client->ranges, room * sizeof *client->ranges);
            if (!client->ranges)
                limit_fail("memory");
        }
        client->ranges[client->count++] = (struct range){strdup(url), offset, length};
        if (length > client->largest)
            client->largest = length;
    }
    fclose(file);
    client->order = malloc(client->count * sizeof *client->order);
    if (client->count == 0 || !client->order)
        die(path, "no ranges in it");
}

static void order_draw(struct client *client)
{
    for (uint32_t i = 0; i < client->count; i++)
        client->order[i] = i;
    for (uint32_t i = client->stored ? 0 : client->count; i > 1; i--) {
        uint32_t other = (uint32_t)(((uint64_t)rand() * i) / ((uint64_t)RAND_MAX + 1));
        uint32_t kept = client->order[i - 1];
        client->order[i - 1] = client->order[other];
        client->order[other] = kept;
    }
    client->next = 0;
}

/* --- libcurl's calls */

static size_t on_body(char *data, size_t size, size_t count, void *user)
{
    struct slot *slot = user;
    size_t length = size * count;
    if (slot->received + length > slot->cap) {
        if (slot->client->places)
            die(slot->range->url, "more came than was asked for");
        slot->cap = 2 * (slot->received + length);
        slot->memory = realloc(slot->memory, slot->cap);
        if (!slot->memory)
            limit_fail("memory");
    }
    memcpy(slot->memory + slot->received, data, length);
    slot->received += length;
    return length;
}

static int on_socket(CURL *easy, curl_socket_t fd, int what, void *user, void *known)
{
    struct client *client = user;
    struct epoll_event event = {.data.fd = fd};
    (void)easy;
    event.events = (what & CURL_POLL_IN ? EPOLLIN : 0u) | (what & CURL_POLL_OUT ? EPOLLOUT : 0u);
    int how = what == CURL_POLL_REMOVE ? EPOLL_CTL_DEL : known ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;
    epoll_ctl(client->epoll, how, fd, &event);
    if (!known && what != CURL_POLL_REMOVE)
        curl_multi_assign(client->multi, fd, client);
    return 0;
}

static int on_timer(CURLM *multi, long wait_ms, void *user)
{
    struct client *client = user;
    (void)multi;
    client->due = wait_ms < 0 ? 1e300 : seconds_now() + 1e-3 * (double)wait_ms;
    return 0;
}

/* --- transfers */

/* Gives a slot its next range; none is left: it rests. */
static void slot_start(struct client *client, struct slot *slot)
{
    char range[64];
    if (client->next == client->count)
        return;
    slot->range = &client->ranges[client->order[client->next++]];
    slot->received = 0;
    if (client->places)
        slot->memory = client->ring + client->place++ % client->places * client->largest;
    snprintf(range, sizeof range, "%llu-%llu", (unsigned long long)slot->range->offset,
             (unsigned long long)(slot->range->offset + slot->range->length - 1));
    curl_easy_setopt(slot->easy, CURLOPT_URL, slot->range->url);
    curl_easy_setopt(slot->easy, CURLOPT_RANGE, slot->range->length ? range : NULL);
    if (curl_multi_add_handle(client->multi, slot->easy))
        die(slot->range->url, "curl_multi_add_handle");
    client->running++;
}

static void slot_over(struct client *client, struct slot *slot, CURLcode code)
{
    long status = 0;
    curl_easy_getinfo(slot->easy, CURLINFO_RESPONSE_CODE, &status);
    if (code)
        die(slot->range->url, curl_easy_strerror(code));
    if (status != (slot->range->length ? 206 : 200) ||
        (slot->range->length && slot->received != slot->range->length))
        die(slot->range->url, "another answer than was asked for");
    client->bytes += slot->received;
    client->requests++;
    client->running--;
    curl_multi_remove_handle(client->multi, slot->easy);
    slot_start(client, slot);
}

static void reap(struct client *client)
{
    CURLMsg *message;
    int left;
    while ((message = curl_multi_info_read(client->multi, &left))) {
        struct slot *slot;
        CURLcode code = message->data.result;
        curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, (char **)&slot);
        slot_over(client, slot, code);
    }
}

static void step_poll(struct client *client)
{
    int running;
    curl_multi_perform(client->multi, &running);
    reap(client);
    if (client->running)
        curl_multi_poll(client->multi, NULL, 0, 1000, NULL);
}

static void step_epoll(struct client *client)
{
    struct epoll_event events[EVENTS];
    int running;
    if (client->due <= seconds_now()) {
        client->due = 1e300;
        curl_multi_socket_action(client->multi, CURL_SOCKET_TIMEOUT, 0, &running);
    }
    double wait = client->due - seconds_now();
    int wait_ms = wait > 1 ? 1000 : wait > 0 ? (int)(1000 * wait) + 1 : 0;
    int count = epoll_wait(client->epoll, events, EVENTS, wait_ms);
    for (int i = 0; i < count; i++) {
        int bits = (events[i].events & (EPOLLIN | EPOLLHUP) ? CURL_CSELECT_IN : 0) |
                   (events[i].events & EPOLLOUT ? CURL_CSELECT_OUT : 0) |
                   (events[i].events & EPOLLERR ? CURL_CSELECT_ERR : 0);
        curl_multi_socket_action(client->multi, events[i].data.fd, bits, &running);
    }
    reap(client);
}

static void pass(struct client *client)
{
    order_draw(client);
    for (uint32_t i = 0; i < client->in_flight; i++)
        slot_start(client, &client->slots[i]);
    while (client->running > 0) {
        if (client->epoll >= 0)
            step_epoll(client);
        else
            step_poll(client);
    }
}

/* At least a place for each that is in flight; huge pages, as a loader's. */
static void ring_open(struct client *client, uint64_t bytes)
{
    client->largest = (client->largest + 63) & ~UINT64_C(63);
    if (client->largest == 0)
        die("ring", "needs ranges that have a length");
    client->places = bytes / client->largest;
    if (client->places < client->in_flight)
        client->places = client->in_flight;
    bytes = client->places * client->largest;
    client->ring = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (client->ring == MAP_FAILED)
        limit_fail("memory");
    madvise(client->ring, bytes, MADV_HUGEPAGE);
}

static void client_open(struct client *client, int by_epoll)
{
    curl_global_init(CURL_GLOBAL_DEFAULT);
    client->multi = curl_multi_init();
    client->due = 1e300;
    client->epoll = by_epoll ? epoll_create1(EPOLL_CLOEXEC) : -1;
    curl_multi_setopt(client->multi, CURLMOPT_MAXCONNECTS, (long)client->in_flight);
    if (by_epoll) {
        curl_multi_setopt(client->multi, CURLMOPT_SOCKETFUNCTION, on_socket);
        curl_multi_setopt(client->multi, CURLMOPT_SOCKETDATA, client);
        curl_multi_setopt(client->multi, CURLMOPT_TIMERFUNCTION, on_timer);
        curl_multi_setopt(client->multi, CURLMOPT_TIMERDATA, client);
    }
    for (uint32_t i = 0; i < client->in_flight; i++) {
        struct slot *slot = &client->slots[i];
        *slot = (struct slot){.client = client, .easy = curl_easy_init(), .cap = client->largest};
        slot->memory = malloc(slot->cap + 1);
        if (!slot->easy || !slot->memory)
            limit_fail("memory");
        curl_easy_setopt(slot->easy, CURLOPT_NOSIGNAL, 1L);
        curl_easy_setopt(slot->easy, CURLOPT_BUFFERSIZE, client->buffer);
        curl_easy_setopt(slot->easy, CURLOPT_PRIVATE, slot);
        curl_easy_setopt(slot->easy, CURLOPT_WRITEFUNCTION, on_body);
        curl_easy_setopt(slot->easy, CURLOPT_WRITEDATA, slot);
        curl_easy_setopt(slot->easy, CURLOPT_HTTPHEADER, client->headers);
        const char *ca = getenv("STOKER_CA");
        if (ca && ca[0])
            curl_easy_setopt(slot->easy, CURLOPT_CAINFO, ca);
    }
}

int main(int argc, char **argv)
{
    if (argc < 4) {
        fprintf(stderr, "usage: limit_http RANGES IN_FLIGHT SECONDS [poll|epoll] [stored] "
                        "[ring MIB] [buffer KIB] [header LINE]...\n");
        return 2;
    }
    static struct client client = {.buffer = 64 << 10};
    int by_epoll = 1;
    for (int i = 4; i < argc; i++) {
        by_epoll = strcmp(argv[i], "poll") == 0 ? 0 : by_epoll;
        client.stored |= strcmp(argv[i], "stored") == 0;
        if (strcmp(argv[i], "buffer") == 0 && i + 1 < argc)
            client.buffer = 1024L * atoi(argv[++i]);
        else if (strcmp(argv[i], "ring") == 0 && i + 1 < argc)
            client.places = strtoull(argv[++i], NULL, 10) << 20;
        else if (strcmp(argv[i], "header") == 0 && i + 1 < argc)
            client.headers = curl_slist_append(client.headers, argv[++i]);
    }
    int in_flight = atoi(argv[2]);
    client.in_flight = (uint32_t)(in_flight < 1               ? 1
                                  : in_flight > MAX_IN_FLIGHT ? MAX_IN_FLIGHT
                                                              : in_flight);
    ranges_load(&client, argv[1]);
    if (client.places) /* it was bytes until now */
        ring_open(&client, client.places);
    client_open(&client, by_epoll);
    pass(&client); /* warms the server, the connections and the memory */
    client.bytes = client.requests = 0;
    double cpu = seconds_of_cpu(), start = seconds_now(), took;
    uint64_t passes = 0;
    do {
        pass(&client);
        passes++;
        took = seconds_now() - start;
    } while (took < atof(argv[3]));
    cpu = seconds_of_cpu() - cpu;
    double bytes = (double)client.bytes;
    printf("{\"value\": %.1f, \"bytes_per_s\": %.1f, \"mb_per_s\": %.1f, \"cpu_s\": %.6f, "
           "\"cpu_s_per_gb\": %.4f, \"requests_per_s\": %.1f, \"in_flight\": %u, "
           "\"seconds\": %.6f, \"passes\": %llu, \"libcurl\": \"%s\"}\n",
           bytes / took, bytes / took, 1e-6 * bytes / took, cpu / (double)passes, 1e9 * cpu / bytes,
           (double)client.requests / took, client.in_flight, took, (unsigned long long)passes,
           curl_version_info(CURLVERSION_NOW)->version);
    return 0;
}
