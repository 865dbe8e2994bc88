#include "net/answering.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <strings.h>
#include <sys/socket.h>
#include <time.h>

#include "base/testing.h"

enum { CONNECTIONS = 1024, HEAD_CAP = 64 << 10, STEPS = 64, REQUESTS = 65536 };

struct asked {
    char *head;
    char *body;
    size_t length;
};

struct connection {
    struct answering *server;
    int fd;
    pthread_t thread;
};

struct answering {
    int listener, port;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;                     /* a request came, a release, a stop */
    int is_stopping, is_released;               /* lock */
    struct answering_step steps[STEPS];         /* lock */
    uint32_t step_count;                        /* lock */
    struct asked asked[REQUESTS];               /* lock */
    uint32_t asked_count;                       /* lock */
    struct connection connections[CONNECTIONS]; /* lock */
    uint32_t connection_count;                  /* lock */
};

/* --- waiting */

static struct timespec moment_in(uint32_t wait_ms)
{
    struct timespec when;
    clock_gettime(CLOCK_REALTIME, &when);
    when.tv_sec += wait_ms / 1000;
    when.tv_nsec += (long)(wait_ms % 1000) * 1000000;
    if (when.tv_nsec >= 1000000000) {
        when.tv_sec++;
        when.tv_nsec -= 1000000000;
    }
    return when;
}

/* 0: the server stops. */
static int rest(struct answering *server, uint32_t wait_ms)
{
    struct timespec when = moment_in(wait_ms);
    int result = 0;
    pthread_mutex_lock(&server->lock);
    while (!server->is_stopping && result != ETIMEDOUT && wait_ms > 0)
        result = pthread_cond_timedwait(&server->changed, &server->lock, &when);
    int goes_on = !server->is_stopping;
    pthread_mutex_unlock(&server->lock);
    return goes_on;
}

static int hold(struct answering *server)
{
    pthread_mutex_lock(&server->lock);
    while (!server->is_stopping && !server->is_released)
        pthread_cond_wait(&server->changed, &server->lock);
    int goes_on = !server->is_stopping;
    pthread_mutex_unlock(&server->lock);
    return goes_on;
}

/* --- sending; 0: the other side is gone */

static int send_all(int fd, const void *data, size_t length)
{
    const char *at = data;
    while (length > 0) {
        ssize_t sent = send(fd, at, length, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent <= 0)
            return 0;
        at += sent;
        length -= (size_t)sent;
    }
    return 1;
}

static int send_body(struct connection *connection, const struct answering_step *step,
                     const char *body, size_t length)
{
    size_t most = step->cut && step->cut_after < length ? step->cut_after : length;
    size_t piece = step->trickle ? step->trickle : most;
    for (size_t at = 0; at < most; at += piece) {
        size_t size = most - at < piece ? most - at : piece;
        if (!send_all(connection->fd, body + at, size))
            return 0;
        if (step->trickle && !rest(connection->server, step->every_ms))
            return 0;
    }
    return most == length && !step->cut;
}

/* Closing such a socket sends a reset. */
static void reset_at_close(int fd)
{
    struct linger linger = {.l_onoff = 1};
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof linger);
}

/* --- one request */

static const char *head_value(const char *head, const char *name, size_t *length)
{
    size_t name_length = strlen(name);
    for (const char *line = strstr(head, "\r\n"); line; line = strstr(line, "\r\n")) {
        line += 2;
        if (strncasecmp(line, name, name_length) == 0 && line[name_length] == ':') {
            const char *value = line + name_length + 1;
            value += strspn(value, " ");
            *length = strcspn(value, "\r");
            return value;
        }
    }
    return NULL;
}

static int step_fits(const struct answering_step *step, const char *head)
{
    size_t method = strcspn(head, " ");
    if (step->method &&
        (strlen(step->method) != method || strncmp(head, step->method, method) != 0))
        return 0;
    return !step->path || strncmp(head + method + 1, step->path, strlen(step->path)) == 0;
}

/* Remembers the request and finds its answer. */
static struct answering_step step_for(struct answering *server, struct asked asked)
{
    struct answering_step found = {0};
    pthread_mutex_lock(&server->lock);
    assert_true(server->asked_count < REQUESTS);
    uint32_t number = server->asked_count;
    server->asked[server->asked_count++] = asked;
    for (uint32_t i = 0; i < server->step_count; i++) {
        struct answering_step *step = &server->steps[i];
        if (step->times == UINT32_MAX || !step_fits(step, asked.head))
            continue;
        found = *step;
        if (step->times > 0 && --step->times == 0)
            step->times = UINT32_MAX; /* used up */
        break;
    }
    if (found.change)
        found.change(&found, number, asked.head, found.user);
    pthread_cond_broadcast(&server->changed);
    pthread_mutex_unlock(&server->lock);
    return found;
}

struct range {
    size_t first, length; /* of the body */
    int is_asked;
};

