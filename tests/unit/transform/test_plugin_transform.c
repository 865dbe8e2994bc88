#include "base/testing.h"

#include "stoker/context.h"
#include "base/context.h"
#include "base/fail.h"
#include "transform/chain.h"
#include "transform/plugin_transform.h"

#define IMAGE STK_MEDIA_BIT(STK_MEDIA_IMAGE)
#define TENSOR STK_MEDIA_BIT(STK_MEDIA_TENSOR)

/* --- a plugin that is linked in --------------------------------------------------------------- */

static int double_shape(const double *arguments, struct stk_flow *flow, char *words)
{
    if (arguments[0] == 13) {
        snprintf(words, STK_PLUGIN_WORDS, "13 is refused");
        return STK_UNSUPPORTED;
    }
    if (flow->tensor.shape[0] >= 0)
        flow->tensor.shape[0] *= (int64_t)arguments[0];
    if (arguments[0] == 14)
        flow->tensor.rank = 99;
    if (arguments[0] == 15)
        flow->tensor.shape[0] = -7;
    return 0;
}

static int double_run(const double *arguments, uint64_t key, const struct stk_flow *in,
                      struct stk_flow *out, char *words)
{
    const uint8_t *from = in->tensor.data;
    uint8_t *to = out->tensor.data;
    if (arguments[1] != 0) {
        memset(words, 'w', STK_PLUGIN_WORDS); /* and no NUL */
        return (int)arguments[1];
    }
    for (int64_t i = 0; i < out->tensor.shape[0]; i++)
        to[i] = (uint8_t)(from[i % in->tensor.shape[0]] + (stk_plugin_random(key, 0) < 0.5));
    return 0;
}

static const struct stk_plugin_argument arguments[] = {
    {.name = "times", .preset = 2, .least = 1, .most = 1e9},
    {.name = "result", .preset = 0},
};
static const struct stk_plugin_transform good[] = {
    {.name = "Double",
     .media = TENSOR,
     .arguments = arguments,
     .argument_count = 2,
     .shape = double_shape,
     .run = double_run},
};

static struct plugin_library library_of(const struct stk_plugin_transform *transforms,
                                        uint32_t count)
{
    return (struct plugin_library){.plugin = {.version = STK_PLUGIN_VERSION,
                                              .size = sizeof(struct stk_plugin),
                                              .name = "inner",
                                              .transforms = transforms,
                                              .transform_count = count,
                                              .transform_size = sizeof *transforms}};
}

static struct transform_registry *registry_of(const struct stk_plugin_transform *transforms,
                                              uint32_t count)
{
    struct transform_registry *registry;
    struct plugin_library library = library_of(transforms, count);
    assert_int_equal(transform_registry_new(&registry, NULL), STK_OK);
    assert_int_equal(transform_registry_add(registry, &library, NULL), STK_OK);
    return registry;
}

static struct stk_flow flow_of(uint8_t *data, int64_t count)
{
    struct stk_flow flow = {.media = STK_MEDIA_TENSOR, .real = -1};
    flow.tensor = (struct stk_tensor){.data = data, .dtype = STK_U8, .rank = 1, .shape = {count}};
    return flow;
}

static void a_plugins_transform_is_found_and_run(void **state)
{
    (void)state;
    struct transform_registry *registry = registry_of(good, 1);
    struct chain chain;
    char text[64];
    assert_int_equal(chain_parse(&chain, "Double(3)", registry, NULL), STK_OK);
    chain_text(&chain, text, sizeof text);
    assert_string_equal(text, "Double(3)");
    const struct chain_step *step = &chain.steps[0];
    assert_ptr_equal(step->ops, transform_registry_find(registry, "Double"));
    assert_ptr_equal(step->ops, transform_registry_at(registry, 0));
    assert_null(transform_registry_at(registry, 1));
    uint8_t from[2] = {10, 20}, to[6] = {0};
    struct stk_flow in = flow_of(from, 2), out = flow_of(NULL, 2);
    assert_int_equal(step->ops->shape(step->args, NULL, &out, NULL), STK_OK);
    assert_int_equal(out.tensor.shape[0], 6);
    out.tensor.data = to;
    int seen[2] = {0};
    for (uint64_t key = 0; key < 64; key++) { /* the key reaches run: some add 1, some do not */
        _Alignas(16) uint8_t params[TRANSFORM_PARAMS] = {0};
        step->ops->draw(step->args, key, &in, params);
        assert_int_equal(step->ops->run(step->args, params, &in, &out, NULL, NULL), STK_OK);
        int more = stk_plugin_random(key, 0) < 0.5;
        assert_int_equal(to[0], 10 + more);
        assert_int_equal(to[5], 20 + more);
        seen[more]++;
    }
    assert_true(seen[0] > 10 && seen[1] > 10);
    chain_reset(&chain);
    transform_registry_free(registry);
}

