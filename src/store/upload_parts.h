/* upload_parts.h -- what the files of an upload share. See upload.h for the contract.
 * Owns: see upload.h.   Threads: see each field.   Errors: see upload.h.
 * Not here: any contract for callers. */
#ifndef STORE_UPLOAD_PARTS_H
#define STORE_UPLOAD_PARTS_H

#include <pthread.h>

#include "net/fetch.h"
#include "store/upload.h"

#define UPLOAD_PART ((uint64_t)8 << 20) /* the first parts' length */
#define UPLOAD_MOST_PARTS 10000         /* S3's; Azure's is 50,000 */
#define UPLOAD_STEP 1000                /* so many parts are of one length, then it doubles */
#define UPLOAD_DOUBLINGS 8              /* 2 GiB: Azure takes no part of 4 GiB */
#define UPLOAD_TAG 128                  /* bytes of a part's tag: an MD5 in quotes, or the like */

/* One part on its way, or a place for one. */
struct upload_slot {
    struct upload *upload;
    struct fetch fetch;
    uint8_t *memory;
    size_t cap;
    int is_busy; /* lock */
};

/* Parts that an upload before this one left there, by what the site says of them. */
struct upload_left {
    struct site_page parts;
    char id[256]; /* "" : the site has no ids, or there is none */
};

struct upload {
    struct net *net;
    struct site *site;
    char *uri;
    const char *key; /* in uri */
    struct upload_options options;
    uint64_t sent;  /* bytes in parts that were begun */
    uint32_t begun; /* parts */
    char id[256];   /* what BEGIN gave; "" : not begun, or the site has no ids */
    int has_begun;
    struct upload_left left;
    uint8_t *memory; /* the part that is being filled */
    size_t cap, filled;
    char (*tags)[UPLOAD_TAG]; /* lock; of parts 1 .. begun */
    uint32_t tag_cap;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct upload_slot *slots;
    uint32_t slot_count;
    uint64_t in_flight;     /* lock: bytes */
    stk_status status;      /* lock: the first part that failed */
    struct stk_error error; /* lock */
};

/* How long part `number` (1 ..) is: always the same, so that one upload can go on with the parts of
 * another. Lengths double after each thousand: 10,000 parts hold 5.8 TiB, and a size that is not
 * known beforehand is no trouble. */
uint64_t upload_part_length(uint32_t number);

/* Looks for parts of an upload that was broken off. None is no error. */
STK_CHECK stk_status upload_left_find(struct upload *upload, struct stk_error *err);
/* Not 0: a part with these very bytes is there; tag is its tag. */
int upload_left_has(const struct upload *upload, uint32_t number, const void *data, size_t length,
                    char tag[UPLOAD_TAG]);
/* Not 0: an object that is there already is the one that this upload makes: its end was told, and
 * the answer lost. */
int upload_is_there(struct upload *upload, const void *whole, size_t length);

/* A fetch of this upload's object, with a time limit that fits so many bytes. */
void upload_fetch(struct upload *upload, struct fetch *fetch, enum site_verb verb, uint64_t bytes);

#endif