static struct range range_of(const struct answering_step *step, const char *head)
{
    struct range range = {0, step->length, 0};
    size_t length;
    unsigned long long first, last;
    const char *value = step->ignores_range ? NULL : head_value(head, "Range", &length);
    if (!value || sscanf(value, "bytes=%llu-%llu", &first, &last) != 2 || first >= step->length)
        return range;
    last = last < step->length ? last : step->length - 1;
    return (struct range){(size_t)first, (size_t)(last - first + 1), 1};
}

static size_t write_head(const struct answering_step *step, struct range range, char *out,
                         size_t cap)
{
    int is_good = step->status == 0 && (step->body || step->length);
    int status = step->status ? step->status : !is_good ? 404 : range.is_asked ? 206 : 200;
    int used = snprintf(out, cap, "HTTP/1.1 %d Scripted\r\n", status);
    if (!step->no_length)
        used += snprintf(out + used, cap - (size_t)used, "Content-Length: %lld\r\n",
                         (long long)range.length + (long long)step->length_lie);
    if (status == 206)
        used += snprintf(out + used, cap - (size_t)used, "Content-Range: bytes %lld-%lld/%zu\r\n",
                         (long long)range.first + (long long)step->range_lie,
                         (long long)(range.first + range.length - 1) + (long long)step->range_lie,
                         step->length);
    used += snprintf(out + used, cap - (size_t)used, "%s%s\r\n",
                     step->closes || step->no_length ? "Connection: close\r\n" : "",
                     step->headers ? step->headers : "");
    assert_true((size_t)used < cap);
    return (size_t)used;
}

/* 0: the connection is over. */
static int answer_one(struct connection *connection, struct asked asked)
{
    struct answering_step step = step_for(connection->server, asked);
    char head[16384];
    if (step.holds && !hold(connection->server))
        return 0;
    if (step.delay_ms && !rest(connection->server, step.delay_ms))
        return 0;
    if (step.raw) {
        send_all(connection->fd, step.raw, strlen(step.raw));
        return 0;
    }
    struct range range = range_of(&step, asked.head);
    int is_head = strncmp(asked.head, "HEAD ", 5) == 0;
    size_t length = write_head(&step, range, head, sizeof head);
    if (!send_all(connection->fd, head, length))
        return 0;
    if (step.pause_ms && !rest(connection->server, step.pause_ms))
        return 0;
    const char *body = (const char *)step.body + range.first;
    int goes_on = is_head || send_body(connection, &step, body, range.length);
    if (step.cut == CUT_RESET)
        reset_at_close(connection->fd);
    return goes_on && !step.closes && !step.no_length && step.length_lie == 0;
}

/* --- one connection */

/* Reads until the head is whole; the rest of what came is the body's beginning. 0: it ended. */
static size_t read_head(int fd, char *buf, size_t *head_length)
{
    size_t used = 0;
    for (;;) {
        ssize_t got = recv(fd, buf + used, HEAD_CAP - 1 - used, 0);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return 0;
        used += (size_t)got;
        buf[used] = '\0';
        if (buf[0] == 0x16) { /* TLS: as servers without it do */
            send_all(fd, "HTTP/1.1 400 Bad Request\r\n\r\n", 28);
            return 0;
        }
        char *end = strstr(buf, "\r\n\r\n");
        if (end) {
            *head_length = (size_t)(end + 4 - buf);
            return used;
        }
        if (used == HEAD_CAP - 1)
            return 0;
    }
}

static int read_request(int fd, char *buf, struct asked *asked)
{
    size_t head_length, value_length, used = read_head(fd, buf, &head_length);
    if (used == 0)
        return 0;
    asked->head = strndup(buf, head_length);
    const char *value = head_value(asked->head, "Content-Length", &value_length);
    asked->length = value ? strtoull(value, NULL, 10) : 0;
    asked->body = malloc(asked->length + 1);
    size_t have = used - head_length < asked->length ? used - head_length : asked->length;
    memcpy(asked->body, buf + head_length, have);
    while (have < asked->length) {
        ssize_t got = recv(fd, asked->body + have, asked->length - have, 0);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0) {
            free(asked->head);
            free(asked->body);
            return 0;
        }
        have += (size_t)got;
    }
    return 1;
}

static void *connection_run(void *user)
{
    struct connection *connection = user;
    struct answering *server = connection->server;
    char *buf = malloc(HEAD_CAP);
    struct asked asked;
    while (read_request(connection->fd, buf, &asked) && answer_one(connection, asked))
        continue;
    free(buf);
    pthread_mutex_lock(&server->lock); /* answering_stop must not meet a number used again */
    close(connection->fd);
    connection->fd = -1;
    pthread_mutex_unlock(&server->lock);
    return NULL;
}

static void *server_run(void *user)
{
    struct answering *server = user;
    for (;;) {
        int fd = accept4(server->listener, NULL, NULL, SOCK_CLOEXEC);
        if (fd < 0 && (errno == EINTR || errno == ECONNABORTED))
            continue;
        if (fd < 0)
            return NULL;
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
        pthread_mutex_lock(&server->lock);
        if (server->is_stopping || server->connection_count == CONNECTIONS) {
            close(fd);
        } else {
            struct connection *connection = &server->connections[server->connection_count++];
            *connection = (struct connection){.server = server, .fd = fd};
            assert_int_equal(pthread_create(&connection->thread, NULL, connection_run, connection),
                             0);
        }
        pthread_mutex_unlock(&server->lock);
    }
}