static void shape_refused(const struct transform_registry *registry, const char *text,
                          stk_status status, const char *words)
{
    struct chain chain;
    struct stk_error err;
    struct stk_flow flow = flow_of(NULL, 2);
    assert_int_equal(chain_parse(&chain, text, registry, NULL), STK_OK);
    const struct chain_step *step = &chain.steps[0];
    assert_int_equal(step->ops->shape(step->args, NULL, &flow, &err), status);
    assert_non_null(strstr(err.what, "Double of plugin inner"));
    assert_non_null(strstr(err.what, words));
    chain_reset(&chain);
}

static void a_wrong_shape_is_an_error_that_names_the_plugin(void **state)
{
    (void)state;
    struct transform_registry *registry = registry_of(good, 1);
    shape_refused(registry, "Double(13)", STK_UNSUPPORTED, "13 is refused");
    shape_refused(registry, "Double(14)", STK_SHAPE, "no tensor");
    shape_refused(registry, "Double(15)", STK_SHAPE, "length -7");
    struct chain chain; /* 2^40 elements times 10^9: does not fit 64 bits of bytes sensibly */
    struct stk_flow flow = flow_of(NULL, (int64_t)1 << 30);
    assert_int_equal(chain_parse(&chain, "Double(1e9)", registry, NULL), STK_OK);
    assert_int_equal(chain.steps[0].ops->shape(chain.steps[0].args, NULL, &flow, NULL), STK_LIMIT);
    chain_reset(&chain);
    transform_registry_free(registry);
}

static void a_run_that_fails_says_which_and_why(void **state)
{
    (void)state;
    struct transform_registry *registry = registry_of(good, 1);
    struct chain chain;
    struct stk_error err;
    _Alignas(16) uint8_t params[TRANSFORM_PARAMS] = {0};
    uint8_t data[2] = {0};
    struct stk_flow flow = flow_of(data, 2), out = flow;
    assert_int_equal(chain_parse(&chain, "Double(result=6) | Double(1, -1)", registry, NULL),
                     STK_OK);
    const struct chain_step *step = &chain.steps[0];
    assert_int_equal(step->ops->run(step->args, params, &flow, &out, NULL, &err), STK_CORRUPT);
    assert_non_null(strstr(err.what, "Double of plugin inner: www"));
    step++;
    assert_int_equal(step->ops->run(step->args, params, &flow, &out, NULL, &err), STK_USAGE);
    chain_reset(&chain);
    transform_registry_free(registry);
}

static void arguments_are_checked_by_their_table(void **state)
{
    (void)state;
    struct transform_registry *registry = registry_of(good, 1);
    struct chain chain;
    assert_int_equal(chain_parse(&chain, "Double(0)", registry, NULL), STK_USAGE);
    assert_int_equal(chain_parse(&chain, "Double(1, 2, 3)", registry, NULL), STK_USAGE);
    assert_int_equal(chain_parse(&chain, "Double(word)", registry, NULL), STK_USAGE);
    assert_int_equal(chain_parse(&chain, "Double(other=1)", registry, NULL), STK_USAGE);
    assert_int_equal(chain_parse(&chain, "Double", NULL, NULL), STK_USAGE); /* not loaded */
    transform_registry_free(registry);
}

/* --- tables with a fault ---------------------------------------------------------------------- */

static void table_refused(const struct stk_plugin_transform *transforms, uint32_t count,
                          const char *words)
{
    struct transform_registry *registry = registry_of(good, 1);
    struct plugin_library library = library_of(transforms, count);
    struct stk_error err;
    assert_int_not_equal(transform_registry_add(registry, &library, &err), STK_OK);
    assert_non_null(strstr(err.what, words));
    assert_null(transform_registry_at(registry, 1)); /* nothing of it is kept */
    transform_registry_free(registry);
}

static void tables_with_a_fault_are_refused(void **state)
{
    (void)state;
    struct stk_plugin_transform bad = good[0];
    table_refused(&bad, 1, "a transform Double already");
    bad.name = NULL;
    table_refused(&bad, 1, "no name");
    bad.name = "Two words";
    table_refused(&bad, 1, "no name");
    bad.name = "DecodeVideo";
    table_refused(&bad, 1, "a transform DecodeVideo already");
    bad.name = "Fine";
    struct stk_plugin_transform twice[2] = {bad, bad};
    table_refused(twice, 2, "a transform Fine already");
    bad.run = NULL;
    table_refused(&bad, 1, "no run");
    bad.run = double_run;
    bad.media = 0;
    table_refused(&bad, 1, "no media");
    bad.media = TENSOR;
    bad.argument_count = STK_PLUGIN_ARGUMENTS + 1;
    table_refused(&bad, 1, "9 arguments");
    bad.argument_count = 2;
    struct stk_plugin_argument same[2] = {arguments[0], arguments[0]};
    bad.arguments = same;
    table_refused(&bad, 1, "two arguments times");
    same[1] = (struct stk_plugin_argument){.name = "x", .preset = 5, .least = 0, .most = 1};
    table_refused(&bad, 1, "default 5");
    same[1].name = "x y";
    table_refused(&bad, 1, "argument 1 of Fine");
    table_refused(&bad, 100000, "100000 transforms");
    struct transform_registry *registry = registry_of(good, 1);
    struct plugin_library library = library_of(good, 1);
    library.plugin.transform_size = 3;
    assert_int_equal(transform_registry_add(registry, &library, NULL), STK_USAGE);
    transform_registry_free(registry);
}

