/* web_fixture.h -- what the tests of the web share: one web, one server that answers, and an object
 * of bytes that tell their place. Owns: nothing.   Threads: one.   Errors: a failed assertion. Not
 * here: any test. */
#ifndef TESTS_NET_WEB_FIXTURE_H
#define TESTS_NET_WEB_FIXTURE_H

#include "base/testing.h"

#include "base/clock.h"
#include "net/answering.h"
#include "net/web.h"

#define MS INT64_C(1000000)

enum { OBJECT = 300000 };

/* One web, one server, and an object of bytes that tell their place. */
struct fixture {
    struct web *web;
    struct answering *server;
    uint8_t *object, *memory;
    struct iovec parts[3];
    struct web_request request;
};

TESTING struct fixture *fixture_with(const struct answering_step *step,
                                     const struct web_options *options)
{
    struct fixture *fixture = calloc(1, sizeof *fixture);
    struct stk_error err;
    assert_non_null(fixture);
    fixture->object = malloc(OBJECT);
    fixture->memory = malloc(OBJECT);
    for (uint32_t i = 0; i < OBJECT; i++)
        fixture->object[i] = (uint8_t)(i * 2654435761u >> 13);
    memset(fixture->memory, 0xee, OBJECT);
    struct answering_step filled = *step;
    if (!filled.body && !filled.status) {
        filled.body = fixture->object;
        filled.length = OBJECT;
    }
    fixture->server = answering_start(&filled, 1);
    assert_int_equal(web_open(&fixture->web, options, &err), STK_OK);
    fixture->request = (struct web_request){.url = "", .range_first = WEB_NO_RANGE, .parts = NULL};
    return fixture;
}

TESTING struct fixture *fixture_new(const struct answering_step *step)
{
    return fixture_with(step, &(struct web_options){0});
}

TESTING void fixture_free(struct fixture *fixture)
{
    web_close(fixture->web);
    answering_stop(fixture->server);
    web_answer_free(&fixture->request.answer);
    free(fixture->object);
    free(fixture->memory);
    free(fixture);
}

/* A range into three parts, one of them empty. */
TESTING void ask_range(struct fixture *fixture, uint64_t first, uint64_t length)
{
    struct web_request *request = &fixture->request;
    request->url = answering_url(fixture->server, "/object");
    request->range_first = first;
    request->range_length = length;
    fixture->parts[0] = (struct iovec){fixture->memory, length / 3};
    fixture->parts[1] = (struct iovec){NULL, 0};
    fixture->parts[2] = (struct iovec){fixture->memory + length / 3, length - length / 3};
    request->parts = fixture->parts;
    request->part_count = 3;
}

TESTING struct web_answer *get_range(struct fixture *fixture, uint64_t first, uint64_t length)
{
    web_answer_free(&fixture->request.answer);
    ask_range(fixture, first, length);
    web_wait(fixture->web, &fixture->request);
    return &fixture->request.answer;
}

TESTING struct web_answer *get_text(struct fixture *fixture, const char *path, struct text *text)
{
    struct web_request *request = &fixture->request;
    web_answer_free(&request->answer);
    request->url = answering_url(fixture->server, path);
    request->parts = NULL;
    request->text = text;
    request->text_most = OBJECT;
    web_wait(fixture->web, request);
    return &request->answer;
}

TESTING void memory_is_untouched(const struct fixture *fixture)
{
    for (uint32_t i = 0; i < OBJECT; i++)
        assert_int_equal(fixture->memory[i], 0xee);
}

#endif
