#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "net/digest.h"
#include "store/upload_parts.h"

#define PAGE_MOST_BYTES (16 << 20)
#define SLOWEST 65536 /* bytes a second that an upload may take */

void upload_fetch(struct upload *upload, struct fetch *fetch, enum site_verb verb, uint64_t bytes)
{
    int64_t seconds = (int64_t)net_settings(upload->net)->timeout_s + (int64_t)(bytes / SLOWEST);
    memset(fetch, 0, sizeof(*fetch));
    fetch->site = upload->site;
    fetch->call.verb = verb;
    fetch->call.key = upload->key;
    fetch->call.upload = upload->id[0] ? upload->id : NULL;
    fetch->deadline_ns = clock_now() + seconds * 1000000000;
}

/* One page of parts, or of uploads where id is "". */
static stk_status read_page(struct upload *upload, const char *id, const char *token,
                            struct site_page *page, struct stk_error *err)
{
    struct text body = {0};
    struct fetch fetch;
    struct web_answer answer = {.status = 200};
    upload_fetch(upload, &fetch, SITE_PARTS, 0);
    fetch.call.upload = *id ? id : NULL;
    fetch.call.token = token;
    fetch.text = &body;
    fetch.text_most = PAGE_MOST_BYTES;
    stk_status status = fetch_now(&fetch, err);
    if (!status)
        status = upload->site->ops->read_page(upload->site, &fetch.call, &answer,
                                              body.data ? body.data : "", body.len, page, err);
    text_free(&body);
    return status;
}

/* All parts of an upload. */
static stk_status read_parts(struct upload *upload, const char *id, struct site_page *parts,
                             struct stk_error *err)
{
    char token[64] = "";
    for (uint32_t pages = 0; pages < UPLOAD_MOST_PARTS; pages++) {
        stk_status status = read_page(upload, id, *token ? token : NULL, parts, err);
        if (status || !parts->token)
            return status;
        if (!secret_set(token, sizeof(token), parts->token, strlen(parts->token)))
            return STK_OK; /* those that are known will do */
    }
    return STK_OK;
}

stk_status upload_left_find(struct upload *upload, struct stk_error *err)
{
    struct upload_left *left = &upload->left;
    struct site_page found = {0};
    stk_status status = read_page(upload, "", NULL, &found, err);
    if (!status && found.count && !found.entries[0].number) { /* ids: the last is the newest */
        const char *id = found.entries[found.count - 1].etag;
        if (secret_set(left->id, sizeof(left->id), id, strlen(id)))
            status = read_parts(upload, left->id, &left->parts, err);
    } else if (!status) {
        left->parts = found;
        found = (struct site_page){0};
    }
    site_page_reset(&found);
    if (status == STK_NOT_FOUND || status == STK_UNSUPPORTED || status == STK_DENIED) {
        /* none there, no such list, or not for us to see: all is sent anew */
        site_page_reset(&left->parts);
        left->id[0] = '\0';
        return STK_OK;
    }
    return status;
}

/* An MD5 as sites write it: in quotes. */
static int quoted_md5(const void *data, size_t length, char out[UPLOAD_TAG])
{
    uint8_t md5[16];
    char hex[33];
    if (digest_md5(data, length, md5))
        return 0;
    digest_hex(md5, sizeof(md5), hex);
    snprintf(out, UPLOAD_TAG, "\"%s\"", hex);
    return 1;
}

int upload_left_has(const struct upload *upload, uint32_t number, const void *data, size_t length,
                    char tag[UPLOAD_TAG])
{
    const struct site_page *parts = &upload->left.parts;
    int hashed = 0;
    for (uint64_t i = 0; i < parts->count; i++) {
        const struct site_entry *part = &parts->entries[i];
        if (part->number != number || part->size != length)
            continue;
        if (!hashed && !quoted_md5(data, length, tag))
            return 0;
        hashed = 1;
        if (!strcmp(tag, part->etag))
            return 1;
    }
    return 0;
}

static int hex_value(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* S3's ETag of an object made of parts: the MD5 of their MD5s, and how many there are. */
static int parts_etag(const struct upload *upload, char out[UPLOAD_TAG])
{
    struct text all = {0};
    char md5[UPLOAD_TAG];
    for (uint32_t i = 0; i < upload->begun; i++) {
        const char *tag = upload->tags[i] + (upload->tags[i][0] == '"');
        for (size_t k = 0; k < 32; k += 2) {
            int high = hex_value(tag[k]), low = high < 0 ? -1 : hex_value(tag[k + 1]);
            char byte = (char)(high * 16 + low);
            if (low < 0)
                all.failed = 1;
            else
                text_add(&all, &byte, 1);
            if (all.failed)
                break;
        }
    }
    int good = !all.failed && quoted_md5(all.data, all.len, md5);
    if (good)
        snprintf(out, UPLOAD_TAG, "%.33s-%u\"", md5, upload->begun);
    text_free(&all);
    return good;
}

int upload_is_there(struct upload *upload, const void *whole, size_t length)
{
    struct fetch fetch;
    char expected[UPLOAD_TAG];
    upload_fetch(upload, &fetch, SITE_STAT, 0);
    fetch.call.upload = NULL;
    if (fetch_now(&fetch, NULL))
        return 0;
    int good = upload->begun ? parts_etag(upload, expected) : quoted_md5(whole, length, expected);
    return good && !strcmp(expected, fetch.found_etag);
}
