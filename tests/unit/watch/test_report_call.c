#include "base/testing.h"

#include "stoker/report.h"

struct asked {
    uint32_t run_count;
    const char *first, *out;
    int calls;
};

static stk_status draw(void *user, const char *const *runs, uint32_t run_count, const char *out,
                       struct stk_error *err)
{
    struct asked *asked = user;
    (void)err;
    asked->run_count = run_count;
    asked->first = run_count ? runs[0] : NULL;
    asked->out = out;
    asked->calls++;
    return STK_OK;
}

static void without_a_hook_the_words_say_who_draws(void **state)
{
    static const char *const runs[] = {"run.json"};
    struct stk_context *context;
    struct stk_error err;
    (void)state;

    assert_int_equal(stk_context_new(&context, NULL, &err), STK_OK);
    assert_int_equal(stk_report_ready(context, "r.html", &err), STK_UNSUPPORTED);
    assert_non_null(strstr(err.remedy, "stoker[report]"));
    assert_string_equal(err.object, "r.html");
    assert_int_equal(stk_report_make(context, runs, 1, "r.html", NULL), STK_UNSUPPORTED);
    assert_int_equal(stk_report_ready(NULL, "r.html", &err), STK_UNSUPPORTED);
    stk_context_free(context);
}

static void the_hook_is_given_the_runs_and_asked_beforehand_without(void **state)
{
    static const char *const runs[] = {"before.json", "after.json"};
    struct asked asked = {0};
    struct stk_hooks hooks = {.user = &asked, .make_report = draw};
    struct stk_context *context;
    struct stk_error err;
    (void)state;

    assert_int_equal(stk_context_new(&context, &hooks, &err), STK_OK);
    assert_int_equal(stk_report_ready(context, "r.html", &err), STK_OK);
    assert_int_equal(asked.run_count, 0);
    assert_int_equal(stk_report_make(context, runs, 2, "r.html", &err), STK_OK);
    assert_int_equal(asked.run_count, 2);
    assert_string_equal(asked.first, "before.json");
    assert_string_equal(asked.out, "r.html");
    stk_context_free(context);
}

static void no_run_is_bad_usage_and_nobody_is_asked(void **state)
{
    struct asked asked = {0};
    struct stk_hooks hooks = {.user = &asked, .make_report = draw};
    struct stk_context *context;
    struct stk_error err;
    (void)state;

    assert_int_equal(stk_context_new(&context, &hooks, &err), STK_OK);
    assert_int_equal(stk_report_make(context, NULL, 0, "r.html", &err), STK_USAGE);
    assert_int_equal(asked.calls, 0);
    stk_context_free(context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_a_hook_the_words_say_who_draws),
        cmocka_unit_test(the_hook_is_given_the_runs_and_asked_beforehand_without),
        cmocka_unit_test(no_run_is_bad_usage_and_nobody_is_asked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
