#include "net/site.h"

#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/hash.h"
#include "base/memory.h"
#include "net/site_kinds.h"
#include "net/uri_secret.h"

/* Credentials that several sites share. */
struct credentials_named {
    struct credentials_named *next;
    struct credentials *credentials;
    char name[];
};

static void site_free(struct site *site)
{
    if (!site)
        return;
    if (site->ops->close)
        site->ops->close(site);
    memory_free(site->uri);
    memory_free(site->host);
    memory_free(site);
}

/* Where the key begins in a URI that lies in this site; NULL: it does not. */
static const char *key_within(const struct site *site, const char *uri)
{
    size_t length = strlen(site->uri);
    if (strncmp(site->uri, uri, length))
        return NULL;
    if (uri[length] == '/')
        return uri + length + 1;
    return uri[length] ? NULL : uri + length;
}

/* Under the net's lock. */
static struct site *find_by_uri(struct net_places *places, const char *uri, const char **key)
{
    for (struct site *site = places->sites; site; site = site->next) {
        *key = key_within(site, uri);
        if (*key) {
            site->references++;
            return site;
        }
    }
    return NULL;
}

/* Puts a new site into the net, or gives the one that another thread made meanwhile, or that was
 * there under another spelling. */
static struct site *place(struct net_places *places, struct site *made)
{
    const char *key;
    pthread_mutex_lock(&places->lock);
    struct site *known = find_by_uri(places, made->uri, &key);
    if (!known) {
        made->references = 1;
        made->next = places->sites;
        places->sites = made;
    }
    pthread_mutex_unlock(&places->lock);
    if (known)
        site_free(made);
    return known ? known : made;
}

static stk_status site_new(struct site **out, struct net *net, const char *uri, size_t *length,
                           struct stk_error *err)
{
    const struct site_ops *ops = site_kind_of(uri);
    *out = NULL;
    if (!ops) {
        fail(err, STK_USAGE, "that is no URI of a kind that can be read");
        fail_remedy(err, "http://, https://, s3://, az://, abfss:// and gs:// can");
        return STK_USAGE;
    }
    struct site *site = memory_zero(1, sizeof(*site));
    if (!site)
        return fail_memory(err, sizeof(*site));
    site->ops = ops;
    site->net = net;
    stk_status status = ops->open(site, uri, length, err);
    if (!status && (!site->uri || !site->host))
        status = fail_memory(err, 0);
    if (status)
        site_free(site);
    else
        *out = site;
    return status;
}

stk_status site_open(struct site **out, struct net *net, const char *uri, const char **key,
                     struct stk_error *err)
{
    struct net_places *places = net_places(net);
    size_t length = 0;
    *key = NULL;
    *out = NULL;
    stk_status status = uri_secret_refuse(uri, err);
    if (status)
        return status;
    pthread_mutex_lock(&places->lock);
    *out = find_by_uri(places, uri, key);
    pthread_mutex_unlock(&places->lock);
    if (*out)
        return STK_OK;
    struct site *made;
    status = site_new(&made, net, uri, &length, err);
    if (status)
        return status;
    *out = place(places, made);
    *key = uri + length + (uri[length] == '/');
    return STK_OK;
}

void site_close(struct site *site)
{
    if (!site)
        return;
    struct net_places *places = net_places(site->net);
    pthread_mutex_lock(&places->lock);
    site->references--;
    pthread_mutex_unlock(&places->lock);
}

static stk_status named_new(struct credentials_named **out, const char *name, struct net *net,
                            const struct credentials_source *source, struct stk_error *err)
{
    size_t length = strlen(name) + 1;
    struct credentials_named *named = memory_zero(1, sizeof(*named) + length);
    *out = NULL;
    if (!named)
        return fail_memory(err, sizeof(*named) + length);
    memcpy(named->name, name, length);
    stk_status status = credentials_new(&named->credentials, net, source, err);
    if (status)
        memory_free(named);
    else
        *out = named;
    return status;
}

stk_status site_share_credentials(struct site *site, const char *name,
                                  const struct credentials_source *source, struct stk_error *err)
{
    struct net_places *places = net_places(site->net);
    stk_status status = STK_OK;
    int is_used = 0;
    pthread_mutex_lock(&places->lock);
    struct credentials_named *named = places->credentials;
    while (named && strcmp(named->name, name))
        named = named->next;
    if (!named) {
        status = named_new(&named, name, site->net, source, err);
        is_used = !status;
        if (is_used) {
            named->next = places->credentials;
            places->credentials = named;
        }
    }
    if (named)
        site->credentials = named->credentials;
    pthread_mutex_unlock(&places->lock);
    if (!is_used && source->free)
        source->free(source->user);
    return status;
}

void site_forget(struct net *net)
{
    struct net_places *places = net_places(net);
    while (places->credentials) {
        struct credentials_named *named = places->credentials;
        places->credentials = named->next;
        credentials_free(named->credentials);
        memory_free(named);
    }
    while (places->sites) {
        struct site *site = places->sites;
        places->sites = site->next;
        site_free(site);
    }
}

static stk_status make(struct site *site, const struct site_call *call, int may_wait,
                       struct site_made *made, struct stk_error *err)
{
    const struct secret *secret = NULL;
    stk_status status = STK_OK;
    made->mark = 0;
    made->where[0] = '\0';
    if (site->credentials)
        status = credentials_take(site->credentials, may_wait, &secret, err);
    if (!status) {
        const struct secret *used = secret && secret->kind != SECRET_NONE ? secret : NULL;
        status = site->ops->make(site, call, used, made, err);
    }
    if (secret) {
        made->mark = secret->mark;
        secret_set(made->where, sizeof(made->where), secret->where, strlen(secret->where));
        credentials_give(site->credentials, secret);
    }
    return status;
}

