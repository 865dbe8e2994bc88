/* What one try came to: done, never, later, or once more. */
#include "net/fetch_parts.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#define MOST_REDIRECTS 5
#define MOST_REGIONS 2
#define MOST_RESTARTS 3
#define STALE_REMEDY "index it again (stoker index), and do not write to data that is being read"

static struct verdict verdict_fail(stk_status status)
{
    return (struct verdict){.kind = VERDICT_FAIL, .status = status, .retry_after_ms = -1};
}

static struct verdict verdict_of(enum verdict_kind kind, stk_status status)
{
    return (struct verdict){.kind = kind, .status = status, .retry_after_ms = -1};
}

uint64_t judge_size(const struct web_answer *answer)
{
    return answer->object_size != STK_NOWHERE ? answer->object_size : answer->length;
}

/* The answer of a read is of the object that is wanted, and of the one that the bytes in place are
 * of. */
int judge_is_of_object(const struct fetch_private *inside, const struct web_answer *answer)
{
    const struct fetch *fetch = inside->fetch;
    const uint64_t size = judge_size(answer);
    if (fetch->call.verb != SITE_READ)
        return 1;
    if (fetch->etag && *answer->etag && strcmp(fetch->etag, answer->etag) != 0)
        return 0;
    if (fetch->version && site_version(answer->etag, size, answer->last_modified) != fetch->version)
        return 0;
    if (!inside->got)
        return 1;
    return strcmp(inside->etag, answer->etag) == 0 &&
           strcmp(inside->last_modified, answer->last_modified) == 0 &&
           (inside->object_size == STK_NOWHERE || size == STK_NOWHERE ||
            inside->object_size == size);
}

/* The object is not the one that was expected. What the caller expects is final; what only our own
 * first bytes were of is forgotten, and all is fetched anew. */
static struct verdict judge_changed(struct fetch_private *inside)
{
    const struct fetch *fetch = inside->fetch;
    words_say(inside, STK_STALE, STALE_REMEDY, "%s", words_of_failure(WEB_CHANGED)->what);
    if (fetch->etag || fetch->version || inside->restarts++ >= MOST_RESTARTS)
        return verdict_fail(STK_STALE);
    range_restart(inside);
    return verdict_of(VERDICT_LATER, STK_STALE);
}

/* A good answer that was not whole. */
static int is_broken_off(const struct web_answer *answer)
{
    const enum web_failure failure = answer->failure;
    return (failure == WEB_RESET || failure == WEB_SLOW || failure == WEB_LATE) &&
           answer->status >= 200 && answer->status < 300;
}

static struct verdict judge_failure(struct fetch_private *inside, struct attempt *attempt)
{
    const struct web_answer *answer = &attempt->made.request.answer;
    const struct fetch_words *words = words_of_failure(answer->failure);
    struct verdict verdict = {
        .kind = VERDICT_LATER, .retry_after_ms = -1, .tries_most = words->tries_most};
    if (answer->failure == WEB_CHANGED)
        return judge_changed(inside);
    if (is_broken_off(answer)) {
        if (!judge_is_of_object(inside, answer))
            return judge_changed(inside);
        inside->fruitless = answer->received ? 0 : inside->fruitless;
        range_keep(inside, attempt);
        if (range_is_whole(inside))
            return verdict_of(VERDICT_DONE, STK_OK);
    } else if (inside->fetch->text) {
        range_restart(inside); /* what came of a wrong answer is not kept */
    }
    verdict.status = words_failure(inside, answer);
    const int is_elsewhere = answer->failure == WEB_RESOLVE || answer->failure == WEB_CONNECT;
    if (is_elsewhere && inside->host->has_answered)
        verdict.tries_most = 0; /* it was there before: it is down, not wrong */
    if (words->tries_most == 1)
        verdict.kind = VERDICT_FAIL;
    inside->want_new_connection = 1;
    if (answer->failure == WEB_PROTOCOL)
        inside->want_http1 = 1;
    return verdict;
}

