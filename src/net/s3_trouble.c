#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/memory.h"
#include "net/aws_time.h"
#include "net/s3_place.h"
#include "net/xml.h"

#define MOST_SKEW_S                                                                                \
    240 /* AWS allows 900; more than this is put right where it may be the cause                   \
         */

enum { PASSES = 1, THROTTLES = 2, CREDENTIALS = 4, FINAL = 8 };

/* The codes that say more than HTTP's status does. FINAL: fresh credentials would not help. */
static const struct known {
    const char *code;
    stk_status status;
    int flags;
} known[] = {
    {"SlowDown", STK_LIMIT, PASSES | THROTTLES},
    {"SlowDownRead", STK_LIMIT, PASSES | THROTTLES},
    {"ServiceUnavailable", STK_LIMIT, PASSES | THROTTLES},
    {"Throttling", STK_LIMIT, PASSES | THROTTLES},
    {"ThrottlingException", STK_LIMIT, PASSES | THROTTLES},
    {"RequestLimitExceeded", STK_LIMIT, PASSES | THROTTLES},
    {"TooManyRequests", STK_LIMIT, PASSES | THROTTLES},
    {"BandwidthLimitExceeded", STK_LIMIT, PASSES | THROTTLES},
    {"InternalError", STK_IO, PASSES},
    {"RequestTimeout", STK_IO, PASSES},
    {"RequestTimeoutException", STK_IO, PASSES},
    {"IncompleteBody", STK_IO, PASSES},
    {"BadDigest", STK_IO, PASSES},
    {"XAmzContentSHA256Mismatch", STK_IO, PASSES},
    {"OperationAborted", STK_IO, PASSES},
    {"ConditionalRequestConflict", STK_IO, PASSES},
    {"ExpiredToken", STK_DENIED, CREDENTIALS},
    {"ExpiredTokenException", STK_DENIED, CREDENTIALS},
    {"RequestExpired", STK_DENIED, CREDENTIALS},
    {"TokenRefreshRequired", STK_DENIED, CREDENTIALS},
    {"InvalidToken", STK_DENIED, CREDENTIALS},
    {"InvalidAccessKeyId", STK_DENIED, CREDENTIALS},
    {"InvalidSecurity", STK_DENIED, CREDENTIALS},
    {"SignatureDoesNotMatch", STK_DENIED, CREDENTIALS},
    {"AccessDenied", STK_DENIED, CREDENTIALS},
    {"AllAccessDisabled", STK_DENIED, FINAL},
    {"AccountProblem", STK_DENIED, FINAL},
    {"InvalidObjectState", STK_DENIED, FINAL},
    {"NoSuchKey", STK_NOT_FOUND, 0},
    {"NoSuchBucket", STK_NOT_FOUND, 0},
    {"NoSuchUpload", STK_NOT_FOUND, 0},
    {"PreconditionFailed", STK_STALE, 0},
    {"InvalidRange", STK_STALE, 0},
    {"NotImplemented", STK_UNSUPPORTED, 0},
    {"InvalidBucketName", STK_USAGE, 0},
    {"EntityTooSmall", STK_USAGE, 0},
    {"EntityTooLarge", STK_USAGE, 0},
};

/* What an error's XML says. */
struct told {
    char code[64], words[256], region[32], time[48];
};

static void take(char *to, size_t cap, const char *from)
{
    size_t length = strnlen(from, cap - 1);
    for (size_t i = 0; i < length; i++)
        to[i] = (unsigned char)from[i] < ' ' ? ' ' : from[i];
    to[length] = '\0';
}

/* The parts of <Error> that are no one's secret: not what was signed, not the id of a key. */
static int read_told(const char *body, size_t length, struct told *told)
{
    struct xml *xml = memory_alloc(sizeof(*xml));
    int is_error = 0;
    memset(told, 0, sizeof(*told));
    if (!xml)
        return 0;
    xml_begin(xml, body, length);
    for (enum xml_event event = xml_next(xml); event != XML_END && event != XML_BAD;
         event = xml_next(xml)) {
        if (event == XML_OPEN && xml->depth == 1)
            is_error = !strcmp(xml->name, "Error");
        if (event != XML_TEXT || xml->depth != 2 || !is_error)
            continue;
        if (!strcmp(xml->name, "Code"))
            take(told->code, sizeof(told->code), xml->text);
        else if (!strcmp(xml->name, "Message"))
            take(told->words, sizeof(told->words), xml->text);
        else if (!strcmp(xml->name, "Region"))
            take(told->region, sizeof(told->region), xml->text);
        else if (!strcmp(xml->name, "ServerTime"))
            take(told->time, sizeof(told->time), xml->text);
    }
    memory_free(xml);
    return is_error && told->code[0];
}

static void use_code(const char *code, struct site_trouble *trouble)
{
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        if (strcmp(known[i].code, code))
            continue;
        trouble->status = known[i].status;
        trouble->is_passing = (known[i].flags & PASSES) != 0;
        trouble->is_throttle = (known[i].flags & THROTTLES) != 0;
        trouble->is_credentials = (known[i].flags & CREDENTIALS) != 0;
        return;
    }
}

