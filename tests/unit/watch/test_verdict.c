#include "base/testing.h"

#include "watch/summary_making.h"
#include "watch/verdict.h"

static char *words_of(const struct made *made, struct verdict *verdict)
{
    verdict_find(verdict, &made->summary);
    char *text = verdict_text(verdict, &made->summary);
    assert_non_null(text);
    return text;
}

static void slow_transform(struct made *made)
{
    made_healthy(made);
    made_wait(made, 0, CAUSE_TRANSFORM, 55);
    made_wait(made, 0, CAUSE_FETCH, 4);
    made_function(made, CAUSE_TRANSFORM, "blur", 50);
    made_busy_workers(made);
    made_files(made, "jpg", 40000, 51000);
}

static void the_first_line_is_the_answer(void **state)
{
    (void)state;
    struct made made;
    struct verdict verdict;
    slow_transform(&made);
    char *text = words_of(&made, &verdict);
    static const char answer[] =
        "GPU busy 41 %. It waited for input: decoding and transforming, blur\n(train.py:31).";
    if (strncmp(text, answer, sizeof answer - 1) != 0)
        print_error("%s\n", text);
    assert_memory_equal(text, answer, sizeof answer - 1);
    assert_int_equal(verdict.bound, BOUND_INPUT);
    assert_int_equal(verdict.cause, CAUSE_TRANSFORM);
    assert_string_equal(verdict_bound_name(verdict.bound), "input");
    assert_string_equal(verdict.sure, "high");
    assert_true(verdict.gain_bound > 2.4 && verdict.gain_bound < 2.5); /* 100 / 41 */
    assert_non_null(strstr(verdict.why, "2 workers need 200 ms for a batch"));
    memory_free(text);
}

static void samples_that_stand_in_for_kernels_are_called_so(void **state)
{
    struct made made;
    struct verdict verdict;
    (void)state;
    slow_transform(&made);
    made.loader.pin_memory = 0;
    made.summary.mode = WATCH_SAMPLED;
    char *text = words_of(&made, &verdict);
    assert_non_null(strstr(text, "GPU busy 41 %, by NVML's samples. It waited for input"));
    assert_non_null(strstr(text, "GPU busy (sampled)"));
    assert_string_equal(verdict.sure, "low");
    /* Of launches and copies nothing is known. */
    for (size_t i = 0; i < verdict.against_count; i++)
        assert_null(strstr("cuda-graphs pin-memory", verdict.against[i].rule));
    memory_free(text);
}

static void a_loop_that_was_not_seen_is_not_advised(void **state)
{
    struct made made;
    struct verdict verdict;
    (void)state;
    made_healthy(&made);
    made.summary.loader_count = 0;
    made.ranks[0].steps = made.ranks[0].samples = 0;
    made.ranks[0].loop_unseen = 1;
    made.ranks[0].copied_bytes = made.ranks[0].pageable_bytes = SECOND;
    made_wait(&made, 0, CAUSE_COPY, 20);
    made_wait(&made, 0, CAUSE_CONTENTION, 10);
    made_wait(&made, 0, CAUSE_OTHER, 40);
    made.summary.foreign_cpu_share = 0.4;
    char *text = words_of(&made, &verdict);
    static const char answer[] =
        "GPU busy 30 %. What it waited for is not known. The script's loop";
    assert_memory_equal(verdict.words, answer, sizeof answer - 1);
    assert_non_null(strstr(verdict.words, "the figures of the host are all that is told"));
    assert_int_equal(verdict.cause, CAUSE_OTHER);
    assert_int_equal(verdict.advice_count, 1); /* of what the host's figures say */
    assert_string_equal(verdict.advice[0].rule, "noisy-neighbour");
    for (size_t i = 0; i < verdict.against_count; i++)
        assert_string_not_equal(verdict.against[i].rule, "cuda-graphs");
    memory_free(text);
    made_healthy(&made);
    made.summary.loader_count = 0;
    made.ranks[0].loop_unseen = 1;
    text = words_of(&made, &verdict);
    assert_int_equal(verdict.bound, BOUND_COMPUTE);
    assert_int_equal(verdict.advice_count, 0);
    assert_null(strstr(text, "next()"));
    memory_free(text);
}

