#include "base/context.h"

#include "base/fail.h"
#include "base/memory.h"

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
    memory_free(context);
}
