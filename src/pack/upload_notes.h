/* upload_notes.h -- what a run that writes shards to a site has noted beside them, so that another
 * one can go on where it was broken off: OUT/.stoker/PREFIX.pack.json.
 * Owns: its notes.   Threads: one at a time.   Errors: status; notes that cannot be read are none.
 * Not here: uploading (pack_upload.h). */
#ifndef PACK_UPLOAD_NOTES_H
#define PACK_UPLOAD_NOTES_H

#include <stdint.h>

#include "store/upload_place.h"

struct upload_note {
    char *name;
    uint64_t size, version; /* of the object at the site */
    uint8_t hash[16];       /* of its bytes */
};

/* All zero at first. Sorted by name. */
struct upload_notes {
    uint8_t source[16]; /* of the data set and the options that say what is in a shard */
    int is_there, is_complete;
    struct upload_note *notes;
    uint64_t count, cap;
};

STK_CHECK stk_status upload_notes_read(struct upload_notes *notes, struct upload_place *place,
                                       const char *prefix, struct stk_error *err);
STK_CHECK stk_status upload_notes_write(const struct upload_notes *notes,
                                        struct upload_place *place, const char *prefix,
                                        enum upload_put how, struct stk_error *err);
void upload_notes_remove(struct upload_place *place, const char *prefix); /* if it can be done */
/* The text that is written. */
void upload_notes_text(const struct upload_notes *notes, struct text *to);
/* The name is copied; one that is noted already is replaced. */
STK_CHECK stk_status upload_notes_add(struct upload_notes *notes, const struct upload_note *note,
                                      struct stk_error *err);
const struct upload_note *upload_notes_find(const struct upload_notes *notes, const char *name);
void upload_notes_reset(struct upload_notes *notes);

#endif
