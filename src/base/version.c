#include "stoker/version.h"

#define TEXT(number) #number
#define JOIN(major, minor, patch) TEXT(major) "." TEXT(minor) "." TEXT(patch)

const char *stk_version(void)
{
    return JOIN(STK_VERSION_MAJOR, STK_VERSION_MINOR, STK_VERSION_PATCH);
}
