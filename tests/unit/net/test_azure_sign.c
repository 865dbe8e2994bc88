#include "base/testing.h"

#include "net/azure_sign.h"

/* The strings and signatures are what azure-storage-blob 12.31.1 (SharedKeyCredentialPolicy) makes
 * of the same requests with the same key. */
#define KEY "c3Rva2VyLXRlc3Qta2V5LXRoYXQtcHJvdGVjdHMtbm90aGluZw=="
#define DATE "Sun, 15 Nov 2026 21:42:00 GMT"
#define LAST_HEADERS "x-ms-date:" DATE "\nx-ms-version:2021-12-02\n"

static const struct web_header plain[] = {{"x-ms-version", "2021-12-02"}, {"x-ms-date", DATE}};
static const struct web_header sending[] = {{"content-type", "application/octet-stream"},
                                            {"x-ms-blob-type", "BlockBlob"},
                                            {"content-md5", "XUFAKrxLKna5cZ2REBfFkg=="},
                                            {"x-ms-date", DATE},
                                            {"x-ms-version", "2021-12-02"},
                                            {"if-none-match", "*"}};
static const struct web_header empty[] = {{"content-type", "application/octet-stream"},
                                          {"x-ms-blob-type", "BlockBlob"},
                                          {"content-md5", "1B2M2Y8AsgTpgAmY7PhCfg=="},
                                          {"x-ms-date", DATE},
                                          {"x-ms-version", "2021-12-02"}};
static const struct web_header block[] = {{"content-type", "application/octet-stream"},
                                          {"content-md5", "XUFAKrxLKna5cZ2REBfFkg=="},
                                          {"x-ms-date", DATE},
                                          {"x-ms-version", "2021-12-02"}};

static const struct {
    const char *account;
    struct azure_to_sign request;
    const char *string, *signature;
} vectors[] = {
    {"acc1",
     {.method = "GET",
      .headers = plain,
      .header_count = 2,
      .range_first = 1024,
      .range_length = 1024,
      .etag = "\"0x8D1\"",
      .resource = "/acc1/train/a%20b/c.tar"},
     "GET\n\n\n\n\n\n\n\n\"0x8D1\"\n\n\nbytes=1024-2047\n" LAST_HEADERS "/acc1/train/a%20b/c.tar",
     "+brYn48Y8nEv0Ax1vt+h1kBK4alVSoawFgAMj6HeJLI="},
    {"devstoreaccount1",
     {.method = "GET",
      .headers = plain,
      .header_count = 2,
      .resource = "/devstoreaccount1/devstoreaccount1/train\ncomp:list\ndelimiter:/\n"
                  "include:metadata\nmarker:2!m/=\nmaxresults:5000\nprefix:a b/\n"
                  "restype:container"},
     "GET\n\n\n\n\n\n\n\n\n\n\n\n" LAST_HEADERS
     "/devstoreaccount1/devstoreaccount1/train\ncomp:list\ndelimiter:/\ninclude:metadata\n"
     "marker:2!m/=\nmaxresults:5000\nprefix:a b/\nrestype:container",
     "12tjXcCudMVp2/1bf65Fs6wCdIY5cGAZzcLSwNMS3g8="},
    {"acc1",
     {.method = "PUT",
      .headers = sending,
      .header_count = 6,
      .send_length = 5,
      .resource = "/acc1/train/x"},
     "PUT\n\n\n5\nXUFAKrxLKna5cZ2REBfFkg==\napplication/octet-stream\n\n\n\n*\n\n\n"
     "x-ms-blob-type:BlockBlob\n" LAST_HEADERS "/acc1/train/x",
     "EAiqwq3YsGmkvlLnmXLOvKWTIDcoOrHBW7EEVvaXAtA="},
    {"acc1",
     {.method = "PUT", .headers = empty, .header_count = 5, .resource = "/acc1/train/x"},
     "PUT\n\n\n\n1B2M2Y8AsgTpgAmY7PhCfg==\napplication/octet-stream\n\n\n\n\n\n\n"
     "x-ms-blob-type:BlockBlob\n" LAST_HEADERS "/acc1/train/x",
     "MgX7ogve9SCfLRZeKHhEeJdnMQuwrs8EjBUSkddtaSs="},
    {"acc1",
     {.method = "PUT",
      .headers = block,
      .header_count = 4,
      .send_length = 8388608,
      .resource = "/acc1/train/x\nblockid:MDAwMDAx\ncomp:block"},
     "PUT\n\n\n8388608\nXUFAKrxLKna5cZ2REBfFkg==\napplication/"
     "octet-stream\n\n\n\n\n\n\n" LAST_HEADERS "/acc1/train/x\nblockid:MDAwMDAx\ncomp:block",
     "/b1O8+FtfUHhQBLOacyfzSLosiOt1Vz+5xDzz+vo9TU="},
};

static void requests_are_signed_as_azure_s_own_library_signs_them(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(vectors) / sizeof(vectors[0]); i++) {
        struct text string = {0}, header = {0};
        struct secret *secret = secret_new();
        char wanted[128];
        assert_non_null(secret);
        snprintf(secret->id, sizeof(secret->id), "%s", vectors[i].account);
        snprintf(secret->key, sizeof(secret->key), "%s", KEY);
        snprintf(wanted, sizeof(wanted), "SharedKey %s:%s", vectors[i].account,
                 vectors[i].signature);
        azure_string_to_sign(&string, &vectors[i].request);
        assert_string_equal(string.data, vectors[i].string);
        assert_int_equal(azure_sign(&header, &vectors[i].request, secret, NULL), STK_OK);
        assert_string_equal(header.data, wanted);
        secret_free(secret);
        text_free(&string);
        text_free(&header);
    }
}

static void a_key_that_is_not_base64_is_named_but_not_told(void **state)
{
    struct secret *secret = secret_new();
    struct text header = {0};
    struct stk_error err;

    (void)state;
    assert_non_null(secret);
    strcpy(secret->id, "acc1");
    strcpy(secret->key, "*** no key ***");
    strcpy(secret->where, "AZURE_STORAGE_KEY");
    assert_int_equal(azure_sign(&header, &vectors[0].request, secret, &err), STK_USAGE);
    assert_non_null(strstr(err.remedy, "AZURE_STORAGE_KEY"));
    assert_null(strstr(err.what, "***"));
    secret_free(secret);
    text_free(&header);
}

static void dates_are_those_of_http(void **state)
{
    char date[AZURE_DATE_CAP];

    (void)state;
    azure_date(0, date);
    assert_string_equal(date, "Thu, 01 Jan 1970 00:00:00 GMT");
    azure_date(1794778920, date);
    assert_string_equal(date, DATE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_are_signed_as_azure_s_own_library_signs_them),
        cmocka_unit_test(a_key_that_is_not_base64_is_named_but_not_told),
        cmocka_unit_test(dates_are_those_of_http),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
