#include "base/testing.h"

#include "net/xml.h"

/* The events of a text: "<a>", "</a>", texts in quotes, "." at its end, "!" where it is bad. */
static const char *events(const char *data)
{
    static char out[8192];
    static struct xml xml;
    size_t used = 0;
    xml_begin(&xml, data, strlen(data));
    for (;;) {
        enum xml_event event = xml_next(&xml);
        const char *format = event == XML_OPEN ? "<%s>" : event == XML_CLOSE ? "</%s>" : "'%s'";
        if (event == XML_BAD || event == XML_END) {
            strcpy(out + used, event == XML_BAD ? "!" : ".");
            assert_int_equal(event == XML_BAD, xml.why != NULL);
            assert_int_equal(xml_next(&xml), event); /* and stays so */
            return out;
        }
        used += (size_t)snprintf(out + used, sizeof(out) - used, format,
                                 event == XML_TEXT ? xml.text : xml.name);
    }
}

static void elements_and_texts_come_in_order(void **state)
{
    (void)state;
    assert_string_equal(events("<?xml version=\"1.0\"?>\n<a x=\"1>2\" y='&'><b>one</b> <c/>\n</a>"),
                        "<a><b>'one'</b><c></c></a>.");
    assert_string_equal(events("\xEF\xBB\xBF<a></a>"), "<a></a>.");
}

static void prefixes_are_left_out(void **state)
{
    (void)state;
    assert_string_equal(events("<s:a xmlns:s=\"u\"><s:b >x</s:b ></s:a>"), "<a><b>'x'</b></a>.");
}

static void texts_are_decoded(void **state)
{
    (void)state;
    assert_string_equal(events("<a>&lt;&amp;&gt;&quot;&apos;&#65;&#x42;&#233;&#x20AC;</a>"),
                        "<a>'<&>\"'AB\xC3\xA9\xE2\x82\xAC'</a>.");
    assert_string_equal(events("<a>x<!-- no -->y<![CDATA[<&]]>z</a>"), "<a>'xy<&z'</a>.");
}

static void blanks_are_told_only_where_they_are_all_that_there_is(void **state)
{
    (void)state;
    assert_string_equal(events("<a> <b>  </b>\n<c> x </c> </a> "),
                        "<a><b>'  '</b><c>' x '</c></a>.");
}

static void what_is_not_whole_is_bad(void **state)
{
    (void)state;
    static const char *const bad[] = {"x",
                                      "<a>",
                                      "<a></b>",
                                      "</a>",
                                      "<a><b></a></b>",
                                      "<a>&x;</a>",
                                      "<a>&#0;</a>",
                                      "<a>&#xD800;</a>",
                                      "<a>&amp</a>",
                                      "<a b=\"></a>",
                                      "<a><![CDATA[x</a>",
                                      "<a",
                                      "<>",
                                      "<a></a>x",
                                      "<!DOCTYPE a [<!ENTITY b 'c'>]><a>&b;</a>"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_non_null(strchr(events(bad[i]), '!'));
}

static void depth_and_length_are_bounded(void **state)
{
    (void)state;
    char deep[1024] = "";
    for (int i = 0; i < 32; i++)
        strcat(deep, "<a>");
    char good[2048];
    strcpy(good, deep);
    for (int i = 0; i < 32; i++)
        strcat(good, "</a>");
    assert_null(strchr(events(good), '!'));
    strcat(deep, "<a>");
    assert_non_null(strchr(events(deep), '!'));
    static char text[8192];
    memset(text, 'x', 5000);
    memcpy(text, "<a>", 3);
    strcpy(text + 5000, "</a>");
    assert_non_null(strchr(events(text), '!'));
    strcpy(text + 4000, "</a>");
    assert_null(strchr(events(text), '!'));
}

static void an_empty_text_is_its_end(void **state)
{
    (void)state;
    assert_string_equal(events(""), ".");
}

static void what_is_written_reads_back(void **state)
{
    (void)state;
    struct text text = {0};
    text_format(&text, "<a>");
    xml_add(&text, "\"<a>&b\"", 7);
    text_format(&text, "</a>");
    assert_string_equal(events(text.data), "<a>'\"<a>&b\"'</a>.");
    text_free(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(elements_and_texts_come_in_order),
        cmocka_unit_test(prefixes_are_left_out),
        cmocka_unit_test(texts_are_decoded),
        cmocka_unit_test(blanks_are_told_only_where_they_are_all_that_there_is),
        cmocka_unit_test(what_is_not_whole_is_bad),
        cmocka_unit_test(depth_and_length_are_bounded),
        cmocka_unit_test(an_empty_text_is_its_end),
        cmocka_unit_test(what_is_written_reads_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
