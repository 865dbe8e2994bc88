/* Any bytes as the XML that clouds answer with: lists, parts, uploads and errors. */
#include <stdlib.h>
#include <string.h>

#include "net/azure_answer.h"
#include "net/s3_place.h"
#include "net/xml.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void walk(const char *body, size_t length)
{
    static struct xml xml;
    xml_begin(&xml, body, length);
    for (;;) {
        enum xml_event event = xml_next(&xml);
        if (event == XML_END || event == XML_BAD)
            break;
        if (xml.depth < 1 || xml.depth > XML_MAX_DEPTH || !xml.name[0] ||
            (event == XML_TEXT && strlen(xml.text) != xml.text_length))
            abort();
    }
    if (xml.why ? xml_next(&xml) != XML_BAD : xml_next(&xml) != XML_END)
        abort();
}

static void judge_page(stk_status status, struct site_page *page, const struct stk_error *err)
{
    if (status && !err->what[0])
        abort();
    for (uint64_t i = 0; i < page->count; i++)
        if (strlen(page->entries[i].key) + strlen(page->entries[i].etag) > 2 * 4096)
            abort();
    site_page_reset(page);
}

static void read_pages(struct site *site, const char *body, size_t length)
{
    static const struct site_call calls[] = {{.verb = SITE_LIST, .key = ""},
                                             {.verb = SITE_PARTS, .key = "k", .upload = "u"},
                                             {.verb = SITE_PARTS, .key = "k"}};
    struct web_answer answer = {.status = 200};
    struct site_page page = {0};
    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
        struct stk_error err = {0};
        judge_page(s3_read_page(site, &calls[i], &answer, body, length, &page, &err), &page, &err);
    }
    struct stk_error err = {0};
    judge_page(azure_read_blobs(body, length, &page, &err), &page, &err);
    judge_page(azure_read_blocks(body, length, &page, &err), &page, &err);
}

static void read_errors(struct site *site, const uint8_t *data, size_t size)
{
    struct site_trouble trouble = {0};
    struct text body = {0};
    char upload[256];
    text_add(&body, (const char *)data, size);
    struct web_answer answer = {.status = 403, .body = body};
    s3_read_trouble(site, &answer, &trouble);
    if (!trouble.status)
        abort();
    memset(&trouble, 0, sizeof(trouble));
    azure_read_trouble(&answer, &trouble);
    if (!trouble.status)
        abort();
    struct site_call begin = {.verb = SITE_BEGIN, .key = "k"};
    s3_read_upload(site, &begin, &answer, body.data, body.len, upload, &trouble);
    if (strlen(upload) >= sizeof(upload))
        abort();
    text_free(&body);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char uri[] = "s3://fuzz";
    struct site site = {.ops = &s3_site, .uri = uri, .kind = s3_place_new()};
    char *body =
        malloc(size ? size : 1); /* of this very size, so that reading past its end is seen */
    if (!body || !site.kind)
        abort();
    if (size)
        memcpy(body, data, size);
    walk(body, size);
    read_pages(&site, body, size);
    read_errors(&site, data, size);
    free(body);
    s3_close(&site);
    return 0;
}