int s3_read_error(struct site *site, const char *body, size_t length, struct site_trouble *trouble)
{
    struct told told;
    (void)site;
    if (!body || !read_told(body, length, &told))
        return 0;
    trouble->status = STK_IO;
    memcpy(trouble->code, told.code, sizeof(trouble->code));
    memcpy(trouble->words, told.words, sizeof(trouble->words));
    use_code(told.code, trouble);
    return 1;
}

static int is_region(const char *region)
{
    size_t length = strspn(region, "abcdefghijklmnopqrstuvwxyz0123456789-");
    return length && !region[length];
}

/* Takes a region over; 0: it is the place's already. */
static int take_region(struct s3_place *place, const char *region)
{
    pthread_mutex_lock(&place->lock);
    int is_new = strcmp(place->region, region) != 0;
    snprintf(place->region, sizeof(place->region), "%s", region);
    pthread_mutex_unlock(&place->lock);
    return is_new;
}

/* A bucket that lies elsewhere: from now on it is asked for there. A HEAD has no body: its 400 in
 * the right region is what an expired token gets. */
static void use_region(struct s3_place *place, const struct web_answer *answer,
                       const struct told *told, struct site_trouble *trouble)
{
    const char *region = answer->region[0] ? answer->region : told->region;
    int is_redirect = answer->status == 301 || answer->status == 307 || answer->status == 308;
    int is_wrong = answer->status == 400 &&
                   (!told->code[0] || !strcmp(told->code, "AuthorizationHeaderMalformed") ||
                    !strcmp(told->code, "IllegalLocationConstraintException"));
    int is_silent = is_wrong && !told->code[0];
    int is_known = is_region(region) && (is_redirect || is_wrong);
    int is_new = is_known && take_region(place, region);
    if (is_silent && !is_new) {
        trouble->status = STK_DENIED;
        trouble->is_credentials = 1;
        return;
    }
    if (!is_known)
        return;
    snprintf(trouble->region, sizeof(trouble->region), "%s", region);
    trouble->status = STK_IO;
    trouble->is_passing = 1;
}

/* A clock that is wrong: the server's is used from now on. A HEAD has no body that says so. */
static void use_clock(struct s3_place *place, const struct web_answer *answer,
                      const struct told *told, struct site_trouble *trouble)
{
    int is_skew = !strcmp(told->code, "RequestTimeTooSkewed");
    if (!is_skew && (answer->status != 403 || told->code[0]))
        return;
    int64_t now_s = (int64_t)time(NULL);
    int64_t theirs = told->time[0] ? aws_time_read(told->time) : 0;
    if (!theirs)
        theirs = answer->date_s;
    int64_t ahead_s = theirs - now_s;
    trouble->is_credentials = !is_skew;
    if (!theirs || (!is_skew && ahead_s > -MOST_SKEW_S && ahead_s < MOST_SKEW_S))
        return;
    pthread_mutex_lock(&place->lock);
    int64_t off_s = ahead_s - place->ahead_s;
    if (is_skew || off_s > MOST_SKEW_S || off_s < -MOST_SKEW_S) {
        place->ahead_s = ahead_s;
        trouble->is_clock = 1;
        trouble->is_passing = 1;
    }
    pthread_mutex_unlock(&place->lock);
}

void s3_read_trouble(struct site *site, const struct web_answer *answer,
                     struct site_trouble *trouble)
{
    struct told told = {0};
    site_trouble_by_status(answer->status, trouble);
    if (answer->body.data && read_told(answer->body.data, answer->body.len, &told))
        s3_read_error(site, answer->body.data, answer->body.len, trouble);
    if (!told.code[0] && answer->error_code[0]) {
        take(told.code, sizeof(told.code), answer->error_code);
        memcpy(trouble->code, told.code, sizeof(trouble->code));
        use_code(told.code, trouble);
    }
    use_region(site->kind, answer, &told, trouble);
    use_clock(site->kind, answer, &told, trouble);
}

/* BEGIN's answer: <InitiateMultipartUploadResult><UploadId>. */
static int read_upload_id(const char *body, size_t length, char upload[256])
{
    struct xml *xml = memory_alloc(sizeof(*xml));
    if (!xml)
        return 0;
    xml_begin(xml, body, length);
    for (enum xml_event event = xml_next(xml); event != XML_END && event != XML_BAD;
         event = xml_next(xml))
        if (event == XML_TEXT && xml->depth == 2 && !strcmp(xml->name, "UploadId") &&
            xml->text_length < 256)
            memcpy(upload, xml->text, xml->text_length + 1);
    memory_free(xml);
    return upload[0] != '\0';
}

void s3_read_upload(struct site *site, const struct site_call *call,
                    const struct web_answer *answer, const char *body, size_t length,
                    char upload[256], struct site_trouble *trouble)
{
    const char *missing = NULL;
    upload[0] = '\0';
    if (call->verb == SITE_BEGIN && !(body && read_upload_id(body, length, upload)))
        missing = "the upload has no id";
    if (call->verb == SITE_PART) {
        snprintf(upload, 256, "%s", answer->etag);
        if (!upload[0])
            missing = "the part has no ETag";
    }
    if (call->verb == SITE_FINISH && s3_read_error(site, body, length, trouble))
        return;
    if (missing) {
        trouble->status = STK_CORRUPT;
        snprintf(trouble->words, sizeof(trouble->words), "%s", missing);
    }
}
