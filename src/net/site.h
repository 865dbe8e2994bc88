/* site.h -- one place that holds objects: an HTTP origin, a bucket, a container. It knows how a
 * request there is written and signed, and how a list or an error of it is read.
 * Owns: its names; credentials are shared by all sites that use the same (credentials.h).
 * Threads: any; a site is immutable but for its credentials and region, which have a lock.
 * Errors: status, words that never hold a secret.   Not here: sending (fetch.h). */
#ifndef NET_SITE_H
#define NET_SITE_H

#include "base/text.h"
#include "net/credentials.h"
#include "net/net.h"

struct site;

enum site_verb {
    SITE_READ,   /* a range of an object, or all of it */
    SITE_STAT,   /* size and ETag */
    SITE_LIST,   /* one page of names under a prefix */
    SITE_PUT,    /* a whole object from memory */
    SITE_BEGIN,  /* an upload in parts begins: gives upload */
    SITE_PART,   /* part `number` of it: gives the part's tag */
    SITE_FINISH, /* makes the object of the parts */
    SITE_ABORT,  /* forgets them */
    SITE_PARTS,  /* which parts are there already: a list of parts, see site_page. Without upload:
                  * the uploads of this key that were broken off; an entry's etag is the id */
    SITE_DELETE
};

/* What is wanted. Keys are as they are, not escaped. */
struct site_call {
    enum site_verb verb;
    const char *key;
    /* LIST */
    const char *token;     /* of the page before; NULL: the first page */
    const char *delimiter; /* "/" lists one level; NULL: all below */
    uint32_t page;         /* names a page at most; 0: the most that the site gives */
    /* uploads */
    const char *upload;      /* what BEGIN gave */
    uint32_t number;         /* 1 .. */
    const char *const *tags; /* FINISH: of parts 1 .. number */
    const void *send;
    uint64_t send_length;
    int only_new;  /* PUT, FINISH: not 0: fails with STK_MISMATCH where the object is there already
                    */
    int is_prefix; /* PARTS without upload: not 0: of all keys that begin with this one */
};

/* A call as HTTP, ready to be sent. All zero at first; site_made_reset when it was sent. The
 * caller sets range and ETag of the request before it is made (Azure signs them), places and done
 * whenever it likes; making fills in method, url, headers, send and want_header alone. */
struct site_made {
    struct web_request request;
    struct text url, body;               /* body: FINISH's XML */
    struct text values[WEB_MAX_HEADERS]; /* of headers */
    uint64_t mark;                       /* of the secret that signed it; 0: none */
    char where[128];                     /* where that secret was found, for words; "" : none */
};

/* One page of a list. */
struct site_entry {
    const char *key; /* whole, decoded */
    uint64_t size;
    const char *etag; /* as a read's ETag header says it, quotes and all; "" : not told */
    int is_folder;    /* a common prefix, or a directory that the store holds as an entry */
    uint32_t number;  /* PARTS */
};
struct site_page {
    struct site_entry *entries;
    uint64_t count, cap;
    struct text names; /* where keys and ETags lie */
    char *token;       /* of the next page; NULL: that was the last */
};

/* What an answer that is an error means. */
struct site_trouble {
    stk_status status;  /* NOT_FOUND, DENIED, IO, LIMIT (throttled), USAGE, MISMATCH, STALE */
    int is_throttle;    /* slow down */
    int is_passing;     /* a retry may help */
    int is_credentials; /* expired or refused: refresh, then once more */
    int is_clock;       /* this machine's clock is wrong: the answer's Date was taken over */
    char region[32];    /* it is in another region: set, and once more */
    char code[64];      /* the site's own word for it: "NoSuchKey" */
    char words[256];    /* the site's own sentence, without requests' ids and secrets */
};

