#include "base/testing.h"

#include "net/azure_answer.h"

/* As the service writes it: a byte order mark, ETags without quotes, folders of both kinds. */
static const char page_text[] =
    "\xEF\xBB\xBF<?xml version=\"1.0\" encoding=\"utf-8\"?>"
    "<EnumerationResults ServiceEndpoint=\"https://acc.blob.core.windows.net/\" "
    "ContainerName=\"c\"><Prefix>a</Prefix><MaxResults>4</MaxResults><Delimiter>/</Delimiter>"
    "<Blobs>"
    "<Blob><Name>a &amp; b.tar</Name><Properties><Creation-Time>x</Creation-Time>"
    "<Etag>0x8D1</Etag><Content-Length>18446744073709551615</Content-Length>"
    "<Content-Type>application/x-tar</Content-Type></Properties>"
    "<Metadata><Name>wrong</Name></Metadata></Blob>"
    "<Blob><Name>flat</Name><Properties><Etag>\"0x8D2\"</Etag>"
    "<Content-Length>0</Content-Length></Properties>"
    "<Metadata><hdi_isfolder>true</hdi_isfolder></Metadata></Blob>"
    "<Blob><Name>deep</Name><Properties><Content-Length>0</Content-Length>"
    "<ResourceType>directory</ResourceType></Properties></Blob>"
    "<Blob><Name>empty</Name><Properties><ResourceType>file</ResourceType><Etag>0x8D3</Etag>"
    "<Content-Length>0</Content-Length></Properties><Metadata/></Blob>"
    "<BlobPrefix><Name>sub/</Name></BlobPrefix>"
    "<Blob><Name Encoded=\"true\">odd%EF%BF%BE%2Fa+b%25.tar</Name><Properties>"
    "<Content-Length>1</Content-Length></Properties></Blob>"
    "<BlobPrefix><Name Encoded='no' Encoded=\"true\">%01/</Name></BlobPrefix>"
    "<Blob><Name>50%25</Name><Properties><Content-Length>2</Content-Length></Properties></Blob>"
    "</Blobs><NextMarker>2!more&lt;</NextMarker></EnumerationResults>";

static void a_page_tells_blobs_folders_and_the_next_marker(void **state)
{
    struct site_page page = {0};
    struct stk_error err;

    (void)state;
    assert_int_equal(azure_read_blobs(page_text, sizeof(page_text) - 1, &page, &err), STK_OK);
    assert_int_equal(page.count, 8);
    assert_string_equal(page.token, "2!more<");
    static const struct {
        const char *key, *etag;
        uint64_t size;
        int is_folder;
    } wanted[] = {{"a & b.tar", "\"0x8D1\"", UINT64_MAX, 0},
                  {"flat", "\"0x8D2\"", 0, 1},
                  {"deep", "", 0, 1},
                  {"empty", "\"0x8D3\"", 0, 0},
                  {"sub/", "", 0, 1},
                  {"odd\xEF\xBF\xBE/a+b%.tar", "", 1, 0},
                  {"\001/", "", 0, 1},
                  {"50%25", "", 2, 0}};
    for (size_t i = 0; i < page.count; i++) {
        assert_string_equal(page.entries[i].key, wanted[i].key);
        assert_string_equal(page.entries[i].etag, wanted[i].etag);
        assert_true(page.entries[i].size == wanted[i].size);
        assert_int_equal(page.entries[i].is_folder, wanted[i].is_folder);
    }
    site_page_reset(&page);
}

static void the_last_page_has_no_marker(void **state)
{
    static const char text[] = "<EnumerationResults><Blobs/><NextMarker/></EnumerationResults>";
    struct site_page page = {0};

    (void)state;
    assert_int_equal(azure_read_blobs(text, sizeof(text) - 1, &page, NULL), STK_OK);
    assert_int_equal(page.count, 0);
    assert_null(page.token);
    site_page_reset(&page);
}

static void what_is_no_list_is_corrupt(void **state)
{
    static const char *const texts[] = {
        "",
        "<html><body>hello</body></html>",
        "<EnumerationResults><Blobs><Blob><Name>x</Name>",
        "<EnumerationResults><Blobs><Blob><Name>x</Name><Properties><Content-Length>-1"
        "</Content-Length></Properties></Blob></Blobs></EnumerationResults>",
        "<EnumerationResults><Blobs><Blob><Name>x</Name></Blob></Blobs></EnumerationResults>",
        "<EnumerationResults><Blobs><Blob><Name></Name><Properties><Content-Length>1"
        "</Content-Length></Properties></Blob></Blobs></EnumerationResults>",
        "<EnumerationResults><Blobs><Blob><Name Encoded=\"true\">%zz</Name><Properties>"
        "<Content-Length>1</Content-Length></Properties></Blob></Blobs></EnumerationResults>",
        "<Error><Code>ServerBusy</Code></Error>",
    };

    (void)state;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct site_page page = {0};
        struct stk_error err;
        assert_int_equal(azure_read_blobs(texts[i], strlen(texts[i]), &page, &err), STK_CORRUPT);
        site_page_reset(&page);
    }
}

static int read_once(void *user)
{
    struct site_page page = {0};
    stk_status status = azure_read_blobs(page_text, sizeof(page_text) - 1, &page, NULL);

    (void)user;
    assert_true(status == STK_OK || status == STK_MEMORY);
    site_page_reset(&page);
    return status == STK_OK;
}

static void fault_85_a_failed_allocation_is_a_status(void **state)
{
    (void)state;
    fail_each_allocation(read_once, NULL);
}

