#include "dataset/tokens_open.h"

#include <string.h>

#include "base/fail.h"
#include "base/memory.h"
#include "format/tokens_format.h"

int tokens_wanted(const struct stk_dataset_options *options)
{
    return options->format && !strcmp(options->format, TOKENS_FORMAT);
}

static stk_status check_options(const struct stk_dataset_options *options, struct stk_error *err)
{
    const struct stk_window_options *window = options->window;
    if (!window || window->window == STK_DEFAULT) {
        stk_status status = fail(err, STK_USAGE, "tokens are cut into windows, and none is given");
        fail_remedy(err, "say how many tokens a sample has: window=1024");
        return status;
    }
    if (window->horizon != STK_DEFAULT || window->gap != STK_DEFAULT ||
        window->min_history != STK_DEFAULT || window->pad || window->split || window->features ||
        window->labels || options->rank > 0) {
        stk_status status = fail(err, STK_USAGE,
                                 "tokens take dtype, window and stride, and nothing else of "
                                 "series or arrays");
        fail_remedy(err, "for a target that is the next token, take one token more: x = w[:-1], "
                         "y = w[1:]");
        return status;
    }
    if (!window->window || !window->stride)
        return fail(err, STK_USAGE, "window and stride are at least 1 token");
    return STK_OK;
}

static stk_status read_dtype(const char *text, enum stk_dtype *dtype, struct stk_error *err)
{
    *dtype = text ? stk_dtype_parse(text) : STK_DTYPE_COUNT;
    if (!text || *dtype != STK_DTYPE_COUNT)
        return STK_OK;
    fail(err, STK_USAGE, "there is no dtype \"%s\"", text);
    fail_remedy(err, "tokens are uint16 or uint32");
    return STK_USAGE;
}

stk_status tokens_open(struct dataset_source *source, const struct names *names,
                       const struct stk_dataset_options *options, struct stk_error *err)
{
    const struct list *list = &names->list;
    const char *root = list->root ? list->root : "";
    struct tokens_input input = {.root = root, .object_count = list->count};
    struct format_object *objects = NULL;
    stk_status status = check_options(options, err);
    if (!status)
        status = read_dtype(options->dtype, &input.dtype, err);
    if (status)
        return status;
    input.window = options->window->window;
    input.stride = options->window->stride == STK_DEFAULT ? input.window : options->window->stride;
    objects = memory_zero(list->count, sizeof *objects);
    source->root = memory_text(root, strlen(root));
    if (!objects || !source->root)
        status = fail_memory(err, list->count * sizeof *objects);
    for (uint64_t i = 0; !status && i < list->count; i++)
        objects[i] = (struct format_object){list->items[i].name, list->items[i].size,
                                            list->items[i].version};
    input.objects = objects;
    if (!status)
        status = tokens_index_new(&source->index, &input, err);
    memory_free(objects);
    return status;
}