/* One a kind, in site_kinds.c's table. */
struct site_ops {
    const char *const *schemes; /* "s3", NULL */
    /* Takes a URI apart: what of it names the site, where its key begins. kind: the site's own,
     * made and freed by the kind. */
    stk_status (*open)(struct site *site, const char *uri, size_t *site_length,
                       struct stk_error *err);
    void (*close)(struct site *site);
    /* Writes a call and signs it with a secret (NULL: anonymous). Never waits. */
    stk_status (*make)(struct site *site, const struct site_call *call, const struct secret *secret,
                       struct site_made *made, struct stk_error *err);
    stk_status (*read_page)(struct site *site, const struct site_call *call,
                            const struct web_answer *answer, const char *body, size_t length,
                            struct site_page *page, struct stk_error *err);
    /* Reads an answer whose status is no success. */
    void (*read_trouble)(struct site *site, const struct web_answer *answer,
                         struct site_trouble *trouble);
    /* Reads a success of BEGIN (upload: its id), PART (its tag) or FINISH. One that holds an error
     * all the same sets *trouble, whose status is OK before. NULL: there is nothing to be read. */
    void (*read_upload)(struct site *site, const struct site_call *call,
                        const struct web_answer *answer, const char *body, size_t length,
                        char upload[256], struct site_trouble *trouble);
};
extern const struct site_ops http_site, s3_site, azure_site, gs_site;

struct site {
    const struct site_ops *ops;
    struct net *net;
    char *uri;  /* "s3://bucket", "https://host:port": no slash at its end, no secret */
    char *host; /* what retries and connections are counted by: "bucket.s3.amazonaws.com:443" */
    void *kind; /* the kind's own */
    struct credentials *credentials; /* set by open; NULL: anonymous */
    int can_list, can_put;
    struct site *next; /* net's list */
    uint32_t references;
};

/* The site that a URI lies in: found, or made. *key points into uri, behind the site's part and one
 * slash; "" : the site itself. */
STK_CHECK stk_status site_open(struct site **out, struct net *net, const char *uri,
                               const char **key, struct stk_error *err);
void site_close(struct site *site); /* NULL is fine; it is kept until the net ends */
/* For kinds' open: sets site->credentials to those of this name, which all sites of a net share;
 * made from the source where there are none yet, else the source is freed. They last as the net
 * does. */
STK_CHECK stk_status site_share_credentials(struct site *site, const char *name,
                                            const struct credentials_source *source,
                                            struct stk_error *err);
/* The net ends: frees its sites and credentials. */
void site_forget(struct net *net);
/* Not 0: uri begins with the scheme of a kind of site. */
int site_is_remote(const char *uri);

/* As ops->make. Credentials that are there and last are used at once; else it waits for them. */
STK_CHECK stk_status site_make(struct site *site, const struct site_call *call,
                               struct site_made *made, struct stk_error *err);
/* STK_BUSY where credentials must be waited for: site_make it on another thread. */
STK_CHECK stk_status site_make_now(struct site *site, const struct site_call *call,
                                   struct site_made *made, struct stk_error *err);
void site_made_reset(struct site_made *made); /* wipes */
/* A request with this mark (site_made's) was refused: fresh credentials are looked for. */
void site_refused(struct site *site, uint64_t mark);
/* For kinds' make: adds a header and gives the text that its value is to be added to. The name
 * lasts as long as the program. NULL: there are too many. */
struct text *site_header(struct site_made *made, const char *name);
/* Sets url, values and send of the request from the texts, once all are written. */
STK_CHECK stk_status site_made_finish(struct site_made *made, struct stk_error *err);

/* What an answer that is no success means: clears *trouble, asks the kind, and knows what only_new
 * makes of it (STK_MISMATCH). */
void site_read_trouble(struct site *site, const struct site_call *call,
                       const struct web_answer *answer, struct site_trouble *trouble);
/* For kinds: what HTTP's status alone says. */
void site_trouble_by_status(int status, struct site_trouble *trouble);

/* Copies key and ETag. A page may be added to by several read_page: pointers stay right. */
STK_CHECK stk_status site_page_add(struct site_page *page, const struct site_entry *entry,
                                   struct stk_error *err);
void site_page_reset(struct site_page *page);

/* The version of an object (struct object's) from its ETag; from size and Last-Modified where
 * there is none. Never 0. */
uint64_t site_version(const char *etag, uint64_t size, const char *last_modified);
/* Whether an object of this size that changes has another version: 0 where the server told neither
 * of the two. */
int site_version_tells(uint64_t version, uint64_t size);

#endif
