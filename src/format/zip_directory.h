/* zip_directory.h -- the members of a zip file, from its central directory, zip64 included.
 * Owns: the directory's bytes and the list, until zip_directory_free.   Threads: one at a time.
 * Errors: STK_CORRUPT, STK_TRUNCATED, STK_LIMIT, STK_UNSUPPORTED (encryption, other methods than
 * stored and deflated, several disks) with words that name object and offset.   Not here: arrays
 * (npz_format.c).
 *
 * Nothing is believed: every size and offset is checked against the file, the local headers must
 * repeat method and name, and two members of one name are an error. */
#ifndef FORMAT_ZIP_DIRECTORY_H
#define FORMAT_ZIP_DIRECTORY_H

#include "store/scan.h"

#define ZIP_MAX_MEMBERS 4096u
#define ZIP_MAX_DIRECTORY (16u * 1024u * 1024u)

struct zip_member {
    char *name;              /* ended by NUL */
    uint64_t offset, packed; /* its bytes in the file */
    uint64_t size;           /* as the directory says */
    uint32_t check;          /* filter_crc32 of its bytes, as the directory says */
    int is_deflated;
};

struct zip_directory {
    struct zip_member *members;
    uint32_t count;
};

STK_CHECK stk_status zip_directory_read(struct zip_directory *directory, struct scan *scan,
                                        struct stk_error *err);
void zip_directory_free(struct zip_directory *directory);

/* The first bytes of a member, decoded: *got of them, cap or as many as there are. */
STK_CHECK stk_status zip_member_head(const struct zip_member *member, struct scan *scan,
                                     uint8_t *to, size_t cap, size_t *got, struct stk_error *err);

#endif
