/* What is the same whether there is a libcurl or not. */
#include "net/web.h"

static const char *const failure_words[WEB_FAILURES] = {
    [WEB_FINE] = "it was answered",
    [WEB_RESOLVE] = "the host's name is not known",
    [WEB_CONNECT] = "the host cannot be reached",
    [WEB_TLS] = "the host's certificate is not trusted",
    [WEB_RESET] = "the connection broke off",
    [WEB_SLOW] = "the answer stalled",
    [WEB_LATE] = "the time limit passed",
    [WEB_LENGTH] = "the answer is longer than was asked for",
    [WEB_RANGE] = "the answer is not the range that was asked for",
    [WEB_CHANGED] = "the object changed",
    [WEB_ENCODED] = "the answer is encoded, by a proxy or by the server",
    [WEB_REDIRECT] = "the server redirects to where must not be gone",
    [WEB_PROTOCOL] = "the answer is not HTTP",
    [WEB_CANCELLED] = "it was cancelled",
    [WEB_MEMORY] = "out of memory",
};

const char *web_failure_words(enum web_failure failure)
{
    return (unsigned)failure < WEB_FAILURES ? failure_words[failure] : "it failed";
}

void web_answer_free(struct web_answer *answer)
{
    text_free(&answer->body);
}
