#include "net/azure_answer.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/fail.h"
#include "base/memory.h"
#include "base/parse.h"
#include "net/digest.h"
#include "net/escape.h"
#include "net/xml.h"

/* --- blocks' ids ----------------------------------------------------------------------------- */

#define ID_BYTES 39 /* "000001-" and 32 digits: a multiple of three, so that base64 has no "=" */

void azure_block_id(struct text *to, uint32_t number, const char *md5)
{
    char id[ID_BYTES + 1];

    snprintf(id, sizeof(id), "%06u-%.32s", number % 1000000u, md5);
    digest_base64(to, id, ID_BYTES);
}

int azure_block_id_read(const char *id, uint32_t *number, char md5[33])
{
    uint8_t bytes[ID_BYTES];
    size_t length;
    uint64_t value;

    if (digest_base64_decode(id, strlen(id), bytes, sizeof(bytes), &length) || length != ID_BYTES ||
        bytes[6] != '-' || !parse_u64((const char *)bytes, 6, &value) || value == 0)
        return 0;
    for (size_t i = 0; i < 32; i++) {
        md5[i] = (char)bytes[7 + i];
        if (!md5[i] || !strchr("0123456789abcdef", md5[i]))
            return 0;
    }
    md5[32] = 0;
    *number = (uint32_t)value;
    return 1;
}

/* --- reading XML ----------------------------------------------------------------------------- */

/* The service puts a byte order mark before it. */
static void begin(struct xml *xml, const char *body, size_t length)
{
    if (length >= 3 && !memcmp(body, "\xEF\xBB\xBF", 3)) {
        body += 3;
        length -= 3;
    }
    xml_begin(xml, body, length);
}

static stk_status bad_list(const char *why, struct stk_error *err)
{
    return fail(err, STK_CORRUPT, "the list that the service sent cannot be read: %s", why);
}

/* One blob, block or folder on its way. */
struct blob {
    struct text name, etag;
    uint64_t size;
    int is_folder, is_prefix, has_size;
    int is_encoded; /* the name that is being read is, with percents */
};

static void blob_begin(struct blob *blob, int is_prefix)
{
    blob->name.len = blob->etag.len = 0;
    blob->size = 0;
    blob->has_size = 0;
    blob->is_folder = blob->is_prefix = is_prefix;
}

/* 0: it is wrongly escaped. */
static int set_name(struct blob *blob, const struct xml *xml)
{
    blob->name.len = 0;
    if (blob->is_encoded)
        return !escape_decode(&blob->name, xml->text, xml->text_length);
    text_add(&blob->name, xml->text, xml->text_length);
    return 1;
}

/* Lists write the ETag bare; reads write it in quotes. */
static void set_etag(struct text *to, const struct xml *xml)
{
    to->len = 0;
    if (xml->text[0] == '"' || !strncmp(xml->text, "W/", 2))
        text_add(to, xml->text, xml->text_length);
    else
        text_format(to, "\"%s\"", xml->text);
}

static int is_true(const struct xml *xml)
{
    return !strcmp(xml->text, "true") || !strcmp(xml->text, "True");
}

/* The text of an element inside a Blob, a BlobPrefix or a Block. parent: what it lies in. 0: it is
 * not what it must be. */
static int blob_text(struct blob *blob, const struct xml *xml, const char *element,
                     const char *parent)
{
    int is_property = !strcmp(parent, "Properties");

    if (!strcmp(element, "Name") && strcmp(parent, "Metadata")) {
        return set_name(blob, xml);
    } else if (is_property && !strcmp(element, "Content-Length")) {
        blob->has_size = 1;
        return parse_u64(xml->text, xml->text_length, &blob->size);
    } else if (is_property && !strcasecmp(element, "Etag")) {
        set_etag(&blob->etag, xml);
    } else if (is_property && !strcmp(element, "ResourceType")) {
        blob->is_folder |= !strcmp(xml->text, "directory");
    } else if (!strcmp(parent, "Metadata") && !strcasecmp(element, "hdi_isfolder")) {
        blob->is_folder |= is_true(xml);
    }
    return 1;
}

static stk_status blob_end(struct blob *blob, struct site_page *page, struct stk_error *err)
{
    if (blob->name.failed || blob->etag.failed)
        return fail_memory(err, blob->name.len);
    if (!blob->name.len)
        return bad_list("a blob without a name", err);
    if (!blob->is_folder && !blob->has_size)
        return bad_list("a blob without a length", err);
    const struct site_entry entry = {.key = blob->name.data,
                                     .size = blob->is_folder ? 0 : blob->size,
                                     .etag = blob->etag.len ? blob->etag.data : "",
                                     .is_folder = blob->is_folder};
    return site_page_add(page, &entry, err);
}