static void lines_have_80_columns_at_most_but_for_code(void **state)
{
    (void)state;
    struct made made;
    struct verdict verdict;
    slow_transform(&made);
    made.summary.notices[0] =
        (char *)(uintptr_t) "A sentence that goes on and on and on and on and "
                            "on, until a line of a terminal is full of it.";
    char *text = words_of(&made, &verdict);
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
        int code = strncmp(line, "        ", 8) == 0;
        if (!code && strlen(line) > 80)
            print_error("%s\n", line);
        assert_true(code || strlen(line) <= 80);
    }
    memory_free(text);
}

static void the_bars_are_the_causes_in_their_order(void **state)
{
    (void)state;
    struct made made;
    struct verdict verdict;
    slow_transform(&made);
    char *text = words_of(&made, &verdict);
    assert_non_null(strstr(text, "  GPU computes       ##########                 41 %\n"));
    assert_non_null(
        strstr(text, "  decode, transform  #############              55 %  blur (train.py:31)\n"));
    assert_true(strstr(text, "decode, transform  #") < strstr(text, "reading            #"));
    assert_non_null(strstr(text, "Do not bother with"));
    assert_non_null(strstr(text, "--what-if measures it"));
    memory_free(text);
}

static void each_cause_has_its_bound_and_its_words(void **state)
{
    (void)state;
    static const enum verdict_bound bounds[CAUSE_COUNT] = {
        [CAUSE_FETCH] = BOUND_INPUT,       [CAUSE_TRANSFORM] = BOUND_INPUT,
        [CAUSE_COLLATE] = BOUND_INPUT,     [CAUSE_WORKERS] = BOUND_INPUT,
        [CAUSE_SLOW_SAMPLE] = BOUND_INPUT, [CAUSE_START] = BOUND_INPUT,
        [CAUSE_COPY] = BOUND_COPY,         [CAUSE_LAUNCH] = BOUND_HOST,
        [CAUSE_GIL] = BOUND_HOST,          [CAUSE_CONTENTION] = BOUND_HOST,
        [CAUSE_SYNC] = BOUND_HOST,         [CAUSE_CHECKPOINT] = BOUND_HOST,
        [CAUSE_VALIDATION] = BOUND_HOST,   [CAUSE_RANK] = BOUND_RANK,
        [CAUSE_OVERHEAD] = BOUND_UNKNOWN,  [CAUSE_OTHER] = BOUND_UNKNOWN};
    for (int cause = 0; cause < CAUSE_OVERHEAD; cause++) {
        struct made made;
        struct verdict verdict;
        made_healthy(&made);
        made_wait(&made, 0, (enum cause)cause, 40);
        made_wait(&made, 0, CAUSE_OTHER, 2);
        char *text = words_of(&made, &verdict);
        assert_int_equal(verdict.bound, bounds[cause]);
        assert_int_equal(verdict.cause, cause);
        assert_non_null(strstr(verdict.words, "GPU busy 58 %. It waited "));
        assert_true(strlen(verdict.why) > 20);
        assert_true(verdict.gain_bound > 1.6 && verdict.gain_bound < 1.7);
        memory_free(text);
    }
}

static void what_is_not_known_is_said_before_what_is_little(void **state)
{
    (void)state;
    struct made made;
    struct verdict verdict;
    made_healthy(&made);
    made_wait(&made, 0, CAUSE_OTHER, 40);
    made_wait(&made, 0, CAUSE_COPY, 2);
    memory_free(words_of(&made, &verdict));
    assert_int_equal(verdict.cause, CAUSE_OTHER);
    assert_int_equal(verdict.bound, BOUND_UNKNOWN);
    made_wait(&made, 0, CAUSE_COPY, 10);
    memory_free(words_of(&made, &verdict));
    assert_int_equal(verdict.cause, CAUSE_COPY);
}

static void a_loop_without_a_loader_is_not_said_to_have_batches_ready(void **state)
{
    (void)state;
    struct made made;
    struct verdict verdict;
    made_healthy(&made);
    made.summary.mode = WATCH_CPU;
    memory_free(words_of(&made, &verdict));
    assert_non_null(strstr(verdict.why, "Batches are ready"));
    made.summary.loader_count = 0;
    memory_free(words_of(&made, &verdict));
    assert_non_null(strstr(verdict.why, "No loader was seen"));
    made_wait(&made, 0, CAUSE_FETCH, 40);
    memory_free(words_of(&made, &verdict));
    assert_int_equal(verdict.cause, CAUSE_FETCH);
    assert_string_equal(verdict.why,
                        "No loader was seen: what makes the batches is the loop's own. "
                        "It takes 40 ms a step, while nothing is computed.");
}

