#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fail.h"
#include "base/memory.h"
#include "net/web_parts.h"
#include "work/cores.h"

/* libcurl's "socket" interface with our own epoll: its other interface (curl_multi_poll and
 * curl_multi_perform) looks at every transfer, with a system call each, whenever one of them has
 * bytes. */

#define SECOND_NS INT64_C(1000000000)
/* Longer than this between two looks at the clock, and we were stopped. */
#define STOPPED_NS (5 * SECOND_NS)

enum { EVENTS = 64 };

/* --- what libcurl calls */

static int on_socket(CURL *easy, curl_socket_t fd, int what, void *user, void *known)
{
    struct web *web = user;
    struct epoll_event event = {.data.fd = fd};
    (void)easy;
    if (what == CURL_POLL_REMOVE) {
        epoll_ctl(web->epoll, EPOLL_CTL_DEL, fd, &event); /* may be closed already */
        return 0;
    }
    event.events = (what & CURL_POLL_IN ? EPOLLIN : 0u) | (what & CURL_POLL_OUT ? EPOLLOUT : 0u);
    int first = known ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;
    int other = known ? EPOLL_CTL_ADD : EPOLL_CTL_MOD;
    /* Where the kernel refuses both, the transfer will stall and be told so. An error from here
     * would end all transfers there are. */
    if (epoll_ctl(web->epoll, first, fd, &event) == 0 ||
        epoll_ctl(web->epoll, other, fd, &event) == 0)
        curl_multi_assign(web->multi, fd, web);
    return 0;
}

static int on_timer(CURLM *multi, long wait_ms, void *user)
{
    struct web *web = user;
    (void)multi;
    web->curl_due_ns = wait_ms < 0 ? INT64_MAX : clock_now() + wait_ms * INT64_C(1000000);
    return 0;
}

/* --- requests */

/* No lock is held here: done() may start others. */
static void request_over(struct web_request *request, enum web_failure failure, const char *words)
{
    struct web_answer *answer = &request->answer;
    answer->failure = failure;
    if (words)
        web_answer_words(answer, words);
    answer->finished_ns = clock_now();
    request->done(request);
}

/* The answer of a request that never began. */
static void request_clear(struct web_request *request)
{
    struct web_answer *answer = &request->answer;
    *answer = (struct web_answer){
        .length = STK_NOWHERE, .object_size = STK_NOWHERE, .retry_after_ms = -1};
    request->inside = NULL;
    request->host = NULL;
    request->next = NULL;
    request->cancelled = 0;
}

static void list_over(struct web_request *first)
{
    while (first) {
        struct web_request *request = first;
        first = request->next;
        int is_late =
            !request->cancelled && request->deadline_ns && request->deadline_ns <= clock_now();
        request_over(request, is_late ? WEB_LATE : WEB_CANCELLED, NULL);
    }
}

static void due_lower(int64_t *due, int64_t moment)
{
    if (moment && moment < *due)
        *due = moment;
}

/* Fills the host's free places. */
static void host_pump(struct web *web, struct web_host *host)
{
    struct web_request *request;
    while ((request = web_host_next(web, host))) {
        enum web_failure failure = web_transfer_begin(web, request);
        if (failure) {
            request_over(request, failure, "the request could not be made");
            continue;
        }
        host->running++;
        due_lower(&web->check_due_ns, clock_now() + web->options.stall_ms * INT64_C(1000000));
    }
    web_host_prune(web, host);
}

static void request_begin(struct web *web, struct web_request *request)
{
    const char *words = NULL;
    if (request->cancelled || web->is_stopping) {
        request_over(request, WEB_CANCELLED, NULL);
        return;
    }
    enum web_failure failure = web_host_find(web, request->url, &request->host, &words);
    if (failure) {
        request_over(request, failure, words);
        return;
    }
    due_lower(&web->check_due_ns, request->deadline_ns);
    web_host_add(web, request);
    host_pump(web, request->host);
}

static void transfer_over(struct web *web, struct web_private *transfer, CURLcode code,
                          enum web_failure failure)
{
    struct web_request *request = transfer->request;
    struct web_host *host = request->host;
    web_transfer_end(transfer, code, failure);
    host->running--;
    request->done(request);
    host_pump(web, host);
}

/* --- deadlines, stalls, cancels */

