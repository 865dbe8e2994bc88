/* version.h -- which Stoker this is.
 * Owns: nothing.   Threads: any.   Errors: none.   Not here: versions of files and states. */
#ifndef STOKER_VERSION_H
#define STOKER_VERSION_H

#include "stoker/export.h"

#define STK_VERSION_MAJOR 0
#define STK_VERSION_MINOR 1
#define STK_VERSION_PATCH 0

/* "0.1.0" */
STK_API const char *stk_version(void);

#endif