static void a_gpu_that_is_busy_is_healthy(void **state)
{
    (void)state;
    struct made made;
    struct verdict verdict;
    made_healthy(&made);
    made_wait(&made, 0, CAUSE_FETCH, 9);
    char *text = words_of(&made, &verdict);
    assert_int_equal(verdict.bound, BOUND_COMPUTE);
    assert_int_equal(verdict.cause, CAUSE_COUNT);
    assert_non_null(strstr(text, "GPU busy 91 %. It is bound by computing"));
    memory_free(text);
    made_wait(&made, 0, CAUSE_FETCH, 2);
    text = words_of(&made, &verdict);
    assert_int_equal(verdict.bound, BOUND_INPUT);
    memory_free(text);
}

static void without_a_gpu_it_is_the_step_that_waits(void **state)
{
    (void)state;
    struct made made;
    struct verdict verdict;
    slow_transform(&made);
    made.summary.mode = WATCH_CPU;
    char *text = words_of(&made, &verdict);
    assert_non_null(strstr(text, "The training step computes 41 % of the time. It waited for"));
    assert_null(strstr(verdict.words, "GPU"));
    memory_free(text);
}

static void an_unreliable_run_has_no_verdict_but_its_reasons(void **state)
{
    (void)state;
    struct made made;
    struct verdict verdict;
    slow_transform(&made);
    made.summary.unreliable[0] = (char *)(uintptr_t) "CUPTI dropped 7 records.";
    made.summary.unreliable[1] = (char *)(uintptr_t) "A graph had no kernels.";
    char *text = words_of(&made, &verdict);
    assert_int_equal(verdict.bound, BOUND_UNKNOWN);
    assert_int_equal(verdict.cause, CAUSE_COUNT);
    assert_int_equal(verdict.advice_count, 0);
    assert_non_null(strstr(text, "No verdict"));
    assert_non_null(strstr(text, "A graph had no kernels."));
    assert_null(strstr(text, "What to do"));
    assert_null(strstr(text, "It waited"));
    memory_free(text);
}

static void nothing_seen_is_said_so(void **state)
{
    (void)state;
    struct summary summary = {.mode = WATCH_NOTHING, .wall_ns = SECOND, .cpus = 2};
    struct verdict verdict;
    verdict_find(&verdict, &summary);
    assert_int_equal(verdict.bound, BOUND_UNKNOWN);
    assert_non_null(strstr(verdict.words, "no training loop was seen"));
    char *text = verdict_text(&verdict, &summary);
    assert_non_null(text);
    memory_free(text);
}

static void how_sure_it_is_depends_on_what_was_seen(void **state)
{
    (void)state;
    struct made made;
    struct verdict verdict;
    slow_transform(&made);
    made.ranks[0].steps = 34;
    verdict_find(&verdict, &made.summary);
    assert_string_equal(verdict.sure, "medium");
    assert_non_null(strstr(verdict.sure_why, "nly 34 steps were seen"));
    made.ranks[0].steps = 5;
    verdict_find(&verdict, &made.summary);
    assert_string_equal(verdict.sure, "low");
    slow_transform(&made);
    made.summary.lost = 5000;
    verdict_find(&verdict, &made.summary);
    assert_string_equal(verdict.sure, "low");
    assert_non_null(strstr(verdict.sure_why, "5,000 of 105,000 records were lost"));
    slow_transform(&made);
    made_wait(&made, 0, CAUSE_OTHER, 20);
    verdict_find(&verdict, &made.summary);
    assert_string_equal(verdict.sure, "medium");
    slow_transform(&made);
    made.summary.sampled_hz = 0;
    verdict_find(&verdict, &made.summary);
    assert_string_equal(verdict.sure, "medium");
    slow_transform(&made);
    made_wait(&made, 0, CAUSE_SYNC, 38);
    made_wait(&made, 0, CAUSE_FETCH, 2);
    verdict_find(&verdict, &made.summary);
    assert_string_equal(verdict.sure, "high");
    slow_transform(&made);
    made.summary.mode = WATCH_SAMPLED;
    verdict_find(&verdict, &made.summary);
    assert_string_equal(verdict.sure, "low");
}

