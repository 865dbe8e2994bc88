#include "store/block_index.h"

#include <string.h>

#include "base/hash.h"
#include "base/memory.h"

#define CHUNK_NODES 256
#define BUCKETS_FIRST 64

struct node_chunk {
    struct node_chunk *next;
    struct block_node nodes[CHUNK_NODES];
};

void block_index_init(struct block_index *index)
{
    for (int i = 0; i < INDEX_STRIPES; i++) {
        index->stripes[i] = (struct block_stripe){0};
        pthread_mutex_init(&index->stripes[i].lock, NULL);
    }
}

void block_index_reset(struct block_index *index)
{
    for (int i = 0; i < INDEX_STRIPES; i++) {
        struct block_stripe *stripe = &index->stripes[i];
        for (struct node_chunk *chunk = stripe->chunks, *next; chunk; chunk = next) {
            next = chunk->next;
            memory_free(chunk);
        }
        memory_free(stripe->buckets);
        pthread_mutex_destroy(&stripe->lock);
    }
}

struct block_key block_key(const uint8_t id[16], uint64_t number)
{
    struct block_key key = {.number = (uint32_t)number};
    memcpy(key.id, id, sizeof key.id);
    key.hash = hash_bytes(id, sizeof key.id, number);
    return key;
}

/* ---- one stripe ---------------------------------------------------------------------------- */

struct block_stripe *block_index_stripe(struct block_index *index, const struct block_key *key)
{
    return &index->stripes[key->hash % INDEX_STRIPES];
}

static struct block_node **bucket_of(struct block_stripe *stripe, uint64_t hash)
{
    return &stripe->buckets[(hash / INDEX_STRIPES) & (stripe->bucket_count - 1)];
}

static int is_it(const struct block_node *node, const struct block_key *key)
{
    return node->number == key->number && !memcmp(node->id, key->id, sizeof key->id);
}

struct block_node *stripe_find(struct block_stripe *stripe, const struct block_key *key)
{
    struct block_node *node = stripe->bucket_count ? *bucket_of(stripe, key->hash) : NULL;
    while (node && !is_it(node, key))
        node = node->next;
    return node;
}

/* Twice as many buckets. Without memory for them the chains get longer, and that is all, but for
 * the first ones. */
static int grow(struct block_stripe *stripe)
{
    uint32_t count = stripe->bucket_count ? 2 * stripe->bucket_count : BUCKETS_FIRST;
    struct block_node **old = stripe->buckets, **buckets = memory_zero(count, sizeof *buckets);
    uint32_t old_count = stripe->bucket_count;
    if (!buckets)
        return old_count != 0;
    stripe->buckets = buckets;
    stripe->bucket_count = count;
    for (uint32_t i = 0; i < old_count; i++) {
        for (struct block_node *node = old[i], *next; node; node = next) {
            struct block_key key = block_key(node->id, node->number);
            struct block_node **bucket = bucket_of(stripe, key.hash);
            next = node->next;
            node->next = *bucket;
            *bucket = node;
        }
    }
    memory_free(old);
    return 1;
}

static int more_nodes(struct block_stripe *stripe)
{
    struct node_chunk *chunk = memory_alloc(sizeof *chunk);
    if (!chunk)
        return 0;
    chunk->next = stripe->chunks;
    stripe->chunks = chunk;
    for (int i = 0; i < CHUNK_NODES; i++) {
        chunk->nodes[i].next = stripe->free;
        stripe->free = &chunk->nodes[i];
    }
    return 1;
}

struct block_node *stripe_add(struct block_stripe *stripe, const struct block_key *key)
{
    if (stripe->count >= stripe->bucket_count && !grow(stripe))
        return NULL;
    if (!stripe->free && !more_nodes(stripe))
        return NULL;
    struct block_node *node = stripe->free, **bucket = bucket_of(stripe, key->hash);
    stripe->free = node->next;
    *node = (struct block_node){.next = *bucket, .number = key->number};
    memcpy(node->id, key->id, sizeof node->id);
    *bucket = node;
    stripe->count++;
    return node;
}

/* Takes the node that *link points to out of its chain. */
static void unlink_node(struct block_stripe *stripe, struct block_node **link)
{
    struct block_node *node = *link;
    *link = node->next;
    node->next = stripe->free;
    stripe->free = node;
    stripe->count--;
}

void stripe_remove(struct block_stripe *stripe, const struct block_key *key)
{
    struct block_node **link = stripe->bucket_count ? bucket_of(stripe, key->hash) : NULL;
    while (link && *link && !is_it(*link, key))
        link = &(*link)->next;
    if (link && *link)
        unlink_node(stripe, link);
}

/* ---- all of it ----------------------------------------------------------------------------- */

int block_index_add(struct block_index *index, const struct block_key *key,
                    const struct segment_block *block)
{
    struct block_stripe *stripe = block_index_stripe(index, key);
    pthread_mutex_lock(&stripe->lock);
    struct block_node *node = stripe_find(stripe, key);
    int fresh = !node || node->state == NODE_THEIRS;
    if (!node)
        node = stripe_add(stripe, key);
    if (node && (fresh || node->state == NODE_OURS)) {
        node->state = fresh ? NODE_HERE : NODE_OURS;
        node->entry = block->entry;
        node->length = block->length;
        node->page = (uint32_t)(block->offset / SEGMENT_PAGE);
        node->at.segment = block->segment;
    }
    pthread_mutex_unlock(&stripe->lock);
    return node != NULL;
}

void block_index_forget(struct block_index *index, const struct block_key *key,
                        const struct segment_block *block)
{
    struct block_stripe *stripe = block_index_stripe(index, key);
    pthread_mutex_lock(&stripe->lock);
    struct block_node *node = stripe_find(stripe, key);
    if (node && node->state == NODE_HERE && node->at.segment == block->segment &&
        node->entry == block->entry)
        stripe_remove(stripe, key);
    pthread_mutex_unlock(&stripe->lock);
}

void block_index_forget_segment(struct block_index *index, const struct segment *segment)
{
    for (int i = 0; i < INDEX_STRIPES; i++) {
        struct block_stripe *stripe = &index->stripes[i];
        pthread_mutex_lock(&stripe->lock);
        for (uint32_t b = 0; b < stripe->bucket_count; b++) {
            struct block_node **link = &stripe->buckets[b];
            while (*link) {
                struct block_node *node = *link;
                int in_it = node->at.segment == segment;
                if (node->state == NODE_OURS && in_it)
                    node->at.segment = NULL;
                if (node->state == NODE_HERE && in_it)
                    unlink_node(stripe, link);
                else
                    link = &node->next;
            }
        }
        pthread_mutex_unlock(&stripe->lock);
    }
}
