/* ask.h -- one small question to a metadata or token server, answered before it returns.
 * Owns: nothing; the answer is the caller's.   Threads: any but the web's.   Errors: STK_IO where
 * no answer came, STK_CANCELLED where the thread's patience ended; what the answer says is the
 * caller's to judge.   Not here: objects of sites (fetch.h). */
#ifndef NET_ASK_H
#define NET_ASK_H

#include "net/net.h"

#define ASK_MOST 65536 /* bytes of an answer */

/* Sends a request that has its method, url, headers and send, with a time limit for each try; asks
 * again where none or a passing error (408, 429, 5xx) came. A good body is in *body, which is empty
 * before and to be freed by secret_text_free. request->answer is the caller's to free with
 * web_answer_free, whatever is returned. */
struct ask {
    uint32_t timeout_ms, tries;
};
STK_CHECK stk_status ask_now(struct net *net, const struct ask *how, struct web_request *request,
                             struct text *body);

#endif
