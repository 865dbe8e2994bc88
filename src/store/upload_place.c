#include "store/upload_place.h"

#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/memory.h"
#include "net/fetch.h"

#define MOST_NAMES 1000000
#define ANSWER_MOST (1u << 20)
#define PAGE_MOST (16u << 20)
#define TIDY_ROUNDS 100 /* of a page of uploads each */

struct upload_place {
    struct net *net;
    struct site *site;
    char *folder; /* of keys: "" or "some/prefix/" */
};

int upload_place_is(const char *uri)
{
    return uri && site_is_remote(uri);
}

static stk_status refuse(const struct upload_place *place, struct stk_error *err)
{
    fail(err, STK_UNSUPPORTED, "that kind of place cannot be written to");
    fail_at(err, place->site->uri, STK_NOWHERE);
    fail_remedy(err, "s3://, az://, abfss:// and gs:// can");
    return STK_UNSUPPORTED;
}

stk_status upload_place_open(struct upload_place **out, const char *uri, struct stk_error *err)
{
    struct upload_place *place = memory_zero(1, sizeof(*place));
    struct text folder = {0};
    const char *key;
    stk_status status;

    *out = NULL;
    if (!place)
        return fail_memory(err, sizeof(*place));
    status = net_take(&place->net, err);
    if (!status)
        status = site_open(&place->site, place->net, uri, &key, err);
    if (!status && !place->site->can_put)
        status = refuse(place, err);
    if (status)
        goto done;
    text_add(&folder, key, strlen(key));
    while (folder.len && folder.data[folder.len - 1] == '/')
        folder.len--;
    if (folder.len)
        text_add(&folder, "/", 1);
    place->folder = folder.failed ? NULL : memory_text(folder.data, folder.len);
    if (!place->folder) {
        status = fail_memory(err, folder.len);
        goto done;
    }
    *out = place;
    place = NULL;
done:
    text_free(&folder);
    upload_place_close(place);
    return status;
}

void upload_place_close(struct upload_place *place)
{
    if (!place)
        return;
    site_close(place->site);
    if (place->net)
        net_give(place->net);
    memory_free(place->folder);
    memory_free(place);
}

void upload_place_uri(const struct upload_place *place, const char *name, struct text *to)
{
    size_t length = strlen(place->folder);

    if (!name[0] && length)
        length--; /* the slash */
    text_format(to, "%s%s%.*s%s", place->site->uri, name[0] || length ? "/" : "", (int)length,
                place->folder, name);
}

/* --- two names of one place ------------------------------------------------------------------- */

/* The address that a folder's objects are read from; "" : it has none that can be told. */
static void add_address(struct text *to, struct net *net, const char *uri)
{
    struct site_made made = {0};
    struct site *site = NULL;
    const char *key;

    if (site_open(&site, net, uri, &key, NULL))
        return;
    const struct site_call call = {.verb = SITE_READ, .key = key};
    if (!site->ops->make(site, &call, NULL, &made, NULL))
        text_add(to, made.url.data, strcspn(made.url.data, "?"));
    while (to->len && to->data[to->len - 1] == '/')
        to->len--;
    text_add(to, "/", 1);
    site_made_reset(&made);
    site_close(site);
}

int upload_place_holds(const char *folder, const char *uri)
{
    struct text outer = {0}, inner = {0};
    struct net *net = NULL;
    int holds = 0;

    if (site_is_remote(uri) && !net_take(&net, NULL)) {
        add_address(&outer, net, folder);
        add_address(&inner, net, uri);
        holds = !outer.failed && !inner.failed && outer.len > 1 &&
                !strncmp(outer.data, inner.data ? inner.data : "", outer.len);
        net_give(net);
    }
    text_free(&outer);
    text_free(&inner);
    return holds;
}

/* --- lists ----------------------------------------------------------------------------------- */

stk_status upload_place_list(struct upload_place *place, const char *prefix,
                             struct upload_list *out, struct stk_error *err)
{
    struct site_listing *listing = memory_zero(1, sizeof(*listing));
    struct text key = {0};
    stk_status status = STK_OK;

    text_format(&key, "%s%s", place->folder, prefix);
    if (!listing || key.failed)
        status = fail_memory(err, sizeof(*listing));
    if (!status)
        status = fetch_list(place->site, key.data, MOST_NAMES, 1, listing, err);
    if (status)
        goto done;
    const struct site_page *page = &listing->names;
    out->entries = memory_zero(page->count, sizeof(*out->entries));
    if (!out->entries) {
        status = fail_memory(err, page->count * sizeof(*out->entries));
        goto done;
    }
    for (uint64_t i = 0; i < page->count; i++) {
        const struct site_entry *entry = &page->entries[i];
        if (entry->is_folder)
            continue;
        out->entries[out->count++] =
            (struct upload_entry){.name = entry->key + strlen(place->folder),
                                  .size = entry->size,
                                  .version = site_version(entry->etag, entry->size, "")};
    }
    out->inside = listing;
    listing = NULL;
done:
    if (listing)
        site_listing_reset(listing);
    memory_free(listing);
    text_free(&key);
    return status;
}