static uint64_t bytes_moved(const struct web_private *transfer)
{
    curl_off_t sent = 0;
    if (transfer->request->send_length)
        curl_easy_getinfo(transfer->easy, CURLINFO_SIZE_UPLOAD_T, &sent);
    return transfer->moved + (uint64_t)sent;
}

/* FINE: it may go on; *due is when to look again. */
static enum web_failure transfer_check(struct web_private *transfer, int64_t now, int64_t *due)
{
    const struct web_request *request = transfer->request;
    int64_t stall_ns = transfer->web->options.stall_ms * INT64_C(1000000);
    if (request->cancelled || transfer->web->is_stopping)
        return WEB_CANCELLED;
    if (request->deadline_ns && now >= request->deadline_ns)
        return WEB_LATE;
    due_lower(due, request->deadline_ns);
    if (transfer->stage == STAGE_CONNECTING) {
        due_lower(due, now + stall_ns); /* libcurl watches over this time */
        return WEB_FINE;
    }
    if (now - transfer->window_ns >= stall_ns) {
        uint64_t moved = bytes_moved(transfer);
        if (moved - transfer->window_moved < WEB_STALL_BYTES)
            return WEB_SLOW;
        transfer->window_ns = now;
        transfer->window_moved = moved;
    }
    due_lower(due, transfer->window_ns + stall_ns);
    return WEB_FINE;
}

/* done() starts no transfer by itself (what it starts lies in the inbox), but the end of one
 * begins those that wait: they are put in front of the list, behind us. */
static void check_all(struct web *web)
{
    int64_t now = clock_now(), due = INT64_MAX;
    list_over(web_host_sweep(web, web->is_stopping, now, &due));
    web->check_due_ns = INT64_MAX;
    for (struct web_private *next, *transfer = web->running; transfer; transfer = next) {
        next = transfer->next;
        enum web_failure failure = transfer_check(transfer, now, &due);
        if (failure) {
            if (failure == WEB_SLOW)
                web_answer_words(&transfer->request->answer, "hardly a byte came any more");
            transfer_over(web, transfer, CURLE_OK, failure);
        }
    }
    due_lower(&web->check_due_ns, due);
}

/* We did not run for a while: nobody is late for that. */
static void move_clocks(struct web *web, int64_t gap)
{
    atomic_fetch_add(&web->stopped_ns, gap);
    for (struct web_private *transfer = web->running; transfer; transfer = transfer->next) {
        transfer->was_stopped = 1;
        transfer->window_ns += gap;
        if (transfer->request->deadline_ns)
            transfer->request->deadline_ns += gap;
    }
    for (int i = 0; i < WEB_HOST_BUCKETS; i++) {
        for (struct web_host *host = web->hosts[i]; host; host = host->next) {
            for (struct web_request *request = host->first; request; request = request->next)
                request->deadline_ns += request->deadline_ns ? gap : 0;
        }
    }
    pthread_mutex_lock(&web->lock);
    for (struct web_request *request = web->first; request; request = request->next)
        request->deadline_ns += request->deadline_ns ? gap : 0;
    pthread_mutex_unlock(&web->lock);
    web->check_due_ns = 0;
}

/* --- the thread */

static void wake(struct web *web) /* under the lock */
{
    if (web->is_woken)
        return;
    web->is_woken = 1;
    eventfd_write(web->event, 1);
}

/* What other threads (and our own done()s) left for us. */
static void take_inbox(struct web *web)
{
    eventfd_t count;
    pthread_mutex_lock(&web->lock);
    struct web_request *request = web->first;
    int has_cancelled = web->has_cancelled;
    web->first = web->last = NULL;
    web->has_cancelled = 0;
    web->is_stopping = web->is_closing;
    if (web->is_woken)
        eventfd_read(web->event, &count);
    web->is_woken = 0;
    pthread_mutex_unlock(&web->lock);
    while (request) {
        struct web_request *next = request->next;
        request_begin(web, request);
        request = next;
    }
    if (has_cancelled || web->is_stopping)
        check_all(web);
}

static void run_timers(struct web *web)
{
    struct web_timer timer;
    int64_t now = web->is_stopping ? INT64_MAX : clock_now();
    for (;;) {
        pthread_mutex_lock(&web->lock);
        int due = web_timer_take(web, now, &timer);
        pthread_mutex_unlock(&web->lock);
        if (!due)
            return;
        timer.call(timer.user);
    }
}

