/* remote_parts.h -- what the files of a remote store know of it, and nobody else: where an object
 * lies, and the one line in which all that is to be fetched waits its turn.
 * Owns: see remote.h.   Threads: `lock` guards what is said to be under it; the web's thread calls
 * flights' done().   Errors: status, and words that are kept for a while (remote_words).
 * Not here: any contract for callers. */
#ifndef STORE_REMOTE_PARTS_H
#define STORE_REMOTE_PARTS_H

#include <pthread.h>
#include <sys/types.h>

#include "net/fetch.h"
#include "store/block_cache.h"
#include "store/remote.h"

struct flight;
struct remote_queue;

/* Where one object lies. All zero at first; place_reset frees it. */
struct place {
    struct site *site;
    char *uri; /* grown as needed; key and bare point into it */
    size_t cap, used;
    const char *key;
    const char *bare; /* the URI for the cache: of its query, which may be a secret, a hash alone */
    const char *etag; /* NULL: not known yet */
    uint64_t size, version;
    uint32_t object;
};

/* A range of an object that is wanted. It waits in the line, is cut into flights when its turn has
 * come, and is over when all of them landed. */
struct strip {
    struct strip *next, *before; /* in the line */
    int in_line;
    const struct place *place;
    uint64_t offset, length;
    const struct iovec *parts; /* where it goes; they add up to length and are not changed */
    uint32_t part_count;
    uint64_t asked;   /* bytes from its start that flights were sent for */
    uint32_t flights; /* of them in the air */
    stk_status status;
    void (*over)(struct strip *strip); /* called once, under the lock */
    void *owner;
};

/* A fetch that failed: its words, for whoever asks soon. */
struct remote_failure {
    uint32_t object;
    uint64_t offset, length;
    int64_t when_ns;
    int is_spent; /* a single read was spared by it: the next one tries */
    struct stk_error error;
};
#define REMOTE_FAILURES 32

struct known_site {
    char *prefix; /* URIs that begin with it lie in the site */
    size_t len;
    struct site *site;
};

struct blocks; /* remote_blocks.h */

struct remote {
    struct object_table table;
    struct net *net;
    struct block_cache *cache; /* NULL: none */
    struct blocks *blocks;     /* NULL without a cache */
    char *cache_folder;
    uint64_t cache_size;
    pid_t pid;           /* whose threads serve it */
    int64_t patience_ns; /* so long without any good answer: it is taken for dead */

    pthread_mutex_t lock;
    pthread_cond_t quiet; /* a flight landed */
    /* under the lock */
    struct known_site *sites;
    uint32_t site_count;
    struct strip *first, *last;       /* the line */
    struct store_stretch **stretches; /* by object, then offset */
    uint32_t stretch_count, stretch_cap;
    struct flight *flying, *idle;
    uint32_t flying_count, flying_most; /* most: as was advised when the last one was sent */
    uint32_t landing;                   /* inside done() */
    int closing;
    int64_t good_ns; /* when a flight last landed well, or the first of those in the air began */
    int64_t dead_ns; /* when one failed after a long time without any that landed well; 0: never */
    struct stk_error bad; /* its words */
    struct remote_failure failures[REMOTE_FAILURES];
    uint64_t failure_count;
};

/* The remote of a store; in a child of fork() one of its own, made at first need. */
STK_CHECK stk_status remote_of(struct store *store, struct remote **out, struct stk_error *err);

STK_CHECK stk_status place_find(struct remote *remote, uint32_t object, struct place *place,
                                struct stk_error *err);
STK_CHECK stk_status place_copy(struct place *to, const struct place *from);
void place_reset(struct place *place);

/* --- the line (remote_line.c); all under the lock, but for line_pump and line_cancel -----------
 */

void line_add(struct remote *remote, struct strip *strip);
/* Sends flights for as much of the line as may be in the air. Without the lock. */
void line_pump(struct remote *remote);
/* Ends the strips of one owner, or all (NULL), and waits until each is over. Without the lock. */
void line_cancel(struct remote *remote, int (*is_mine)(const struct strip *strip, void *user),
                 void *user);
void line_free(struct remote *remote);

/* Parts for [from, from + length) of what `parts` cover; returns how many there are. */
uint32_t parts_cut(const struct iovec *parts, uint32_t count, uint64_t from, uint64_t length,
                   struct iovec *out);

/* --- words ------------------------------------------------------------------------------------ */

void remote_note_failure(struct remote *remote, uint32_t object, uint64_t offset, uint64_t length,
                         const struct stk_error *error);
/* The words of what failed there last; 0: none are kept. Takes the lock. */
int remote_words(struct remote *remote, const struct store_read *read, struct stk_error *out);
/* The same, for who is about to read alone what a queue just could not read: it was tried often
 * enough. A failure spares one read, and only within seconds. Takes the lock. */
int remote_spares(struct remote *remote, const struct store_read *read, struct stk_error *out);
/* As it would fail after a long wait: nothing has come from there for as long as one range may
 * take, and that was found out just now. 0: it may be tried. Takes the lock. */
int remote_is_dead(struct remote *remote, struct stk_error *out);

/* --- stretches (remote_stretch.c); under the lock but where said -------------------------------
 */

struct item;

/* A read wants a part of a stretch. It is the queue's; a stretch that is on its way has it in its
 * list. */
struct dip {
    struct dip *next;
    struct item *item;
    struct store_stretch *stretch;
    uint64_t offset, length; /* in the object */
    stk_status status;
};

/* Begins a dip for as much of [offset, end) as lies in a stretch there, and says how much that is;
 * queue_dip_over follows, at once where the stretch is there. 0: none has the byte at offset; *next
 * is where the next one begins, at most end. */
uint64_t stretch_dip(struct remote *remote, struct dip *dip, uint32_t object, uint64_t offset,
                     uint64_t end, uint64_t *next);
/* Where the dip's bytes are; of a dip that is over and has no status. Without the lock. */
const uint8_t *dip_data(const struct dip *dip);
void dip_end(struct dip *dip); /* its bytes are copied, or not wanted */
/* Takes a queue's dips out of all lists, into one of its own; each is still to be ended. */
void stretches_forget(struct remote *remote, const struct remote_queue *queue, struct dip **to);

/* remote_queue.c: the stretch came, or not (dip->status). */
void queue_dip_over(struct dip *dip);
const struct remote_queue *item_queue(const struct item *item);

#endif
