/* net.h -- what a process has once for all its remote data: the web, credentials, sites, listings.
 * Owns: all of these, from the first net_take to the last net_give.   Threads: any.   Errors:
 * status. Not here: what any of them does (web.h, site.h).
 *
 * A child of fork() has none of it: its first net_take makes its own. */
#ifndef NET_NET_H
#define NET_NET_H

#include <pthread.h>

#include "net/web.h"

struct net;

/* STK_UNSUPPORTED where this build has no libcurl: says which package to install. */
STK_CHECK stk_status net_take(struct net **out, struct stk_error *err);
/* Never on the web's thread. In a child of fork() what the parent took may be given, too: it stays
 * the parent's. */
void net_give(struct net *net);

struct web *net_web(struct net *net);

/* What site.c keeps here. The last net_give calls site_forget before it closes the web. */
struct site;
struct net_places {
    pthread_mutex_t lock;
    struct site *sites;
    struct credentials_named *credentials;
};
struct net_places *net_places(struct net *net);
/* What fetch.c keeps here (fetch_world.h). */
struct fetch_world;
struct fetch_world *net_fetch_world(struct net *net);

/* What everything remote is limited by. Set before the first net_take (NULL: from the environment:
 * STOKER_CA, else AWS_CA_BUNDLE, REQUESTS_CA_BUNDLE, CURL_CA_BUNDLE, SSL_CERT_FILE; STOKER_TIMEOUT
 * in seconds). What is 0 or "" comes from there, too. */
struct net_settings {
    char ca[1024];      /* "" : the system's certificates */
    uint32_t timeout_s; /* how long one range, list or stat may take with all its retries; 60 */
};
void net_configure(const struct net_settings *settings);
const struct net_settings *net_settings(struct net *net);

/* What blocking calls of this thread (fetch_now) ask ten times a second; not 0: give up with
 * STK_CANCELLED. NULL: never. Thread-local; whoever starts threads hands it on. */
struct net_patience {
    int (*is_over)(void *user);
    void *user;
};
void net_patience_set(const struct net_patience *patience);
struct net_patience net_patience(void);

/* ETags that lists and answers told, by the version made of them (site.h: site_version), so that
 * an index need keep numbers only. Returns NULL when it is not known; the text lives as long as
 * the net. Any thread. */
void net_etag_learn(struct net *net, uint64_t version, const char *etag);
const char *net_etag(struct net *net, uint64_t version);

#endif