/* Those that libcurl has finished. */
static void reap(struct web *web)
{
    CURLMsg *message;
    int left;
    while ((message = curl_multi_info_read(web->multi, &left))) {
        struct web_private *transfer = NULL;
        CURLcode code = message->data.result; /* the message goes with its handle */
        if (message->msg != CURLMSG_DONE)
            continue;
        curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, (char **)&transfer);
        if (!web_transfer_again(transfer, code))
            transfer_over(web, transfer, code, WEB_FINE);
    }
}

static void run_curl_timer(struct web *web)
{
    int running;
    if (web->curl_due_ns > clock_now())
        return;
    web->curl_due_ns = INT64_MAX;
    curl_multi_socket_action(web->multi, CURL_SOCKET_TIMEOUT, 0, &running);
    reap(web);
}

/* How long nothing will happen by itself, ms; -1: nothing is to be done at all. */
static int quiet_ms(struct web *web)
{
    int64_t due = web->curl_due_ns < web->check_due_ns ? web->curl_due_ns : web->check_due_ns;
    int is_busy = web->running_count + web->waiting_count > 0;
    pthread_mutex_lock(&web->lock);
    if (web->timer_count > 0) {
        due_lower(&due, web->timers[0].when_ns > 0 ? web->timers[0].when_ns : 1);
        is_busy = 1;
    }
    if (web->first || web->has_cancelled || web->is_closing != web->is_stopping)
        due = 0;
    pthread_mutex_unlock(&web->lock);
    if (!is_busy && due == INT64_MAX)
        return -1;
    /* At least once a second while there is work, so that a stop of the process can be told from
     * a long wait. */
    int64_t wait = due > 0 ? due - clock_now() : 0;
    if (wait > SECOND_NS)
        return 1000;
    return wait > 0 ? (int)((wait + 999999) / 1000000) : 0;
}

static void run_events(struct web *web, const struct epoll_event *events, int count)
{
    for (int i = 0; i < count; i++) {
        int bits = 0, running;
        if (events[i].data.fd == web->event)
            continue;
        if (events[i].events & (EPOLLIN | EPOLLHUP))
            bits |= CURL_CSELECT_IN;
        if (events[i].events & EPOLLOUT)
            bits |= CURL_CSELECT_OUT;
        if (events[i].events & EPOLLERR)
            bits |= CURL_CSELECT_ERR;
        curl_multi_socket_action(web->multi, events[i].data.fd, bits, &running);
    }
    reap(web);
}

/* Nothing happened for a second. Some versions of libcurl forget to ask for a socket's events, or
 * keep bytes of HTTP/2 for themselves: each is asked to look. */
static void nudge(struct web *web)
{
    for (struct web_private *transfer = web->running; transfer; transfer = transfer->next) {
        curl_socket_t fd = CURL_SOCKET_BAD;
        int running;
        curl_easy_getinfo(transfer->easy, CURLINFO_ACTIVESOCKET, &fd);
        if (fd != CURL_SOCKET_BAD)
            curl_multi_socket_action(web->multi, fd, 0, &running);
    }
}

static int is_over(struct web *web)
{
    pthread_mutex_lock(&web->lock);
    int over = web->is_stopping && !web->first && web->timer_count == 0;
    pthread_mutex_unlock(&web->lock);
    return over && web->running_count + web->waiting_count == 0;
}

static void *web_run(void *user)
{
    struct web *web = user;
    struct epoll_event events[EVENTS];
    int64_t last = clock_now();
    for (;;) {
        take_inbox(web);
        run_timers(web);
        run_curl_timer(web);
        if (web->check_due_ns <= clock_now())
            check_all(web);
        if (is_over(web))
            return NULL;
        int wait_ms = quiet_ms(web);
        int count = epoll_wait(web->epoll, events, EVENTS, wait_ms);
        int64_t now = clock_now(), gap = now - last;
        last = now;
        if (wait_ms >= 0 && gap > STOPPED_NS + wait_ms * INT64_C(1000000))
            move_clocks(web, gap - wait_ms * INT64_C(1000000));
        if (count == 0 && wait_ms >= 1000)
            nudge(web);
        run_events(web, events, count);
    }
}

/* --- from any thread */

