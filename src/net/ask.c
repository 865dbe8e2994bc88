#include "net/ask.h"

#include <time.h>

#include "base/clock.h"
#include "base/condition.h"
#include "net/credentials.h"

#define POLL_NS 100000000

struct asking {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int over; /* lock */
};

static void ask_done(struct web_request *request)
{
    struct asking *asking = request->owner;
    pthread_mutex_lock(&asking->lock);
    asking->over = 1;
    pthread_cond_signal(&asking->changed);
    pthread_mutex_unlock(&asking->lock);
}

/* Returns when the web is done with it. Not 0: the patience ended. */
static int ask_once(struct net *net, struct web_request *request)
{
    struct asking asking = {.lock = PTHREAD_MUTEX_INITIALIZER};
    struct net_patience patience = net_patience();
    int gave_up = 0;
    condition_init(&asking.changed);
    request->done = ask_done;
    request->owner = &asking;
    web_start(net_web(net), request);
    pthread_mutex_lock(&asking.lock);
    while (!asking.over) {
        condition_wait(&asking.changed, &asking.lock, clock_now() + POLL_NS);
        if (asking.over || gave_up || !patience.is_over || !patience.is_over(patience.user))
            continue;
        gave_up = 1;
        pthread_mutex_unlock(&asking.lock); /* done() may come at once */
        web_cancel(net_web(net), request);
        pthread_mutex_lock(&asking.lock);
    }
    pthread_mutex_unlock(&asking.lock);
    pthread_cond_destroy(&asking.changed);
    pthread_mutex_destroy(&asking.lock);
    return gave_up;
}

static int is_passing(const struct web_answer *answer)
{
    if (answer->failure)
        return answer->failure != WEB_RESOLVE && answer->failure != WEB_TLS &&
               answer->failure != WEB_MEMORY;
    return answer->status == 408 || answer->status == 429 || answer->status >= 500;
}

/* Not 0: the patience ended. */
static int pause_before(uint32_t number)
{
    struct net_patience patience = net_patience();
    for (uint32_t i = 0; i < 2 * number; i++) {
        if (patience.is_over && patience.is_over(patience.user))
            return 1;
        nanosleep(&(struct timespec){.tv_nsec = POLL_NS}, NULL);
    }
    return 0;
}

stk_status ask_now(struct net *net, const struct ask *how, struct web_request *request,
                   struct text *body)
{
    if (!body->data && !secret_text_reserve(body, ASK_MOST + 1))
        return STK_MEMORY;
    request->text = body;
    request->text_most = ASK_MOST;
    request->range_first = WEB_NO_RANGE;
    for (uint32_t try = 0;; try++) {
        request->deadline_ns = clock_now() + (int64_t)how->timeout_ms * 1000000;
        if (ask_once(net, request))
            return STK_CANCELLED;
        if (!is_passing(&request->answer) || try + 1 >= how->tries)
            return request->answer.failure ? STK_IO : STK_OK;
        web_answer_free(&request->answer);
        body->len = 0;
        if (pause_before(try + 1))
            return STK_CANCELLED;
    }
}