static void blocks_tell_their_number_and_their_md5(void **state)
{
    static const char md5[] = "0123456789abcdef0123456789abcdef";
    struct text text = {0};
    struct site_page page = {0};
    char found[33];
    uint32_t number;

    (void)state;
    text_format(&text, "<BlockList><UncommittedBlocks><Block><Name>");
    azure_block_id(&text, 50000, md5);
    text_format(&text, "</Name><Size>8388608</Size></Block>"
                       "<Block><Name>QUFBQQ==</Name><Size>4</Size></Block>"
                       "</UncommittedBlocks></BlockList>");
    assert_int_equal(azure_read_blocks(text.data, text.len, &page, NULL), STK_OK);
    assert_int_equal(page.count, 1); /* somebody else's is left out */
    assert_int_equal(page.entries[0].number, 50000);
    assert_int_equal(page.entries[0].size, 8388608);
    assert_string_equal(page.entries[0].etag, "\"0123456789abcdef0123456789abcdef\"");
    site_page_reset(&page);
    text.len = 0;
    azure_block_id(&text, 1, md5);
    assert_int_equal(text.len, 52); /* all of one length, within Azure's 64 */
    assert_true(azure_block_id_read(text.data, &number, found));
    assert_int_equal(number, 1);
    assert_string_equal(found, md5);
    assert_false(azure_block_id_read("", &number, found));
    assert_false(azure_block_id_read("????", &number, found));
    text_free(&text);
}

/* --- errors ---------------------------------------------------------------------------------- */

static struct site_trouble trouble_of(int status, const char *header, const char *body)
{
    struct web_answer answer = {.status = status};
    struct site_trouble trouble;

    snprintf(answer.error_code, sizeof(answer.error_code), "%s", header);
    text_format(&answer.body, "%s", body);
    azure_read_trouble(&answer, &trouble);
    text_free(&answer.body);
    return trouble;
}

static void each_error_means_what_the_service_says(void **state)
{
    static const struct {
        int http;
        const char *code;
        stk_status status;
        int throttle, passing, credentials;
    } errors[] = {
        {503, "ServerBusy", STK_LIMIT, 1, 1, 0},
        {429, "", STK_LIMIT, 1, 1, 0},
        {500, "OperationTimedOut", STK_IO, 0, 1, 0},
        {500, "InternalError", STK_IO, 0, 1, 0},
        {502, "", STK_IO, 0, 1, 0},
        {403, "AuthenticationFailed", STK_DENIED, 0, 0, 1},
        {401, "InvalidAuthenticationInfo", STK_DENIED, 0, 0, 1},
        {401, "", STK_DENIED, 0, 0, 1},
        {403, "AuthorizationFailure", STK_DENIED, 0, 0, 0},
        {403, "AuthorizationPermissionMismatch", STK_DENIED, 0, 0, 0},
        {404, "BlobNotFound", STK_NOT_FOUND, 0, 0, 0},
        {404, "ContainerNotFound", STK_NOT_FOUND, 0, 0, 0},
        {404, "", STK_NOT_FOUND, 0, 0, 0},
        {412, "ConditionNotMet", STK_STALE, 0, 0, 0},
        {416, "InvalidRange", STK_STALE, 0, 0, 0},
        {409, "BlobAlreadyExists", STK_MISMATCH, 0, 0, 0},
        {409, "PublicAccessNotPermitted", STK_DENIED, 0, 0, 0},
        {400, "InvalidQueryParameterValue", STK_USAGE, 0, 0, 0},
        {400, "Md5Mismatch", STK_IO, 0, 1, 0},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
        struct site_trouble trouble = trouble_of(errors[i].http, errors[i].code, "");
        assert_int_equal(trouble.status, errors[i].status);
        assert_int_equal(trouble.is_throttle, errors[i].throttle);
        assert_int_equal(trouble.is_passing, errors[i].passing);
        assert_int_equal(trouble.is_credentials, errors[i].credentials);
        assert_string_equal(trouble.code, errors[i].code);
    }
}

static void an_error_s_body_is_read_where_no_header_tells(void **state)
{
    struct site_trouble trouble =
        trouble_of(403, "",
                   "\xEF\xBB\xBF<?xml version=\"1.0\"?><Error><Code>AuthenticationFailed</Code>"
                   "<Message>Server failed to authenticate the request.\n"
                   "RequestId:8a-11\nTime:2026-11-15</Message><AuthenticationErrorDetail>The MAC "
                   "signature found 'c2lnbmF0dXJl' is not the same as</AuthenticationErrorDetail>"
                   "</Error>");

    (void)state;
    assert_string_equal(trouble.code, "AuthenticationFailed");
    assert_string_equal(trouble.words, "Server failed to authenticate the request.");
    assert_int_equal(trouble.is_credentials, 1);
    trouble = trouble_of(502, "", "<html>Bad gateway");
    assert_int_equal(trouble.status, STK_IO);
    assert_string_equal(trouble.words, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_page_tells_blobs_folders_and_the_next_marker),
        cmocka_unit_test(the_last_page_has_no_marker),
        cmocka_unit_test(what_is_no_list_is_corrupt),
        cmocka_unit_test(fault_85_a_failed_allocation_is_a_status),
        cmocka_unit_test(blocks_tell_their_number_and_their_md5),
        cmocka_unit_test(each_error_means_what_the_service_says),
        cmocka_unit_test(an_error_s_body_is_read_where_no_header_tells),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
