/* remote_glob.h -- patterns over keys.
 * Owns: nothing.   Threads: any.   Errors: none.   Not here: listing (remote_list.c). */
#ifndef STORE_REMOTE_GLOB_H
#define STORE_REMOTE_GLOB_H

#include <stddef.h>

/* Not 0: the pattern matches the key, or a folder that the key lies in (as a local glob that finds
 * a folder means all that is below it). *, ? and [] stop at slashes and do not match a dot that
 * begins a part; ** goes over slashes; "**" with a slash behind it matches no part at all, too; a
 * backslash takes what follows it for itself. Where the pattern found a folder, the parts below it
 * that begin with a dot are left out. */
int remote_glob_matches(const char *pattern, const char *key);
/* Length of what stands before the first of * ? [ and backslash. */
size_t remote_glob_literal(const char *pattern);
/* Not 0: one of the parts of a name, cut at slashes, begins with a dot. */
int remote_glob_hides(const char *name);

#endif