void upload_list_reset(struct upload_list *list)
{
    if (list->inside)
        site_listing_reset(list->inside);
    memory_free(list->inside);
    memory_free(list->entries);
    *list = (struct upload_list){0};
}

static int compare(const void *name, const void *entry)
{
    return strcmp(name, ((const struct upload_entry *)entry)->name);
}

const struct upload_entry *upload_list_find(const struct upload_list *list, const char *name)
{
    return list->count ? bsearch(name, list->entries, list->count, sizeof(*list->entries), compare)
                       : NULL;
}

/* --- objects --------------------------------------------------------------------------------- */

/* Asks for one thing of an object. fetch: all but its site and key are set. */
static stk_status ask(struct upload_place *place, const char *name, struct fetch *fetch,
                      struct stk_error *err)
{
    struct text key = {0};
    stk_status status;

    text_format(&key, "%s%s", place->folder, name);
    if (key.failed)
        return fail_memory(err, key.len);
    fetch->site = place->site;
    fetch->call.key = key.data;
    status = fetch_now(fetch, err);
    text_free(&key);
    return status;
}

stk_status upload_place_stat(struct upload_place *place, const char *name, struct upload_entry *out,
                             struct stk_error *err)
{
    struct fetch fetch = {.call.verb = SITE_STAT};
    stk_status status = ask(place, name, &fetch, err);

    *out = (struct upload_entry){.name = name, .size = fetch.object_size};
    if (!status)
        out->version = site_version(fetch.found_etag, fetch.object_size, fetch.last_modified);
    return status;
}

stk_status upload_place_get(struct upload_place *place, const char *name, uint64_t most,
                            struct text *out, struct stk_error *err)
{
    struct fetch fetch = {.call.verb = SITE_READ, .text = out, .text_most = most};

    return ask(place, name, &fetch, err);
}

stk_status upload_place_put(struct upload_place *place, const char *name, const struct text *text,
                            enum upload_put how, struct stk_error *err)
{
    struct text answer = {0};
    struct fetch fetch = {.call = {.verb = SITE_PUT,
                                   .send = text->data,
                                   .send_length = text->len,
                                   .only_new = how == UPLOAD_ONLY_NEW},
                          .text = &answer,
                          .text_most = ANSWER_MOST};
    stk_status status = ask(place, name, &fetch, err);

    text_free(&answer);
    if (how == UPLOAD_ONLY_NEW && status == STK_UNSUPPORTED)
        return upload_place_put(place, name, text, UPLOAD_REPLACE, err);
    return status;
}

/* One page of uploads that were broken off. */
static stk_status left_page(struct upload_place *place, const char *prefix, struct site_page *page)
{
    struct text body = {0}, key = {0};
    struct web_answer answer = {.status = 200};
    struct fetch fetch = {.site = place->site,
                          .call = {.verb = SITE_PARTS, .is_prefix = 1},
                          .text = &body,
                          .text_most = PAGE_MOST};
    stk_status status;

    text_format(&key, "%s%s", place->folder, prefix);
    fetch.call.key = key.data;
    status = key.failed ? STK_MEMORY : fetch_now(&fetch, NULL);
    if (!status)
        status = place->site->ops->read_page(place->site, &fetch.call, &answer,
                                             body.data ? body.data : "", body.len, page, NULL);
    text_free(&key);
    text_free(&body);
    return status;
}

void upload_place_tidy(struct upload_place *place, const char *prefix,
                       int (*is_wanted)(const void *user, const char *name), const void *user)
{
    size_t folder = strlen(place->folder);
    int goes_on = 1;

    for (int round = 0; round < TIDY_ROUNDS && goes_on; round++) {
        struct site_page page = {0};
        goes_on = 0; /* until one was forgotten: the next page may hold more */
        if (left_page(place, prefix, &page))
            page.count = 0;
        for (uint64_t i = 0; i < page.count; i++) {
            const char *name = page.entries[i].key + folder;
            struct fetch fetch = {.call = {.verb = SITE_ABORT, .upload = page.entries[i].etag}};
            if (is_wanted(user, name) && !ask(place, name, &fetch, NULL))
                goes_on = 1;
        }
        site_page_reset(&page);
    }
}

stk_status upload_place_remove(struct upload_place *place, const char *name, struct stk_error *err)
{
    struct fetch fetch = {.call.verb = SITE_DELETE};
    stk_status status = ask(place, name, &fetch, err);

    return status == STK_NOT_FOUND ? STK_OK : status;
}
