#include "base/fail.h"
#include "store/store_parts.h"

stk_status uring_queue_open(struct store *store, uint32_t depth, struct store_queue **out,
                            struct stk_error *err)
{
    (void)store, (void)depth;
    *out = NULL;
    fail(err, STK_UNSUPPORTED, "io_uring is not in this build");
    fail_remedy(err, "install liburing with its headers (liburing-dev) and build again");
    return STK_UNSUPPORTED;
}