/* Where the reader is: the names of the elements that are open. */
struct open_elements {
    char names[XML_MAX_DEPTH + 1][64];
    int depth;
};

static void elements_push(struct open_elements *open, const char *name)
{
    if (open->depth < XML_MAX_DEPTH)
        snprintf(open->names[open->depth++], sizeof(open->names[0]), "%s", name);
}

static const char *elements_top(const struct open_elements *open, int above)
{
    return open->depth > above ? open->names[open->depth - 1 - above] : "";
}

static int is_blob(const char *name, int *is_prefix)
{
    *is_prefix = !strcmp(name, "BlobPrefix");
    return *is_prefix || !strcmp(name, "Blob");
}

static stk_status list_event(enum xml_event event, const struct xml *xml,
                             struct open_elements *open, struct blob *blob, struct site_page *page,
                             struct stk_error *err)
{
    int is_prefix;

    if (event == XML_OPEN) {
        if (open->depth == 0 && strcmp(xml->name, "EnumerationResults"))
            return bad_list("it is no list of blobs", err);
        if (is_blob(xml->name, &is_prefix))
            blob_begin(blob, is_prefix);
        blob->is_encoded = xml->is_encoded;
        elements_push(open, xml->name);
    } else if (event == XML_CLOSE) {
        open->depth--;
        if (is_blob(xml->name, &is_prefix))
            return blob_end(blob, page, err);
    } else if (!strcmp(elements_top(open, 0), "NextMarker")) {
        memory_free(page->token);
        page->token = memory_text(xml->text, xml->text_length);
        return page->token ? STK_OK : fail_memory(err, xml->text_length);
    } else if (open->depth > 2 &&
               !blob_text(blob, xml, elements_top(open, 0), elements_top(open, 1))) {
        return bad_list("a blob whose length is no number, or whose name is wrongly escaped", err);
    }
    return STK_OK;
}

stk_status azure_read_blobs(const char *body, size_t length, struct site_page *page,
                            struct stk_error *err)
{
    struct open_elements open = {.depth = 0};
    struct blob blob = {.size = 0};
    struct xml xml;
    enum xml_event event;
    int is_empty = 1;
    stk_status status = STK_OK;

    memory_free(page->token);
    page->token = NULL;
    begin(&xml, body, length);
    while (!status && (event = xml_next(&xml)) != XML_END) {
        is_empty = 0;
        if (event == XML_BAD)
            status = bad_list(xml.why, err);
        else
            status = list_event(event, &xml, &open, &blob, page, err);
    }
    if (!status && is_empty)
        status = bad_list("it is empty", err);
    text_free(&blob.name);
    text_free(&blob.etag);
    return status;
}

/* --- blocks ---------------------------------------------------------------------------------- */

struct block {
    char id[AZURE_BLOCK_ID_CAP];
    uint64_t size;
};

static stk_status block_end(const struct block *block, struct site_page *page,
                            struct stk_error *err)
{
    char md5[33], etag[40];
    struct site_entry entry = {.key = "", .size = block->size, .etag = etag};

    if (!azure_block_id_read(block->id, &entry.number, md5))
        return STK_OK; /* somebody else's */
    snprintf(etag, sizeof(etag), "\"%s\"", md5);
    return site_page_add(page, &entry, err);
}

stk_status azure_read_blocks(const char *body, size_t length, struct site_page *page,
                             struct stk_error *err)
{
    struct block block = {.size = 0};
    struct xml xml;
    char element[64] = "";
    enum xml_event event;
    stk_status status = STK_OK;

    memory_free(page->token);
    page->token = NULL; /* all blocks come in one answer */
    begin(&xml, body, length);
    while (!status && (event = xml_next(&xml)) != XML_END) {
        if (event == XML_BAD) {
            status = bad_list(xml.why, err);
        } else if (event == XML_OPEN) {
            snprintf(element, sizeof(element), "%s", xml.name);
            if (!strcmp(element, "Block"))
                block = (struct block){.size = 0};
        } else if (event == XML_CLOSE) {
            if (!strcmp(xml.name, "Block"))
                status = block_end(&block, page, err);
            element[0] = 0;
        } else if (!strcmp(element, "Name")) {
            if (xml.text_length < sizeof(block.id))
                memcpy(block.id, xml.text, xml.text_length + 1);
        } else if (!strcmp(element, "Size") && !parse_u64(xml.text, xml.text_length, &block.size)) {
            status = bad_list("a block whose size is no number", err);
        }
    }
    return status;
}

/* --- errors ---------------------------------------------------------------------------------- */

enum trouble_flag { PLAIN = 0, THROTTLE = 1, PASSING = 2, CREDENTIALS = 4 };

