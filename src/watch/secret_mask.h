/* secret_mask.h -- hides what a command line should not show: values of options named like key,
 * token, secret or password, and passwords in URLs.
 * Owns: nothing.   Threads: any.   Errors: none; what does not fit is cut.   Not here: values in
 * the script, which are never looked at. */
#ifndef WATCH_SECRET_MASK_H
#define WATCH_SECRET_MASK_H

#include <stddef.h>

#include "base/text.h"

/* One argument; `before` is the one in front of it, or NULL. Appends what may be shown. */
void secret_mask_add(struct text *text, const char *argument, const char *before);
/* A command line as one text, its words parted by blanks. */
void secret_mask_line(struct text *text, const char *line);

#endif
