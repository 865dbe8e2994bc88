#include "base/fail.h"
#include "pack/sndfile_write.h"

stk_status sndfile_write_check(struct stk_error *err)
{
    stk_status status = fail(err, STK_UNSUPPORTED, "this build cannot write FLAC and Ogg");

    fail_remedy(err, "write WAV, or install libsndfile (Debian: libsndfile1-dev) and build again");
    return status;
}

stk_status sndfile_write(const struct sound *sound, enum sndfile_kind kind, struct text *to,
                         struct stk_error *err)
{
    (void)sound, (void)kind, (void)to;
    return sndfile_write_check(err);
}