static const struct known_code {
    const char *code;
    stk_status status;
    int flags;
} known_codes[] = {
    {"ServerBusy", STK_LIMIT, THROTTLE | PASSING},
    {"TooManyRequests", STK_LIMIT, THROTTLE | PASSING},
    {"OperationTimedOut", STK_IO, PASSING},
    {"InternalError", STK_IO, PASSING},
    {"ContainerBeingDeleted", STK_IO, PASSING},
    {"Md5Mismatch", STK_IO, PASSING},
    {"AuthenticationFailed", STK_DENIED, CREDENTIALS},
    {"InvalidAuthenticationInfo", STK_DENIED, CREDENTIALS},
    {"NoAuthenticationInformation", STK_DENIED, CREDENTIALS},
    {"AuthorizationFailure", STK_DENIED, PLAIN},
    {"AuthorizationPermissionMismatch", STK_DENIED, PLAIN},
    {"AuthorizationProtocolMismatch", STK_DENIED, PLAIN},
    {"AuthorizationResourceTypeMismatch", STK_DENIED, PLAIN},
    {"AuthorizationServiceMismatch", STK_DENIED, PLAIN},
    {"AuthorizationSourceIPMismatch", STK_DENIED, PLAIN},
    {"InsufficientAccountPermissions", STK_DENIED, PLAIN},
    {"KeyBasedAuthenticationNotPermitted", STK_DENIED, PLAIN},
    {"PublicAccessNotPermitted", STK_DENIED, PLAIN},
    {"AccountIsDisabled", STK_DENIED, PLAIN},
    {"BlobNotFound", STK_NOT_FOUND, PLAIN},
    {"ContainerNotFound", STK_NOT_FOUND, PLAIN},
    {"ResourceNotFound", STK_NOT_FOUND, PLAIN},
    {"BlobAlreadyExists", STK_MISMATCH, PLAIN},
    {"BlobArchived", STK_DENIED, PLAIN},
    {"ConditionNotMet", STK_STALE, PLAIN},
    {"TargetConditionNotMet", STK_STALE, PLAIN},
    {"InvalidRange", STK_STALE, PLAIN},
};

static void by_code(struct site_trouble *trouble)
{
    for (size_t i = 0; i < sizeof(known_codes) / sizeof(known_codes[0]); i++) {
        const struct known_code *known = &known_codes[i];
        if (strcmp(known->code, trouble->code))
            continue;
        trouble->status = known->status;
        trouble->is_throttle = (known->flags & THROTTLE) != 0;
        trouble->is_passing = (known->flags & PASSING) != 0;
        trouble->is_credentials = (known->flags & CREDENTIALS) != 0;
        return;
    }
}

static void by_status(int http, struct site_trouble *trouble)
{
    trouble->status = STK_USAGE;
    if (http == 429 || http == 503) {
        trouble->status = STK_LIMIT;
        trouble->is_throttle = trouble->is_passing = 1;
    } else if (http >= 500 || http == 408 || http == 409) {
        trouble->status = STK_IO;
        trouble->is_passing = http != 409 && http != 501;
    } else if (http == 401 || http == 403) {
        trouble->status = STK_DENIED;
        trouble->is_credentials = 1;
    } else if (http == 404) {
        trouble->status = STK_NOT_FOUND;
    } else if (http == 412 || http == 416) {
        trouble->status = STK_STALE;
    }
}

/* The first line, without the request's id that follows; never AuthenticationErrorDetail, which
 * repeats the request's signature. */
static void set_words(struct site_trouble *trouble, const char *message)
{
    size_t length = strcspn(message, "\r\n");
    const char *id = strstr(message, "RequestId:");

    if (id && (size_t)(id - message) < length)
        length = (size_t)(id - message);
    while (length && message[length - 1] == ' ')
        length--;
    snprintf(trouble->words, sizeof(trouble->words), "%.*s", (int)length, message);
}

static void read_body(const struct text *body, struct site_trouble *trouble)
{
    struct xml xml;
    char element[64] = "";

    if (!body->data || !body->len)
        return;
    begin(&xml, body->data, body->len);
    for (;;) {
        enum xml_event event = xml_next(&xml);
        if (event == XML_END || event == XML_BAD)
            return;
        if (event != XML_TEXT)
            snprintf(element, sizeof(element), "%s", event == XML_OPEN ? xml.name : "");
        else if (!strcmp(element, "Code") && !trouble->code[0])
            snprintf(trouble->code, sizeof(trouble->code), "%.60s", xml.text);
        else if (!strcmp(element, "Message"))
            set_words(trouble, xml.text);
    }
}

void azure_read_trouble(const struct web_answer *answer, struct site_trouble *trouble)
{
    *trouble = (struct site_trouble){.status = STK_IO};
    snprintf(trouble->code, sizeof(trouble->code), "%s", answer->error_code);
    read_body(&answer->body, trouble);
    by_status(answer->status, trouble);
    by_code(trouble);
}
