#include <stddef.h>

#include "base/fail.h"
#include "pack/jpeg_write.h"

static stk_status fail_absent(struct stk_error *err)
{
    stk_status status = fail(err, STK_UNSUPPORTED, "this build cannot write JPEG");

    fail_remedy(err, "install libjpeg-turbo with its headers (libjpeg-dev) and build again");
    return status;
}

stk_status jpeg_writer_new(struct jpeg_writer **out, struct stk_error *err)
{
    *out = NULL;
    return fail_absent(err);
}

void jpeg_writer_free(struct jpeg_writer *writer)
{
    (void)writer;
}

stk_status jpeg_writer_add(struct jpeg_writer *writer, const struct jpeg_image *image,
                           const struct jpeg_write_options *options, struct text *to,
                           struct stk_error *err)
{
    (void)writer, (void)image, (void)options, (void)to;
    return fail_absent(err);
}
