/* connection_string.h -- finds a value in "Name=Value;Name=Value", as Azure's tools hand it around.
 * Owns: nothing; values point into the string.   Threads: any.   Errors: NULL.
 * Not here: what the names mean (azure_place.h, azure_credentials.h). */
#ifndef NET_CONNECTION_STRING_H
#define NET_CONNECTION_STRING_H

#include <stddef.h>

/* Names are compared without case, blanks around a name or a value are left out. NULL: it is not
 * there, or empty. */
const char *connection_string_find(const char *string, const char *name, size_t *length);

#endif
