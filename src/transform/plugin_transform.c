#include "transform/plugin_transform.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "base/memory.h"

#define NAME_MOST 63
#define TRANSFORM_MOST 1024             /* of one plugin */
#define OUTPUT_MOST ((uint64_t)1 << 36) /* bytes of one result */

/* One transform of a plugin, with what its row points to. */
struct plugin_row {
    struct transform_ops ops;
    struct stk_plugin_transform transform;
    struct transform_arg args[STK_PLUGIN_ARGUMENTS + 1];
    char presets[STK_PLUGIN_ARGUMENTS][32];
    char title[2 * NAME_MOST + 16]; /* "NAME of plugin NAME": begins the words of its errors */
};

/* The arguments' struct of all of them. The chain puts ops.user first. */
struct plugin_args {
    const struct plugin_row *row;
    double values[STK_PLUGIN_ARGUMENTS];
};

struct plugin_params {
    uint64_t key;
};

/* Rows stay where they are when others are added: chains point to them. */
struct plugin_rows {
    struct plugin_rows *next;
    struct plugin_library library;
    uint32_t count;
    struct plugin_row rows[];
};

struct transform_registry {
    struct plugin_rows *first, **last;
};

/* --- calls ------------------------------------------------------------------------------------ */

static void plugin_draw(const void *args, uint64_t key, const struct stk_flow *in, void *params)
{
    struct plugin_params *own = params;
    (void)args, (void)in;
    own->key = key;
}

/* What a plugin's shape left must be a tensor: its calls after this one rely on it. */
static stk_status check_flow(const struct plugin_row *row, const struct stk_flow *flow,
                             int compiling, struct stk_error *err)
{
    const struct stk_tensor *tensor = &flow->tensor;
    int fits = (unsigned)flow->media < STK_MEDIA_COUNT &&
               (unsigned)tensor->dtype < STK_DTYPE_COUNT && tensor->rank >= 0 &&
               tensor->rank <= STK_MAX_RANK && !tensor->data;
    if (!fits)
        return fail(err, STK_SHAPE, "%s: shape leaves no tensor (media %d, dtype %d, rank %d)",
                    row->title, (int)flow->media, (int)tensor->dtype, (int)tensor->rank);
    struct stk_tensor known = *tensor;
    for (int32_t i = 0; i < tensor->rank; i++) {
        if (tensor->shape[i] < (compiling ? -1 : 0))
            return fail(err, STK_SHAPE, "%s: shape leaves axis %d with length %lld", row->title,
                        (int)i, (long long)tensor->shape[i]);
        known.shape[i] = tensor->shape[i] < 0 ? 1 : tensor->shape[i];
    }
    if (stk_tensor_size(&known) > OUTPUT_MOST)
        return fail(err, STK_LIMIT, "%s: shape asks for more than 64 GiB", row->title);
    return STK_OK;
}

static stk_status plugin_shape(const void *args, const void *params, struct stk_flow *flow,
                               struct stk_error *err)
{
    const struct plugin_args *own = args;
    char words[STK_PLUGIN_WORDS] = "";
    void *data = flow->tensor.data;
    flow->tensor.data = NULL;
    int result = own->row->transform.shape(own->values, flow, words);
    words[sizeof words - 1] = 0;
    stk_status status = plugin_status(own->row->title, result, words, err);
    if (!status)
        status = check_flow(own->row, flow, params == NULL, err);
    flow->tensor.data = data;
    return status;
}

/* Pixels: what the public header promises a transform of images that says no shape. */
static stk_status pixel_shape(const void *args, const void *params, struct stk_flow *flow,
                              struct stk_error *err)
{
    const struct plugin_args *own = args;
    (void)params;
    if (flow->tensor.dtype == STK_U8 && !flow->channels_first)
        return STK_OK;
    stk_status status = fail(err, STK_USAGE, "%s takes uint8 (H, W, C)", own->row->title);
    fail_remedy(err, "put it before Normalize, Cast and Layout");
    return status;
}