/* A redirect that is not a region's: where to, and does anything secret go along? */
static struct verdict judge_redirect(struct fetch_private *inside, struct attempt *attempt)
{
    const struct web_request *request = &attempt->made.request;
    const enum site_verb verb = inside->fetch->call.verb;
    struct text to = {0};
    struct verdict verdict = verdict_of(VERDICT_REDIRECT, STK_OK);
    const enum redirect_kind kind = redirect_resolve(request->url, request->answer.location, &to);
    if (to.failed)
        verdict = verdict_fail(words_say(inside, STK_MEMORY, "", "out of memory"));
    else if (verb != SITE_READ && verb != SITE_STAT && verb != SITE_LIST)
        verdict = verdict_fail(words_say(inside, STK_IO, "name the site where it lies now",
                                         "writing was answered with a redirect: not followed"));
    else if (kind == REDIRECT_DOWN)
        verdict = verdict_fail(words_say(inside, STK_DENIED, "name an address that stays on https",
                                         "a redirect leads from https down to http: not followed"));
    else if (kind == REDIRECT_BAD)
        verdict = verdict_fail(words_say(inside, STK_IO, "", "a redirect leads nowhere: HTTP %d",
                                         request->answer.status));
    else if (++inside->redirects > MOST_REDIRECTS)
        verdict =
            verdict_fail(words_say(inside, STK_IO, "name the address where it ends",
                                   "more than %d redirects one after the other", MOST_REDIRECTS));
    if (verdict.kind != VERDICT_REDIRECT) {
        redirect_free(&to);
        return verdict;
    }
    if (kind == REDIRECT_FOREIGN)
        inside->is_foreign = 1; /* and stays so, even if the next one leads back */
    redirect_free(&inside->redirect);
    inside->redirect = to;
    return verdict;
}

/* Of an origin that is not the site's: its words are not the site's. */
static void plain_trouble(const struct web_answer *answer, struct site_trouble *trouble)
{
    const struct fetch_words *words = words_of_status(answer->status);
    trouble->status = words->status;
    trouble->is_throttle = answer->status == 429 || answer->status == 503;
    trouble->is_passing = words->tries_most == 0;
}

static struct verdict judge_credentials(struct fetch_private *inside, struct attempt *attempt,
                                        const struct site_trouble *trouble)
{
    const int status = attempt->made.request.answer.status;
    const stk_status code = words_refused(inside, status, trouble);
    if (inside->refreshes || !attempt->made.mark)
        return verdict_fail(code);
    site_refused(inside->fetch->site, attempt->made.mark);
    inside->refreshes++;
    world_count(inside->world, &inside->world->counts.refreshes, 1);
    return verdict_of(VERDICT_AGAIN, code);
}

static struct verdict judge_trouble(struct fetch_private *inside, struct attempt *attempt,
                                    int status, const struct site_trouble *trouble)
{
    const struct web_answer *answer = &attempt->made.request.answer;
    if (trouble->is_clock && inside->clocks++ == 0)
        return verdict_of(VERDICT_AGAIN, words_trouble(inside, status, trouble));
    if (trouble->is_credentials)
        return judge_credentials(inside, attempt, trouble);
    if (status == 412 && inside->fetch->call.verb == SITE_READ)
        return judge_changed(inside);
    struct verdict verdict = verdict_fail(words_trouble(inside, status, trouble));
    if (*trouble->region && inside->regions++ < MOST_REGIONS)
        verdict.kind = VERDICT_AGAIN;
    else if (trouble->is_throttle || trouble->is_passing)
        verdict.kind = VERDICT_LATER;
    verdict.is_throttle = trouble->is_throttle;
    verdict.retry_after_ms = answer->retry_after_ms;
    return verdict;
}

/* A status that is no success. */
static struct verdict judge_status(struct fetch_private *inside, struct attempt *attempt)
{
    struct web_answer *answer = &attempt->made.request.answer;
    struct site_trouble trouble = {0};
    struct site *site = inside->fetch->site;
    if (inside->is_foreign)
        plain_trouble(answer, &trouble);
    else
        site_read_trouble(site, &inside->fetch->call, answer, &trouble);
    const int is_redirect = answer->status >= 300 && answer->status < 400 && !*trouble.region;
    if (is_redirect && (*answer->location || answer->status != 304))
        return judge_redirect(inside, attempt);
    return judge_trouble(inside, attempt, answer->status, &trouble);
}