stk_status site_make(struct site *site, const struct site_call *call, struct site_made *made,
                     struct stk_error *err)
{
    return make(site, call, 1, made, err);
}

stk_status site_make_now(struct site *site, const struct site_call *call, struct site_made *made,
                         struct stk_error *err)
{
    return make(site, call, 0, made, err);
}

void site_refused(struct site *site, uint64_t mark)
{
    if (site->credentials && mark)
        credentials_refused(site->credentials, mark);
}

void site_made_reset(struct site_made *made)
{
    for (size_t i = 0; i < WEB_MAX_HEADERS; i++)
        secret_text_free(&made->values[i]);
    secret_text_free(&made->url); /* may hold a SAS */
    secret_text_free(&made->body);
    memset(made, 0, sizeof(*made));
}

struct text *site_header(struct site_made *made, const char *name)
{
    struct web_request *request = &made->request;
    if (request->header_count == WEB_MAX_HEADERS)
        return NULL;
    request->headers[request->header_count].name = name;
    return &made->values[request->header_count++];
}

stk_status site_made_finish(struct site_made *made, struct stk_error *err)
{
    struct web_request *request = &made->request;
    int failed = made->url.failed || made->body.failed || !made->url.data;
    for (uint32_t i = 0; i < request->header_count; i++) {
        failed |= made->values[i].failed;
        request->headers[i].value = made->values[i].data ? made->values[i].data : "";
    }
    if (failed)
        return fail_memory(err, 0);
    request->url = made->url.data;
    if (made->body.len) {
        request->send = made->body.data;
        request->send_length = made->body.len;
    }
    return STK_OK;
}

void site_trouble_by_status(int status, struct site_trouble *trouble)
{
    trouble->status = STK_IO;
    if (status == 401 || status == 403 || status == 407) {
        trouble->status = STK_DENIED;
        trouble->is_credentials = status != 407;
    } else if (status == 404 || status == 410) {
        trouble->status = STK_NOT_FOUND;
    } else if (status == 412 || status == 416) {
        trouble->status = STK_STALE; /* 416: it is shorter than was known */
    } else if (status == 429 || status == 503) {
        trouble->status = STK_LIMIT;
        trouble->is_throttle = trouble->is_passing = 1;
    } else if (status == 408 || status == 425 || status == 500 || status == 502 || status == 504 ||
               status == 509) {
        trouble->is_passing = 1;
    } else if (status == 400 || status == 405 || status == 411 || status == 413 || status == 414) {
        trouble->status = STK_USAGE;
    }
}

void site_read_trouble(struct site *site, const struct site_call *call,
                       const struct web_answer *answer, struct site_trouble *trouble)
{
    memset(trouble, 0, sizeof(*trouble));
    site->ops->read_trouble(site, answer, trouble);
    if (call->only_new && (answer->status == 412 || trouble->status == STK_MISMATCH)) {
        trouble->status = STK_MISMATCH;
        trouble->is_passing = 0;
    }
}

static const char *moved(const char *pointer, const char *from, const char *to)
{
    return to + ((uintptr_t)pointer - (uintptr_t)from);
}

/* Adds a string that ends with NUL. Entries' pointers move along when the text does. */
static size_t add_name(struct site_page *page, const char *name)
{
    const char *before = page->names.data;
    size_t at = page->names.len;
    text_add(&page->names, name, strlen(name) + 1);
    if (page->names.data != before && before)
        for (uint64_t i = 0; i < page->count; i++) {
            page->entries[i].key = moved(page->entries[i].key, before, page->names.data);
            page->entries[i].etag = moved(page->entries[i].etag, before, page->names.data);
        }
    return at;
}

stk_status site_page_add(struct site_page *page, const struct site_entry *entry,
                         struct stk_error *err)
{
    if (page->count == page->cap) {
        uint64_t cap = page->cap ? page->cap * 2 : 64;
        struct site_entry *grown = cap <= SIZE_MAX / sizeof(*grown)
                                       ? memory_grow(page->entries, cap * sizeof(*grown))
                                       : NULL;
        if (!grown)
            return fail_memory(err, cap * sizeof(*grown));
        page->entries = grown;
        page->cap = cap;
    }
    size_t key = add_name(page, entry->key);
    size_t etag = add_name(page, entry->etag ? entry->etag : "");
    if (page->names.failed)
        return fail_memory(err, page->names.len);
    struct site_entry *to = &page->entries[page->count++];
    *to = *entry;
    to->key = page->names.data + key;
    to->etag = page->names.data + etag;
    return STK_OK;
}

void site_page_reset(struct site_page *page)
{
    memory_free(page->entries);
    memory_free(page->token);
    text_free(&page->names);
    memset(page, 0, sizeof(*page));
}

uint64_t site_version(const char *etag, uint64_t size, const char *last_modified)
{
    uint64_t version;
    if (etag && *etag) {
        version = hash_bytes(etag, strlen(etag), 1);
    } else {
        const char *when = last_modified ? last_modified : "";
        version = hash_bytes(when, strlen(when), size ^ 2);
    }
    return version ? version : 1;
}

int site_version_tells(uint64_t version, uint64_t size)
{
    return version != site_version(NULL, size, NULL);
}
