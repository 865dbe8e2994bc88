#include "stoker/status.h"

static const char *const names[] = {
#define X(name, words) #name,
    STK_STATUS_LIST(X)
#undef X
};

static const char *const meanings[] = {
#define X(name, words) words,
    STK_STATUS_LIST(X)
#undef X
};

const char *stk_status_name(stk_status status)
{
    return (unsigned)status < STK_STATUS_COUNT ? names[status] : "UNKNOWN";
}

const char *stk_status_words(stk_status status)
{
    return (unsigned)status < STK_STATUS_COUNT ? meanings[status] : "an unknown status";
}
