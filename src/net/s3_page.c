#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "base/memory.h"
#include "base/parse.h"
#include "net/escape.h"
#include "net/s3_place.h"
#include "net/xml.h"

/* One element of a list, while it is read. */
struct row {
    char key[4096], etag[256], upload[256];
    uint64_t size, number;
    int is_prefix, is_bad;
};

/* A list, while it is read. */
struct reading {
    struct site *site;
    const struct site_call *call;
    struct site_page *page;
    int is_escaped; /* names are, as was asked for */
    int in_row;
    int is_truncated; /* there is a page after it */
    char root[64], token[4096];
    struct row row;
    struct text name; /* scratch */
};

static stk_status bad_page(const struct reading *reading, const char *why, struct stk_error *err)
{
    fail(err, STK_CORRUPT, "the answer to a list is not what S3 demands: %s", why);
    fail_at(err, reading->site->uri, STK_NOWHERE);
    return STK_CORRUPT;
}

static void keep(char *to, size_t cap, const char *from, struct row *row)
{
    if (strlen(from) >= cap)
        row->is_bad = 1;
    else
        strcpy(to, from);
}

/* A text within Contents, CommonPrefixes, Part or Upload. */
static void row_text(struct row *row, const char *name, const char *text)
{
    if (!strcmp(name, "Key") || !strcmp(name, "Prefix"))
        keep(row->key, sizeof(row->key), text, row);
    else if (!strcmp(name, "ETag"))
        keep(row->etag, sizeof(row->etag), text, row);
    else if (!strcmp(name, "UploadId"))
        keep(row->upload, sizeof(row->upload), text, row);
    else if (!strcmp(name, "Size") && !parse_u64(text, strlen(text), &row->size))
        row->is_bad = 1;
    else if (!strcmp(name, "PartNumber") && !parse_u64(text, strlen(text), &row->number))
        row->is_bad = 1;
}

static void page_text(struct reading *reading, const char *name, const char *text)
{
    int is_token = !strcmp(name, "NextContinuationToken") || !strcmp(name, "NextPartNumberMarker");
    if (!strcmp(name, "IsTruncated"))
        reading->is_truncated = !strcmp(text, "true");
    else if (is_token && strlen(text) < sizeof(reading->token))
        strcpy(reading->token, text);
}

/* Escaped as a form's value is: a blank is "+". */
static const char *plain_name(struct reading *reading, char *name)
{
    if (!reading->is_escaped)
        return name;
    for (char *plus = name; (plus = strchr(plus, '+'));)
        *plus = ' ';
    reading->name.len = 0;
    return escape_decode(&reading->name, name, strlen(name)) ? NULL : reading->name.data;
}

static stk_status row_done(struct reading *reading, struct stk_error *err)
{
    struct row *row = &reading->row;
    const struct site_call *call = reading->call;
    int is_list = call->verb == SITE_LIST;
    if (row->is_bad || row->number > 10000)
        return bad_page(reading, "a size, a number or a name", err);
    if (is_list || !call->upload) {
        const char *key = plain_name(reading, row->key);
        if (reading->name.failed)
            return fail_memory(err, reading->name.len);
        if (!key || !*key)
            return bad_page(reading, "a name that is empty or wrongly escaped", err);
        if (!is_list && strncmp(key, call->key, strlen(call->key) + !call->is_prefix))
            return STK_OK; /* an upload of a longer name */
        struct site_entry entry = {.key = key,
                                   .size = row->size,
                                   .etag = is_list ? row->etag : row->upload,
                                   .is_folder = row->is_prefix};
        if (!row->size && key[strlen(key) - 1] == '/')
            entry.is_folder = 1;
        return site_page_add(reading->page, &entry, err);
    }
    struct site_entry part = {
        .key = call->key, .size = row->size, .etag = row->etag, .number = (uint32_t)row->number};
    return site_page_add(reading->page, &part, err);
}

static int is_row(const char *name)
{
    return !strcmp(name, "Contents") || !strcmp(name, "CommonPrefixes") || !strcmp(name, "Part") ||
           !strcmp(name, "Upload");
}

static stk_status take_event(struct reading *reading, struct xml *xml, enum xml_event event,
                             struct stk_error *err)
{
    if (event == XML_OPEN && xml->depth == 1) {
        strcpy(reading->root, xml->name);
    } else if (event == XML_OPEN && xml->depth == 2 && is_row(xml->name)) {
        memset(&reading->row, 0, sizeof(reading->row));
        reading->row.is_prefix = !strcmp(xml->name, "CommonPrefixes");
        reading->in_row = 1;
    } else if (event == XML_TEXT && xml->depth == 3 && reading->in_row) {
        row_text(&reading->row, xml->name, xml->text);
    } else if (event == XML_TEXT && xml->depth == 2) {
        page_text(reading, xml->name, xml->text);
    } else if (event == XML_CLOSE && xml->depth == 2 && reading->in_row) {
        reading->in_row = 0;
        return row_done(reading, err);
    }
    return STK_OK;
}

static stk_status read_events(struct reading *reading, struct xml *xml, struct stk_error *err)
{
    for (;;) {
        enum xml_event event = xml_next(xml);
        if (event == XML_BAD)
            return bad_page(reading, xml->why, err);
        if (event == XML_END)
            return STK_OK;
        stk_status status = take_event(reading, xml, event, err);
        if (status)
            return status;
    }
}

static const char *root_of(const struct site_call *call)
{
    if (call->verb == SITE_LIST)
        return "ListBucketResult";
    return call->upload ? "ListPartsResult" : "ListMultipartUploadsResult";
}

/* What is behind the last row: is there another page? */
static stk_status finish_page(struct reading *reading, const char *body, size_t length,
                              struct stk_error *err)
{
    struct site_trouble trouble = {0};
    if (strcmp(reading->root, root_of(reading->call))) {
        if (!s3_read_error(reading->site, body, length, &trouble))
            return bad_page(reading, "it is something else", err);
        fail(err, STK_IO, "a list ended with an error: %s: %s", trouble.code, trouble.words);
        fail_at(err, reading->site->uri, STK_NOWHERE);
        return STK_IO;
    }
    if (!reading->is_truncated || (reading->call->verb == SITE_PARTS && !reading->call->upload))
        return STK_OK;
    if (!reading->token[0])
        return bad_page(reading, "it says that there is more, and not from where", err);
    reading->page->token = memory_text(reading->token, strlen(reading->token));
    return reading->page->token ? STK_OK : fail_memory(err, strlen(reading->token));
}

stk_status s3_read_page(struct site *site, const struct site_call *call,
                        const struct web_answer *answer, const char *body, size_t length,
                        struct site_page *page, struct stk_error *err)
{
    static const char escaped[] = "<EncodingType>url</EncodingType>"; /* no name can hold it */
    struct reading *reading = memory_zero(1, sizeof(*reading));
    struct xml *xml = memory_alloc(sizeof(*xml));
    stk_status status = STK_OK;
    (void)answer;
    memory_free(page->token);
    page->token = NULL;
    if (!reading || !xml) {
        status = fail_memory(err, sizeof(*reading));
        goto done;
    }
    reading->site = site;
    reading->call = call;
    reading->page = page;
    reading->is_escaped = memmem(body, length, escaped, strlen(escaped)) != NULL;
    xml_begin(xml, body, length);
    status = read_events(reading, xml, err);
    if (!status)
        status = finish_page(reading, body, length, err);
done:
    if (reading)
        text_free(&reading->name);
    memory_free(reading);
    memory_free(xml);
    return status;
}
