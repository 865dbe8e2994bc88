#include "stoker/media.h"

const char *stk_media_name(enum stk_media media)
{
    static const char *const names[STK_MEDIA_COUNT] = {"tensor", "image", "audio", "video",
                                                       "points"};
    return (unsigned)media < STK_MEDIA_COUNT ? names[media] : "tensor";
}