static int plugin_pixels(const double *own, uint64_t key, const struct stk_flow *in,
                         struct stk_flow *out, char *words)
{
    (void)own, (void)key, (void)in, (void)out, (void)words;
    return 0;
}

static void images_without_a_shape_are_a_step_on_pixels(void **state)
{
    (void)state;
    struct stk_plugin_transform pixels = {.name = "Pixels", .media = IMAGE, .run = plugin_pixels};
    struct transform_registry *registry = registry_of(&pixels, 1);
    struct chain chain;
    struct stk_flow flow = {.media = STK_MEDIA_IMAGE};
    flow.tensor = (struct stk_tensor){.dtype = STK_U8, .rank = 3, .shape = {-1, -1, 3}};
    assert_int_equal(chain_parse(&chain, "Pixels", registry, NULL), STK_OK);
    const struct chain_step *step = &chain.steps[0];
    assert_int_equal(step->ops->stage, TRANSFORM_PIXELS);
    assert_int_equal(step->ops->shape(step->args, NULL, &flow, NULL), STK_OK);
    flow.tensor.dtype = STK_F32;
    assert_int_equal(step->ops->shape(step->args, NULL, &flow, NULL), STK_USAGE);
    chain_reset(&chain);
    transform_registry_free(registry);
}

/* --- from a file ------------------------------------------------------------------------------ */

static const char *example(void)
{
    static char path[PATH_MAX];
    ssize_t len = readlink("/proc/self/exe", path, sizeof path - 32);
    assert_true(len > 0);
    path[len] = 0;
    strcpy(strrchr(path, '/'), "/../plugins/solarize.so");
    return path;
}

static void the_example_works(void **state)
{
    (void)state;
    struct stk_context *context;
    struct stk_error err;
    struct chain chain;
    uint8_t from[4] = {0, 127, 128, 255}, to[4];
    struct stk_flow in = flow_of(from, 4), out = flow_of(to, 4);
    _Alignas(16) uint8_t params[TRANSFORM_PARAMS] = {0};
    assert_int_equal(stk_context_new(&context, NULL, NULL), STK_OK);
    assert_int_equal(stk_context_load_plugin(context, example(), &err), STK_OK);
    assert_int_equal(chain_parse(&chain, "Solarize | Energy", context->plugins, NULL), STK_OK);
    assert_int_equal(chain.steps[0].ops->run(chain.steps[0].args, params, &in, &out, NULL, NULL),
                     STK_OK);
    assert_memory_equal(to, ((uint8_t[]){0, 127, 127, 0}), 4);
    chain_reset(&chain);
    assert_int_equal(stk_context_load_plugin(context, example(), &err), STK_USAGE); /* again */
    assert_non_null(strstr(err.what, "already"));
    assert_string_equal(err.object, example());
    assert_int_equal(stk_context_load_plugin(context, "/nowhere.so", &err), STK_NOT_FOUND);
    assert_int_equal(stk_context_load_plugin(NULL, example(), &err), STK_USAGE);
    stk_context_free(context);
    stk_context_free(NULL);
}

static int load_example(void *user)
{
    struct stk_context *context = NULL;
    struct stk_error err;
    (void)user;
    stk_status status = stk_context_new(&context, NULL, &err);
    if (!status)
        status = stk_context_load_plugin(context, example(), &err);
    stk_context_free(context);
    assert_true(status == STK_OK || status == STK_MEMORY);
    return status == STK_OK;
}

static void every_failed_allocation_is_survived(void **state)
{
    (void)state;
    fail_each_allocation(load_example, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_plugins_transform_is_found_and_run),
        cmocka_unit_test(a_wrong_shape_is_an_error_that_names_the_plugin),
        cmocka_unit_test(a_run_that_fails_says_which_and_why),
        cmocka_unit_test(arguments_are_checked_by_their_table),
        cmocka_unit_test(tables_with_a_fault_are_refused),
        cmocka_unit_test(images_without_a_shape_are_a_step_on_pixels),
        cmocka_unit_test(the_example_works),
        cmocka_unit_test(every_failed_allocation_is_survived),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
