/* upload_place.h -- a folder of a site that is written to: what is there, small objects, removal.
 * Owns: the site, until upload_place_close.   Threads: any; lists are the caller's.   Errors:
 * status; words name the object.   Not here: large objects (upload.h), reading data (remote.h). */
#ifndef STORE_UPLOAD_PLACE_H
#define STORE_UPLOAD_PLACE_H

#include <stddef.h>
#include <stdint.h>

#include "stoker/error.h"

#include "base/text.h"

struct upload_place;

/* Not 0: a URI of a site, so that it cannot be a folder of this machine. */
int upload_place_is(const char *uri);
/* STK_UNSUPPORTED: that kind of site cannot be written to. */
STK_CHECK stk_status upload_place_open(struct upload_place **out, const char *uri,
                                       struct stk_error *err);
void upload_place_close(struct upload_place *place); /* NULL is fine */
/* Adds the URI of an object in it; name "" : of the folder, without a slash at its end. */
void upload_place_uri(const struct upload_place *place, const char *name, struct text *to);

/* Not 0: a URI lies in the folder that another one names, however the two are written: az:// and
 * abfss:// may be one place. */
int upload_place_holds(const char *folder, const char *uri);

struct upload_entry {
    const char *name; /* in the folder; it may have slashes */
    uint64_t size, version;
};
/* What begins with a prefix, asked for anew, sorted bytewise. All zero at first. */
struct upload_list {
    struct upload_entry *entries;
    uint64_t count;
    void *inside;
};
STK_CHECK stk_status upload_place_list(struct upload_place *place, const char *prefix,
                                       struct upload_list *out, struct stk_error *err);
void upload_list_reset(struct upload_list *list);
const struct upload_entry *upload_list_find(const struct upload_list *list, const char *name);

/* STK_NOT_FOUND: it is not there. */
STK_CHECK stk_status upload_place_stat(struct upload_place *place, const char *name,
                                       struct upload_entry *out, struct stk_error *err);
STK_CHECK stk_status upload_place_get(struct upload_place *place, const char *name, uint64_t most,
                                      struct text *out, struct stk_error *err);
/* A small object from memory. */
enum upload_put {
    UPLOAD_REPLACE,
    UPLOAD_ONLY_NEW /* STK_MISMATCH where it is there already; a site that knows no such thing
                       replaces it */
};
STK_CHECK stk_status upload_place_put(struct upload_place *place, const char *name,
                                      const struct text *text, enum upload_put how,
                                      struct stk_error *err);
/* Forgets the parts of uploads that were broken off, of objects whose names begin with a prefix and
 * are wanted: nobody sees them, and they are paid for. What cannot be listed or forgotten stays. */
void upload_place_tidy(struct upload_place *place, const char *prefix,
                       int (*is_wanted)(const void *user, const char *name), const void *user);
/* One that is not there is STK_OK. */
STK_CHECK stk_status upload_place_remove(struct upload_place *place, const char *name,
                                         struct stk_error *err);

#endif
