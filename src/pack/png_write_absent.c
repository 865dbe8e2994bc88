#include "base/fail.h"
#include "pack/png_write.h"

stk_status png_write_check(struct stk_error *err)
{
    stk_status status = fail(err, STK_UNSUPPORTED, "this build cannot write PNG");

    fail_remedy(err, "install libpng with its headers (libpng-dev) and build again");
    return status;
}

stk_status png_write(const struct png_picture *picture, int level, struct text *to,
                     struct stk_error *err)
{
    (void)picture, (void)level, (void)to;
    return png_write_check(err);
}