static stk_status plugin_run(const void *args, const void *params, const struct stk_flow *in,
                             struct stk_flow *out, struct scratch *scratch, struct stk_error *err)
{
    const struct plugin_args *own = args;
    const struct plugin_params *drawn = params;
    char words[STK_PLUGIN_WORDS] = "";
    struct stk_flow given = *in, made = *out; /* the plugin's to spoil */
    (void)scratch;
    int result = own->row->transform.run(own->values, drawn->key, &given, &made, words);
    words[sizeof words - 1] = 0;
    return plugin_status(own->row->title, result, words, err);
}

/* --- making a row ----------------------------------------------------------------------------- */

/* Letters, digits and, where allowed, _; a letter first. */
static int is_name(const char *name, int underscore)
{
    if (!name || !isalpha((unsigned char)name[0]))
        return 0;
    size_t len = 0;
    while (isalnum((unsigned char)name[len]) || (underscore && name[len] == '_'))
        len++;
    return !name[len] && len <= NAME_MOST;
}

static stk_status check_argument(const struct stk_plugin_transform *transform, uint32_t i,
                                 struct stk_error *err)
{
    const struct stk_plugin_argument *argument = &transform->arguments[i];
    if (!is_name(argument->name, 1))
        return fail(err, STK_USAGE, "argument %u of %s has no name of letters, digits and _", i,
                    transform->name);
    for (uint32_t k = 0; k < i; k++)
        if (!strcmp(transform->arguments[k].name, argument->name))
            return fail(err, STK_USAGE, "%s has two arguments %s", transform->name, argument->name);
    int free_range = argument->least == 0 && argument->most == 0;
    int inside = argument->preset >= argument->least && argument->preset <= argument->most;
    if (!isfinite(argument->preset) || !(free_range || inside))
        return fail(err, STK_USAGE, "argument %s of %s: its default %g is not within [%g, %g]",
                    argument->name, transform->name, argument->preset, argument->least,
                    argument->most);
    return STK_OK;
}

static stk_status check_transform(const struct transform_registry *registry,
                                  const struct plugin_rows *rows,
                                  const struct stk_plugin_transform *transform,
                                  struct stk_error *err)
{
    if (!is_name(transform->name, 0))
        return fail(err, STK_USAGE, "transform %u has no name of letters and digits", rows->count);
    int taken = transform_find(transform->name) != NULL ||
                transform_registry_find(registry, transform->name) != NULL;
    for (uint32_t i = 0; i < rows->count; i++)
        taken |= !strcmp(rows->rows[i].ops.name, transform->name);
    if (taken)
        return fail(err, STK_USAGE, "there is a transform %s already", transform->name);
    if (!transform->run)
        return fail(err, STK_USAGE, "%s has no run", transform->name);
    if (!(transform->media & STK_MEDIA_ANY))
        return fail(err, STK_USAGE, "%s takes no media", transform->name);
    if (transform->argument_count > STK_PLUGIN_ARGUMENTS ||
        (transform->argument_count && !transform->arguments))
        return fail(err, STK_USAGE, "%s has %u arguments; %d is the most", transform->name,
                    transform->argument_count, STK_PLUGIN_ARGUMENTS);
    stk_status status = STK_OK;
    for (uint32_t i = 0; i < transform->argument_count && !status; i++)
        status = check_argument(transform, i, err);
    return status;
}

static void make_row(struct plugin_row *row, const struct stk_plugin_transform *transform,
                     const char *plugin)
{
    uint32_t pixels = STK_MEDIA_BIT(STK_MEDIA_IMAGE) | STK_MEDIA_BIT(STK_MEDIA_VIDEO);
    int of_pixels = !transform->shape && !(transform->media & ~pixels);
    row->transform = *transform;
    snprintf(row->title, sizeof row->title, "%s of plugin %.*s", transform->name, NAME_MOST,
             plugin);
    for (uint32_t i = 0; i < transform->argument_count; i++) {
        const struct stk_plugin_argument *argument = &transform->arguments[i];
        snprintf(row->presets[i], sizeof row->presets[i], "%.17g", argument->preset);
        row->args[i] = (struct transform_arg){
            .name = argument->name,
            .type = ARG_FLOAT,
            .offset = (uint32_t)(offsetof(struct plugin_args, values) + i * sizeof(double)),
            .preset = row->presets[i],
            .least = argument->least,
            .most = argument->most,
        };
    }
    row->ops = (struct transform_ops){
        .name = transform->name,
        .help = transform->help ? transform->help : "",
        .media = transform->media & STK_MEDIA_ANY,
        .stage = of_pixels ? TRANSFORM_PIXELS : TRANSFORM_TENSOR,
        .args = row->args,
        .size = sizeof(struct plugin_args),
        .shape = of_pixels          ? pixel_shape
                 : transform->shape ? plugin_shape
                                    : NULL,
        .draw = plugin_draw,
        .run = plugin_run,
        .user = row,
    };
}