/* Not 0: XML whose root is an Error (sites answer so even with 200). */
static int is_error_body(const char *data, size_t len)
{
    const char *end = data + len;
    while (data < end) {
        data += strspn(data, " \t\r\n");
        if (end - data < 7 || *data != '<')
            return 0;
        if (strncmp(data, "<Error>", 7) == 0 || strncmp(data, "<Error ", 7) == 0)
            return 1;
        if (data[1] != '?')
            return 0;
        data = strchr(data, '>');
        if (!data)
            return 0;
        data++;
    }
    return 0;
}

/* An object may well be XML; but a site tells the ETag of an object, and of an error never. */
static int may_be_error(const struct fetch *fetch, const struct web_answer *answer)
{
    if (fetch->call.verb == SITE_READ && (*answer->etag || *answer->last_modified))
        return 0;
    return strcasestr(answer->content_type, "xml") || fetch->call.verb != SITE_READ;
}

/* A good status over an error: it is judged as the failure of the server that it is. */
static struct verdict judge_error_body(struct fetch_private *inside, struct attempt *attempt,
                                       const struct text *body)
{
    struct web_answer answer = attempt->made.request.answer; /* shallow: the body is lent */
    struct site_trouble trouble = {0};
    struct site *site = inside->fetch->site;
    answer.status = 500;
    answer.body = *body;
    site_read_trouble(site, &inside->fetch->call, &answer, &trouble);
    trouble.is_passing = trouble.is_passing || trouble.status == STK_OK;
    const struct verdict verdict = judge_trouble(inside, attempt, 500, &trouble);
    range_restart(inside);
    return verdict;
}

static struct verdict judge_upload(struct fetch_private *inside, struct attempt *attempt,
                                   const struct text *body)
{
    struct fetch *fetch = inside->fetch;
    struct site_trouble trouble = {0};
    const struct web_answer *answer = &attempt->made.request.answer;
    snprintf(fetch->upload, sizeof fetch->upload, "%s", answer->upload);
    if (fetch->site->ops->read_upload)
        fetch->site->ops->read_upload(fetch->site, &fetch->call, answer,
                                      body->data ? body->data : "", body->len, fetch->upload,
                                      &trouble);
    if (trouble.status)
        return judge_trouble(inside, attempt, answer->status, &trouble);
    return verdict_of(VERDICT_DONE, STK_OK);
}

static struct verdict judge_success(struct fetch_private *inside, struct attempt *attempt)
{
    struct fetch *fetch = inside->fetch;
    const struct web_request *request = &attempt->made.request;
    const struct web_answer *answer = &request->answer;
    const struct text *body = request->text;
    const enum site_verb verb = fetch->call.verb;
    if (body && body->failed) {
        words_say(inside, STK_MEMORY, "", "out of memory");
        return verdict_fail(STK_MEMORY);
    }
    if (body && body->data && may_be_error(fetch, answer)) {
        const struct text fresh = {.data = body->data + inside->text_base,
                                   .len = body->len - inside->text_base};
        if (is_error_body(fresh.data, fresh.len))
            return judge_error_body(inside, attempt, &fresh);
    }
    if (!judge_is_of_object(inside, answer))
        return judge_changed(inside);
    if (verb == SITE_BEGIN || verb == SITE_PART || verb == SITE_FINISH)
        return judge_upload(inside, attempt, body);
    snprintf(fetch->upload, sizeof fetch->upload, "%s", answer->upload);
    return verdict_of(VERDICT_DONE, STK_OK);
}

struct verdict fetch_judge(struct fetch_private *inside, struct attempt *attempt)
{
    const struct web_answer *answer = &attempt->made.request.answer;
    const int is_ours = answer->failure == WEB_CANCELLED || answer->failure == WEB_MEMORY;
    if (answer->status)
        inside->host->has_answered = 1;
    if (answer->status >= 300 && !is_ours)
        return judge_status(inside, attempt);
    if (answer->failure != WEB_FINE)
        return judge_failure(inside, attempt);
    return judge_success(inside, attempt);
}
