#include <assert.h>
#include <string.h>

#include "base/checked.h"
#include "base/memory.h"
#include "store/remote_parts.h"

#define OVERLAP_MOST 4 /* stretches that may have one byte, and are looked at */

/* In the table from hold until let_go, or until it failed. */
struct store_stretch {
    struct remote *remote;
    struct place place;
    struct strip strip;
    struct iovec part;
    uint8_t *data;
    /* under the lock */
    uint32_t users; /* whoever holds it, its strip, and dips that are not over */
    int is_here;
    struct dip *dips; /* while it is on its way */
};

/* --- the table -------------------------------------------------------------------------------- */

static int begins_behind(const struct store_stretch *stretch, uint32_t object, uint64_t offset)
{
    return stretch->place.object != object ? stretch->place.object > object
                                           : stretch->strip.offset > offset;
}

/* The first that begins behind a byte. */
static uint32_t table_find(const struct remote *remote, uint32_t object, uint64_t offset)
{
    uint32_t low = 0, high = remote->stretch_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (begins_behind(remote->stretches[middle], object, offset))
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

static int table_add(struct remote *remote, struct store_stretch *stretch)
{
    if (remote->stretch_count == remote->stretch_cap) {
        uint32_t cap = remote->stretch_cap ? 2 * remote->stretch_cap : 64;
        struct store_stretch **grown = memory_grow(remote->stretches, cap * sizeof(*grown));
        if (!grown)
            return 0;
        remote->stretches = grown;
        remote->stretch_cap = cap;
    }
    uint32_t at = table_find(remote, stretch->place.object, stretch->strip.offset);
    struct store_stretch **here = remote->stretches + at;
    memmove(here + 1, here, (remote->stretch_count - at) * sizeof(*here));
    *here = stretch;
    remote->stretch_count++;
    return 1;
}

static void table_remove(struct remote *remote, const struct store_stretch *stretch)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < remote->stretch_count; i++)
        if (remote->stretches[i] != stretch)
            remote->stretches[kept++] = remote->stretches[i];
    remote->stretch_count = kept;
}

/* --- a stretch -------------------------------------------------------------------------------- */

static void stretch_free(struct store_stretch *stretch)
{
    place_reset(&stretch->place);
    memory_free(stretch->data);
    memory_free(stretch);
}

static void stretch_drop(struct store_stretch *stretch)
{
    if (--stretch->users == 0)
        stretch_free(stretch);
}

/* A part of it failed: the words are for reads anywhere in it. */
static void stretch_note(struct remote *remote, const struct store_stretch *stretch)
{
    const struct strip *strip = &stretch->strip;
    const struct remote_failure *last =
        &remote->failures[(remote->failure_count + REMOTE_FAILURES - 1) % REMOTE_FAILURES];
    if (!remote->failure_count || last->object != stretch->place.object ||
        last->error.status != strip->status)
        return;
    const struct stk_error error = last->error;
    remote_note_failure(remote, stretch->place.object, strip->offset, strip->length, &error);
}

static void stretch_over(struct strip *strip)
{
    struct store_stretch *stretch = strip->owner;
    if (strip->status) {
        table_remove(stretch->remote, stretch); /* whoever reads there now tries by itself */
        stretch_note(stretch->remote, stretch);
    } else {
        stretch->is_here = 1;
    }
    for (struct dip *dip = stretch->dips, *next; dip; dip = next) {
        next = dip->next;
        dip->status = strip->status;
        queue_dip_over(dip);
    }
    stretch->dips = NULL;
    stretch_drop(stretch);
}

