/* Reports: who can draw stands behind a hook. */
#include "stoker/report.h"

#include "base/context.h"
#include "base/fail.h"

static stk_status report_call(struct stk_context *context, const char *const *runs,
                              uint32_t run_count, const char *out, struct stk_error *err)
{
    const struct stk_hooks *hooks = context ? &context->hooks : NULL;
    if (hooks && hooks->make_report)
        return hooks->make_report(hooks->user, runs, run_count, out, err);
    fail(err, STK_UNSUPPORTED, "this command draws no reports: the Python package does");
    fail_at(err, out, STK_NOWHERE);
    fail_remedy(err, "pip install 'stoker[report]', then run its stoker command or python -m "
                     "stoker; the run file that --json writes keeps everything until then");
    return STK_UNSUPPORTED;
}

stk_status stk_report_ready(struct stk_context *context, const char *out, struct stk_error *err)
{
    return report_call(context, NULL, 0, out, err);
}

stk_status stk_report_make(struct stk_context *context, const char *const *runs, uint32_t run_count,
                           const char *out, struct stk_error *err)
{
    if (run_count == 0)
        return fail(err, STK_USAGE, "there is no run to draw");
    return report_call(context, runs, run_count, out, err);
}
