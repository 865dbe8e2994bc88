#include <zstd.h>
#include <zstd_errors.h>

#include "base/fail.h"

#include "filter/filter_ops.h"

#define WINDOW_LOG_MAX                                                                             \
    27 /* 128 MiB: what a decoder may be made to hold by a few bytes of header                     \
        */

static void *zstd_open(void)
{
    ZSTD_DCtx *context = ZSTD_createDCtx();
    if (context &&
        ZSTD_isError(ZSTD_DCtx_setParameter(context, ZSTD_d_windowLogMax, WINDOW_LOG_MAX))) {
        ZSTD_freeDCtx(context);
        return NULL;
    }
    return context;
}

static void zstd_close(void *state)
{
    ZSTD_freeDCtx(state); /* NULL is fine */
}

static stk_status zstd_fail(size_t code, struct stk_error *err)
{
    switch (ZSTD_getErrorCode(code)) {
    case ZSTD_error_frameParameter_windowTooLarge:
        return fail(err, STK_LIMIT, "zstd: the frame asks for a window of more than 2^%d bytes",
                    WINDOW_LOG_MAX);
    case ZSTD_error_memory_allocation:
        return fail_memory(err, 0);
    default:
        return fail(err, STK_CORRUPT, "zstd: %s", ZSTD_getErrorName(code));
    }
}

static stk_status zstd_step(void *state, struct filter_run *run, int *unit_over,
                            struct stk_error *err)
{
    ZSTD_inBuffer in = {run->in, run->in_len, run->used};
    ZSTD_outBuffer out = {run->out, run->cap, run->made};
    size_t left = ZSTD_decompressStream(state, &out, &in);
    run->used = in.pos;
    run->made = out.pos;
    if (ZSTD_isError(left))
        return zstd_fail(left, err);
    *unit_over = left == 0;
    return STK_OK;
}

const struct filter_ops zstd_filter = {
    .open = zstd_open,
    .close = zstd_close,
    .step = zstd_step,
};