struct store_stretch *remote_stretch_hold(struct store *store, uint32_t object, uint64_t offset,
                                          uint64_t length)
{
    struct remote *remote;
    if (remote_of(store, &remote, NULL) || remote->cache || !length)
        return NULL;
    struct store_stretch *stretch = memory_zero(1, sizeof(*stretch));
    if (!stretch)
        return NULL;
    stretch->data = memory_alloc(length);
    if (!stretch->data || place_find(remote, object, &stretch->place, NULL) ||
        !checked_inside(offset, length, stretch->place.size)) {
        stretch_free(stretch); /* reads there will say what is wrong */
        return NULL;
    }
    stretch->remote = remote;
    stretch->part = (struct iovec){stretch->data, length};
    stretch->strip = (struct strip){.place = &stretch->place,
                                    .offset = offset,
                                    .length = length,
                                    .parts = &stretch->part,
                                    .part_count = 1,
                                    .over = stretch_over,
                                    .owner = stretch};
    stretch->users = 2;
    pthread_mutex_lock(&remote->lock);
    int added = table_add(remote, stretch);
    if (added)
        line_add(remote, &stretch->strip);
    pthread_mutex_unlock(&remote->lock);
    if (!added) {
        stretch_free(stretch);
        return NULL;
    }
    line_pump(remote);
    return stretch;
}

static int is_this(const struct strip *strip, void *user)
{
    return strip == user;
}

void remote_stretch_let_go(struct store_stretch *stretch)
{
    struct remote *remote = stretch->remote;
    pthread_mutex_lock(&remote->lock);
    int flies = !stretch->is_here && !stretch->strip.status;
    pthread_mutex_unlock(&remote->lock);
    if (flies)
        line_cancel(remote, is_this, &stretch->strip);
    pthread_mutex_lock(&remote->lock);
    table_remove(remote, stretch);
    stretch_drop(stretch);
    pthread_mutex_unlock(&remote->lock);
}

/* --- dips ------------------------------------------------------------------------------------- */

static uint64_t stretch_end(const struct store_stretch *stretch)
{
    return stretch->strip.offset + stretch->strip.length;
}

/* Of those that have a byte, the one that goes on for longest. */
static struct store_stretch *stretch_at(const struct remote *remote, uint32_t object,
                                        uint64_t offset, uint32_t behind)
{
    struct store_stretch *best = NULL;
    uint32_t first = behind > OVERLAP_MOST ? behind - OVERLAP_MOST : 0;
    for (uint32_t i = first; i < behind; i++) {
        struct store_stretch *stretch = remote->stretches[i];
        if (stretch->place.object == object && stretch_end(stretch) > offset &&
            (!best || stretch_end(stretch) > stretch_end(best)))
            best = stretch;
    }
    return best;
}

uint64_t stretch_dip(struct remote *remote, struct dip *dip, uint32_t object, uint64_t offset,
                     uint64_t end, uint64_t *next)
{
    uint32_t behind = table_find(remote, object, offset);
    struct store_stretch *stretch = stretch_at(remote, object, offset, behind);
    *next = end;
    if (behind < remote->stretch_count && remote->stretches[behind]->place.object == object &&
        remote->stretches[behind]->strip.offset < end)
        *next = remote->stretches[behind]->strip.offset;
    if (!stretch)
        return 0;
    if (stretch_end(stretch) < end)
        end = stretch_end(stretch);
    dip->stretch = stretch;
    dip->offset = offset;
    dip->length = end - offset;
    dip->status = STK_OK;
    stretch->users++;
    if (stretch->is_here) {
        queue_dip_over(dip);
    } else {
        dip->next = stretch->dips;
        stretch->dips = dip;
    }
    return dip->length;
}

const uint8_t *dip_data(const struct dip *dip)
{
    return dip->stretch->data + (dip->offset - dip->stretch->strip.offset);
}

void dip_end(struct dip *dip)
{
    stretch_drop(dip->stretch);
    dip->stretch = NULL;
}

void stretches_forget(struct remote *remote, const struct remote_queue *queue, struct dip **to)
{
    for (uint32_t i = 0; i < remote->stretch_count; i++)
        for (struct dip **at = &remote->stretches[i]->dips; *at;) {
            struct dip *dip = *at;
            if (item_queue(dip->item) != queue) {
                at = &dip->next;
                continue;
            }
            *at = dip->next;
            dip->next = *to;
            *to = dip;
        }
}
