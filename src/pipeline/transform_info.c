/* The table of transforms, as help, completion and bindings see it. */
#include "stoker/pipeline.h"

#include "base/context.h"
#include "transform/plugin_transform.h"

static const char *type_name(enum transform_type type)
{
    static const char *const names[] = {
        [ARG_INT] = "int",       [ARG_FLOAT] = "float", [ARG_BOOL] = "bool",
        [ARG_CHOICE] = "choice", [ARG_DTYPE] = "dtype", [ARG_FLOATS] = "floats",
        [ARG_TEXT] = "text",
    };
    return names[type];
}

static void fill_arguments(const struct transform_ops *ops, struct stk_transform_info *info)
{
    const struct transform_arg *arg = ops->args;
    for (; arg && arg->name && info->argument_count < STK_TRANSFORM_ARGUMENTS; arg++)
        info->arguments[info->argument_count++] = (struct stk_transform_argument){
            arg->name, type_name(arg->type), arg->preset, arg->choices};
}

int stk_transform_at(struct stk_context *context, uint32_t row, struct stk_transform_info *info)
{
    uint32_t own = 0;
    while (transform_at(own))
        own++;
    const struct transform_ops *ops = transform_at(row);
    if (!ops && context)
        ops = transform_registry_at(context->plugins, row - own);
    *info = (struct stk_transform_info){0};
    if (!ops)
        return 0;
    info->name = ops->name;
    info->help = ops->help;
    info->media = ops->media;
    info->of_batch = !ops->media;
    fill_arguments(ops, info);
    return 1;
}