static void a_measured_bound_takes_the_place_of_an_estimate(void **state)
{
    (void)state;
    struct made made;
    struct verdict verdict;
    slow_transform(&made);
    made.what_if = (struct summary_what_if){.measured = 1, .gain = 1.9, .steps = 500};
    made.summary.what_if = &made.what_if;
    char *text = words_of(&made, &verdict);
    assert_true(verdict.gain_bound == 1.9);
    assert_non_null(strstr(text, "If input were free: 1.9x faster. Measured: 500 steps"));
    memory_free(text);
    made.what_if.gain = 0.4; /* a short run, and the second one was the slower */
    text = words_of(&made, &verdict);
    assert_non_null(strstr(text, "If input were free: no faster. Measured: 500 steps"));
    memory_free(text);
}

static void ranks_have_a_row_each_and_the_slowest_is_named(void **state)
{
    (void)state;
    struct made made;
    struct verdict verdict;
    made_healthy(&made);
    made.summary.rank_count = 3;
    made.ranks[0].rank = 0;
    made_wait(&made, 0, CAUSE_RANK, 40);
    made_wait(&made, 2, CAUSE_RANK, 40);
    made_wait(&made, 1, CAUSE_CONTENTION, 35);
    char *text = words_of(&made, &verdict);
    assert_int_equal(verdict.bound, BOUND_RANK);
    assert_non_null(strstr(verdict.words, "Rank 1 is the slowest: the others wait for it 40 %"));
    assert_non_null(strstr(verdict.words, "other programs on the CPU"));
    assert_non_null(strstr(text, "     0   60 %      320.0    100 ms  another rank\n"));
    assert_non_null(strstr(text, "other programs  <- the slowest\n"));
    memory_free(text);
}

static void what_is_advised_is_not_advised_against(void **state)
{
    (void)state;
    struct made made;
    struct verdict verdict;
    for (int cause = 0; cause < CAUSE_COUNT; cause++) {
        made_healthy(&made);
        made_busy_workers(&made);
        made_wait(&made, 0, (enum cause)cause, 40);
        verdict_find(&verdict, &made.summary);
        for (size_t i = 0; i < verdict.against_count; i++)
            for (size_t j = 0; j < verdict.advice_count; j++)
                assert_string_not_equal(verdict.against[i].rule, verdict.advice[j].rule);
    }
}

static void names_cannot_move_the_cursor_of_a_terminal(void **state)
{
    (void)state;
    struct made made;
    struct verdict verdict;
    slow_transform(&made);
    made_function(&made, CAUSE_TRANSFORM, "\033[2Jblur\r", 50);
    char *text = words_of(&made, &verdict);
    assert_null(strchr(text, '\033'));
    assert_null(strchr(text, '\r'));
    memory_free(text);
}

static int make_text(void *user)
{
    struct verdict verdict;
    verdict_find(&verdict, user);
    char *text = verdict_text(&verdict, user);
    memory_free(text);
    return text != NULL;
}

static void no_memory_is_no_text(void **state)
{
    (void)state;
    struct made made;
    slow_transform(&made);
    made.loader.extension[0] = '\0'; /* snippets are left out when there is no memory for them */
    fail_each_allocation(make_text, &made.summary);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_line_is_the_answer),
        cmocka_unit_test(samples_that_stand_in_for_kernels_are_called_so),
        cmocka_unit_test(a_loop_that_was_not_seen_is_not_advised),
        cmocka_unit_test(lines_have_80_columns_at_most_but_for_code),
        cmocka_unit_test(the_bars_are_the_causes_in_their_order),
        cmocka_unit_test(each_cause_has_its_bound_and_its_words),
        cmocka_unit_test(what_is_not_known_is_said_before_what_is_little),
        cmocka_unit_test(a_loop_without_a_loader_is_not_said_to_have_batches_ready),
        cmocka_unit_test(a_gpu_that_is_busy_is_healthy),
        cmocka_unit_test(without_a_gpu_it_is_the_step_that_waits),
        cmocka_unit_test(an_unreliable_run_has_no_verdict_but_its_reasons),
        cmocka_unit_test(nothing_seen_is_said_so),
        cmocka_unit_test(how_sure_it_is_depends_on_what_was_seen),
        cmocka_unit_test(a_measured_bound_takes_the_place_of_an_estimate),
        cmocka_unit_test(ranks_have_a_row_each_and_the_slowest_is_named),
        cmocka_unit_test(what_is_advised_is_not_advised_against),
        cmocka_unit_test(names_cannot_move_the_cursor_of_a_terminal),
        cmocka_unit_test(no_memory_is_no_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