void web_start(struct web *web, struct web_request *request)
{
    request_clear(request);
    if (web->pid != getpid()) { /* a child of fork: there is no thread here */
        request_over(request, WEB_CANCELLED, "the process was forked since");
        return;
    }
    pthread_mutex_lock(&web->lock);
    if (web->last)
        web->last->next = request;
    else
        web->first = request;
    web->last = request;
    wake(web);
    pthread_mutex_unlock(&web->lock);
}

void web_cancel(struct web *web, struct web_request *request)
{
    if (web->pid != getpid())
        return;
    pthread_mutex_lock(&web->lock);
    request->cancelled = 1;
    web->has_cancelled = 1;
    wake(web);
    pthread_mutex_unlock(&web->lock);
}

void web_later(struct web *web, int64_t when_ns, void (*call)(void *user), void *user)
{
    struct web_timer timer = {.when_ns = when_ns, .call = call, .user = user};
    int is_ours = pthread_equal(pthread_self(), web->thread);
    if (web->pid != getpid())
        return;
    for (;;) {
        pthread_mutex_lock(&web->lock);
        int added = web_timer_add(web, &timer);
        if (added)
            wake(web);
        pthread_mutex_unlock(&web->lock);
        if (added)
            return;
        /* No memory: on the web's thread now is better than never; elsewhere wait for a place. */
        if (is_ours) {
            call(user);
            return;
        }
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
}

int64_t web_stopped_ns(struct web *web)
{
    return atomic_load(&web->stopped_ns);
}

struct waiting {
    pthread_mutex_t lock;
    pthread_cond_t over_now;
    int is_over; /* lock */
};

static void waiting_done(struct web_request *request)
{
    struct waiting *waiting = request->owner;
    pthread_mutex_lock(&waiting->lock);
    waiting->is_over = 1;
    pthread_cond_signal(&waiting->over_now);
    pthread_mutex_unlock(&waiting->lock);
}

void web_wait(struct web *web, struct web_request *request)
{
    struct waiting waiting = {.lock = PTHREAD_MUTEX_INITIALIZER,
                              .over_now = PTHREAD_COND_INITIALIZER};
    void *owner = request->owner;
    assert(web->pid != getpid() || !pthread_equal(pthread_self(), web->thread));
    request->owner = &waiting;
    request->done = waiting_done;
    web_start(web, request);
    pthread_mutex_lock(&waiting.lock);
    while (!waiting.is_over)
        pthread_cond_wait(&waiting.over_now, &waiting.lock);
    pthread_mutex_unlock(&waiting.lock);
    request->owner = owner;
    pthread_mutex_destroy(&waiting.lock);
    pthread_cond_destroy(&waiting.over_now);
}

/* --- open and close */

/* The first of these variables that is set, as a copy; "" when none is. NULL: no memory. They are
 * read once, here: the process may change its environment while the thread runs. */
static char *variable(const char *const *names)
{
    const char *value = NULL;
    for (; *names && (!value || !value[0]); names++)
        value = getenv(*names);
    value = value ? value : "";
    return memory_text(value, strlen(value));
}

static stk_status read_proxies(struct web *web, struct stk_error *err)
{
    /* HTTP_PROXY in capitals is what a web server makes of a header: not looked at. */
    static const char *const http[] = {"http_proxy", "all_proxy", "ALL_PROXY", NULL};
    static const char *const https[] = {"https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY",
                                        NULL};
    static const char *const none[] = {"no_proxy", "NO_PROXY", NULL};
    web->http_proxy = variable(http);
    web->https_proxy = variable(https);
    web->no_proxy = variable(none);
    return web->http_proxy && web->https_proxy && web->no_proxy ? STK_OK : fail_memory(err, 0);
}

/* Where distributions keep the system's certificates: a libcurl that was built on one of them (in
 * a wheel) does not find those of the others. */
static const char *system_ca(void)
{
    static const char *const places[] = {"/etc/ssl/certs/ca-certificates.crt",
                                         "/etc/pki/tls/certs/ca-bundle.crt",
                                         "/etc/ssl/ca-bundle.pem",
                                         "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
                                         "/etc/ssl/cert.pem",
                                         NULL};
    for (int i = 0; places[i]; i++) {
        if (access(places[i], R_OK) == 0)
            return places[i];
    }
    return NULL;
}

static stk_status read_options(struct web *web, const struct web_options *options,
                               struct stk_error *err)
{
    web->options = *options;
    web->options.connect_ms = options->connect_ms ? options->connect_ms : 10000;
    web->options.stall_ms = options->stall_ms ? options->stall_ms : 20000;
    web->options.connections = options->connections ? options->connections : 64;
    const char *ca = options->ca && options->ca[0] ? options->ca : NULL;
    if (ca && access(ca, R_OK)) {
        stk_status status = fail_errno(err, errno, "the certificates to trust cannot be read");
        fail_at(err, ca, STK_NOWHERE);
        fail_remedy(err, "give --ca or STOKER_CA a file of certificates in PEM form");
        return status;
    }
    ca = ca ? ca : system_ca();
    web->ca = ca ? memory_text(ca, strlen(ca)) : NULL;
    web->options.ca = web->ca;
    if (ca && !web->ca)
        return fail_memory(err, 0);
    return read_proxies(web, err);
}

static stk_status open_multi(struct web *web, struct stk_error *err)
{
    web->multi = curl_multi_init();
    if (!web->multi)
        return fail_memory(err, 0);
    /* Hosts are limited by web_host.c, so that who waits there does not count as connecting. Idle
     * connections are closed only when there are very many. */
    if (curl_multi_setopt(web->multi, CURLMOPT_SOCKETFUNCTION, on_socket) ||
        curl_multi_setopt(web->multi, CURLMOPT_SOCKETDATA, web) ||
        curl_multi_setopt(web->multi, CURLMOPT_TIMERFUNCTION, on_timer) ||
        curl_multi_setopt(web->multi, CURLMOPT_TIMERDATA, web) ||
        curl_multi_setopt(web->multi, CURLMOPT_MAXCONNECTS, 4L * web->options.connections))
        return fail_memory(err, 0);
    web->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (web->epoll < 0)
        return fail_errno(err, errno, "epoll_create1 failed");
    web->event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (web->event < 0)
        return fail_errno(err, errno, "eventfd failed");
    struct epoll_event event = {.events = EPOLLIN, .data.fd = web->event};
    if (epoll_ctl(web->epoll, EPOLL_CTL_ADD, web->event, &event))
        return fail_errno(err, errno, "epoll_ctl failed");
    return STK_OK;
}

stk_status web_open(struct web **out, const struct web_options *options, struct stk_error *err)
{
    static const struct cores_place place = {.name = "stoker-web"};
    stk_status status = STK_OK;
    *out = NULL;
    /* Never undone: somebody else in this process may use libcurl, too. */
    if (curl_global_init(CURL_GLOBAL_DEFAULT))
        return fail(err, STK_RESOURCE, "libcurl cannot be used: curl_global_init failed");
    struct web *web = memory_zero(1, sizeof *web);
    if (!web)
        return fail_memory(err, sizeof *web);
    web->pid = getpid();
    web->event = web->epoll = -1;
    web->curl_due_ns = web->check_due_ns = INT64_MAX;
    pthread_mutex_init(&web->lock, NULL);
    status = read_options(web, options, err);
    if (!status)
        status = open_multi(web, err);
    if (!status)
        status = cores_start(&web->thread, web_run, web, &place, err);
    if (status)
        goto done;
    web->is_started = 1;
    *out = web;
    web = NULL;
done:
    web_close(web);
    return status;
}

static void secret_text_free(char *text)
{
    if (text)
        explicit_bzero(text, strlen(text)); /* a proxy's password */
    memory_free(text);
}

void web_close(struct web *web)
{
    if (!web || web->pid != getpid()) /* a child leaves its parent's alone */
        return;
    if (web->is_started) {
        pthread_mutex_lock(&web->lock);
        web->is_closing = 1;
        wake(web);
        pthread_mutex_unlock(&web->lock);
        pthread_join(web->thread, NULL);
    }
    while (web->idle) {
        struct web_private *transfer = web->idle;
        web->idle = transfer->next;
        web_private_free(transfer);
    }
    curl_multi_cleanup(web->multi);
    web_hosts_free(web);
    if (web->event >= 0)
        close(web->event);
    if (web->epoll >= 0)
        close(web->epoll);
    pthread_mutex_destroy(&web->lock);
    secret_text_free(web->http_proxy);
    secret_text_free(web->https_proxy);
    memory_free(web->no_proxy);
    memory_free(web->ca);
    memory_free(web->timers);
    memory_free(web);
}
