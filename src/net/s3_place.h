/* s3_place.h -- one bucket that speaks S3, at AWS or anywhere: its calls as HTTP, its lists and its
 * errors. site->kind of such a site is a struct s3_place.
 * Owns: itself.   Threads: any; what changes has a lock.   Errors: status; words without secrets.
 * Not here: which endpoint, region and credentials (s3_site.c, gs_site.c). */
#ifndef NET_S3_PLACE_H
#define NET_S3_PLACE_H

#include "net/sigv4.h"

struct s3_place {
    char bucket[256];
    char origin[320]; /* "https://host:port" of an endpoint that was given, whatever the style; "" :
                         AWS's own, by region */
    char service[24]; /* what AWS's own hosts begin with: "s3", "s3-fips", "s3.dualstack" */
    char base[256];   /* what the endpoint's path puts before all; "" or "/base" */
    int path_style;   /* origin/bucket/key instead of bucket.host/key */
    int requester_pays;
    int is_google; /* an object that must be new is asked for in Google's words */
    pthread_mutex_t lock;
    char region[32];       /* lock */
    struct sigv4_key *key; /* lock; in memory that cores leave out. NULL: none is kept */
    int64_t ahead_s;       /* lock: the server's clock less ours, where it told so */
};

/* Zeroed, with its lock and room for a key; NULL: no memory. */
struct s3_place *s3_place_new(void);

/* All of a kind's operations but open. SECRET_AWS signs, SECRET_BEARER is sent as it is. */
void s3_close(struct site *site);
stk_status s3_make(struct site *site, const struct site_call *call, const struct secret *secret,
                   struct site_made *made, struct stk_error *err);
stk_status s3_read_page(struct site *site, const struct site_call *call,
                        const struct web_answer *answer, const char *body, size_t length,
                        struct site_page *page, struct stk_error *err);
void s3_read_trouble(struct site *site, const struct web_answer *answer,
                     struct site_trouble *trouble);
void s3_read_upload(struct site *site, const struct site_call *call,
                    const struct web_answer *answer, const char *body, size_t length,
                    char upload[256], struct site_trouble *trouble);

/* "https://bucket.host" with base and bucket in their places: what keys are put behind. */
void s3_add_origin(struct text *url, const struct s3_place *place, const char *region);
/* Not 0: an error's XML was found in an answer, and its code and words are in *trouble. Also used
 * for answers that are said to be a success. */
int s3_read_error(struct site *site, const char *body, size_t length, struct site_trouble *trouble);

#endif