/* --- the registry ----------------------------------------------------------------------------- */

stk_status transform_registry_new(struct transform_registry **out, struct stk_error *err)
{
    *out = memory_zero(1, sizeof **out);
    if (!*out)
        return fail_memory(err, sizeof **out);
    (*out)->last = &(*out)->first;
    return STK_OK;
}

void transform_registry_free(struct transform_registry *registry)
{
    if (!registry)
        return;
    while (registry->first) {
        struct plugin_rows *rows = registry->first;
        registry->first = rows->next;
        plugin_close(&rows->library);
        memory_free(rows);
    }
    memory_free(registry);
}

/* Transforms may be longer than we know (a newer plugin), or shorter (an older one). */
static stk_status make_rows(const struct transform_registry *registry, struct plugin_rows *rows,
                            const struct stk_plugin *plugin, struct stk_error *err)
{
    const uint8_t *at = (const uint8_t *)plugin->transforms;
    size_t step = plugin->transform_size;
    for (uint32_t i = 0; i < plugin->transform_count; i++, at += step) {
        struct stk_plugin_transform transform = {0};
        memcpy(&transform, at, step < sizeof transform ? step : sizeof transform);
        stk_status status = check_transform(registry, rows, &transform, err);
        if (status)
            return status;
        make_row(&rows->rows[rows->count++], &transform, plugin->name);
    }
    return STK_OK;
}

/* Up to and with run: what version 1 began with. */
#define TRANSFORM_LEAST                                                                            \
    (offsetof(struct stk_plugin_transform, run) + sizeof(((struct stk_plugin_transform *)0)->run))

static stk_status check_table(const struct stk_plugin *plugin, struct stk_error *err)
{
    if (plugin->transform_count > TRANSFORM_MOST)
        return fail(err, STK_LIMIT, "plugin %s says that it has %u transforms", plugin->name,
                    plugin->transform_count);
    if (plugin->transform_count &&
        (!plugin->transforms || plugin->transform_size < TRANSFORM_LEAST ||
         plugin->transform_size % _Alignof(struct stk_plugin_transform)))
        return fail(err, STK_USAGE,
                    "plugin %s: transform_size is %u, not sizeof(struct stk_plugin_transform)",
                    plugin->name, plugin->transform_size);
    return STK_OK;
}

stk_status transform_registry_add(struct transform_registry *registry,
                                  struct plugin_library *library, struct stk_error *err)
{
    const struct stk_plugin *plugin = &library->plugin;
    stk_status status = check_table(plugin, err);
    if (status)
        return status;
    size_t size = sizeof(struct plugin_rows) + plugin->transform_count * sizeof(struct plugin_row);
    struct plugin_rows *rows = memory_zero(1, size);
    if (!rows)
        return fail_memory(err, size);
    status = make_rows(registry, rows, plugin, err);
    if (status)
        goto done;
    rows->library = *library;
    *library = (struct plugin_library){0};
    *registry->last = rows;
    registry->last = &rows->next;
    rows = NULL; /* the registry's now */
done:
    memory_free(rows);
    return status;
}

const struct transform_ops *transform_registry_at(const struct transform_registry *registry,
                                                  uint32_t row)
{
    const struct plugin_rows *rows = registry ? registry->first : NULL;
    for (; rows; rows = rows->next) {
        if (row < rows->count)
            return &rows->rows[row].ops;
        row -= rows->count;
    }
    return NULL;
}

const struct transform_ops *transform_registry_find(const struct transform_registry *registry,
                                                    const char *name)
{
    const struct plugin_rows *rows = registry ? registry->first : NULL;
    for (; rows; rows = rows->next)
        for (uint32_t i = 0; i < rows->count; i++)
            if (!strcmp(rows->rows[i].ops.name, name))
                return &rows->rows[i].ops;
    return NULL;
}
