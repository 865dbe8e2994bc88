#include "base/context.h"

#include "base/fail.h"
#include "base/memory.h"
#include "codec/video_codec.h"
#include "transform/plugin_transform.h"

stk_status stk_context_new(struct stk_context **out, const struct stk_hooks *hooks,
                           struct stk_error *err)
{
    *out = memory_zero(1, sizeof **out);
    if (!*out)
        return fail_memory(err, sizeof **out);
    if (hooks)
        (*out)->hooks = *hooks;
    return STK_OK;
}

void stk_context_free(struct stk_context *context)
{
    if (context)
        transform_registry_free(context->plugins);
    memory_free(context);
}

/* The video decoder of a plugin holds the library a second time: it outlives the context. */
stk_status stk_context_load_plugin(struct stk_context *context, const char *path,
                                   struct stk_error *err)
{
    struct plugin_library library = {0};
    stk_status status = STK_OK;
    if (!context)
        return fail(err, STK_USAGE, "a plugin is loaded into a context");
    if (!context->plugins)
        status = transform_registry_new(&context->plugins, err);
    if (!status)
        status = plugin_open(&library, path, err);
    int decodes = !status && library.plugin.video != NULL;
    if (decodes)
        status = video_codec_use(path, err);
    if (!status) {
        status = transform_registry_add(context->plugins, &library, err);
        if (status)
            fail_at(err, path, STK_NOWHERE);
    }
    plugin_close(&library);
    return status;
}