/* --- for tests */

struct answering *answering_start(const struct answering_step *steps, uint32_t count)
{
    struct answering *server = calloc(1, sizeof *server);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    assert_non_null(server);
    pthread_mutex_init(&server->lock, NULL);
    pthread_cond_init(&server->changed, NULL);
    answering_script(server, steps, count);
    server->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(server->listener >= 0);
    assert_int_equal(bind(server->listener, (struct sockaddr *)&address, length), 0);
    assert_int_equal(listen(server->listener, 512), 0);
    assert_int_equal(getsockname(server->listener, (struct sockaddr *)&address, &length), 0);
    server->port = ntohs(address.sin_port);
    assert_int_equal(pthread_create(&server->thread, NULL, server_run, server), 0);
    return server;
}

void answering_stop(struct answering *server)
{
    if (!server)
        return;
    pthread_mutex_lock(&server->lock);
    server->is_stopping = 1;
    pthread_cond_broadcast(&server->changed);
    pthread_mutex_unlock(&server->lock);
    shutdown(server->listener, SHUT_RDWR); /* wakes accept */
    pthread_join(server->thread, NULL);
    close(server->listener);
    pthread_mutex_lock(&server->lock);
    for (uint32_t i = 0; i < server->connection_count; i++) {
        if (server->connections[i].fd >= 0)
            shutdown(server->connections[i].fd, SHUT_RDWR);
    }
    pthread_mutex_unlock(&server->lock);
    for (uint32_t i = 0; i < server->connection_count; i++)
        pthread_join(server->connections[i].thread, NULL);
    for (uint32_t i = 0; i < server->asked_count; i++) {
        free(server->asked[i].head);
        free(server->asked[i].body);
    }
    pthread_cond_destroy(&server->changed);
    pthread_mutex_destroy(&server->lock);
    free(server);
}

void answering_script(struct answering *server, const struct answering_step *steps, uint32_t count)
{
    assert_true(count <= STEPS);
    pthread_mutex_lock(&server->lock);
    if (count)
        memcpy(server->steps, steps, count * sizeof *steps);
    server->step_count = count;
    pthread_mutex_unlock(&server->lock);
}

int answering_port(const struct answering *server)
{
    return server->port;
}

const char *answering_url(const struct answering *server, const char *path)
{
    static _Thread_local char buffers[8][4096];
    static _Thread_local unsigned next;
    char *buf = buffers[next++ % 8];
    int length = snprintf(buf, sizeof buffers[0], "http://127.0.0.1:%d%s", server->port, path);
    assert_true(length > 0 && (size_t)length < sizeof buffers[0]);
    return buf;
}

uint32_t answering_requests(struct answering *server)
{
    pthread_mutex_lock(&server->lock);
    uint32_t count = server->asked_count;
    pthread_mutex_unlock(&server->lock);
    return count;
}

uint32_t answering_count(struct answering *server, const char *path)
{
    uint32_t count = 0;
    struct answering_step step = {.path = path};
    pthread_mutex_lock(&server->lock);
    for (uint32_t i = 0; i < server->asked_count; i++)
        count += step_fits(&step, server->asked[i].head) != 0;
    pthread_mutex_unlock(&server->lock);
    return count;
}

uint32_t answering_connections(struct answering *server)
{
    pthread_mutex_lock(&server->lock);
    uint32_t count = server->connection_count;
    pthread_mutex_unlock(&server->lock);
    return count;
}

static struct asked asked_at(struct answering *server, uint32_t number)
{
    pthread_mutex_lock(&server->lock);
    assert_true(number < server->asked_count);
    struct asked asked = server->asked[number];
    pthread_mutex_unlock(&server->lock);
    return asked;
}

const char *answering_head(struct answering *server, uint32_t number)
{
    return asked_at(server, number).head;
}

const void *answering_body(struct answering *server, uint32_t number, size_t *length)
{
    struct asked asked = asked_at(server, number);
    *length = asked.length;
    return asked.body;
}

int answering_had(struct answering *server, uint32_t number, const char *name, const char *value)
{
    size_t length;
    const char *found = head_value(answering_head(server, number), name, &length);
    if (!found || !value)
        return found != NULL;
    return strlen(value) == length && strncmp(found, value, length) == 0;
}

void answering_await(struct answering *server, uint32_t count)
{
    struct timespec when = moment_in(30000);
    pthread_mutex_lock(&server->lock);
    while (server->asked_count < count) {
        int result = pthread_cond_timedwait(&server->changed, &server->lock, &when);
        assert_int_equal(result, 0);
    }
    pthread_mutex_unlock(&server->lock);
}

void answering_release(struct answering *server)
{
    pthread_mutex_lock(&server->lock);
    server->is_released = 1;
    pthread_cond_broadcast(&server->changed);
    pthread_mutex_unlock(&server->lock);
}
