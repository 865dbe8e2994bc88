#include "format/zip_directory.h"

#include <string.h>

#include "base/checked.h"
#include "base/fail.h"
#include "base/memory.h"
#include "filter/filter.h"

/* Lengths and signatures from APPNOTE.TXT 6.3, sections 4.3.7 to 4.3.16. */
enum {
    LOCAL_LEN = 30,
    ENTRY_LEN = 46,
    END_LEN = 22,
    LOCATOR_LEN = 20,
    END64_LEN = 56,
    COMMENT_MAX = 65535,
    EXTRA_ZIP64 = 1,
    FLAG_ENCRYPTED = 1,
    METHOD_STORED = 0,
    METHOD_DEFLATED = 8
};
#define LOCAL_SIGNATURE 0x04034b50u
#define ENTRY_SIGNATURE 0x02014b50u
#define END_SIGNATURE 0x06054b50u
#define LOCATOR_SIGNATURE 0x07064b50u
#define END64_SIGNATURE 0x06064b50u

static uint64_t number_at(const uint8_t *at, int bytes)
{
    uint64_t value = 0;
    for (int i = bytes; i-- > 0;)
        value = value << 8 | at[i];
    return value;
}

static stk_status zip_bad(struct scan *scan, uint64_t offset, const char *what,
                          struct stk_error *err)
{
    fail(err, STK_CORRUPT, "%s", what);
    fail_at(err, scan_name(scan), offset);
    return STK_CORRUPT;
}

/* Where the directory lies, and how many members it claims. */
struct zip_end {
    uint64_t offset, size, members;
    uint64_t limit; /* the directory must end before this */
};

static stk_status zip_end64(struct scan *scan, struct zip_end *end, struct stk_error *err)
{
    uint8_t buf[END64_LEN];
    uint64_t at = end->limit;
    if (at < LOCATOR_LEN + END64_LEN)
        return zip_bad(scan, at, "a zip64 file lacks its directory's end", err);
    stk_status status = scan_read_all(scan, at - LOCATOR_LEN, buf, LOCATOR_LEN, err);
    if (status)
        return status;
    uint64_t where = number_at(buf + 8, 8);
    if (number_at(buf, 4) != LOCATOR_SIGNATURE || number_at(buf + 4, 4) != 0 ||
        !checked_inside(where, END64_LEN, at - LOCATOR_LEN))
        return zip_bad(scan, at - LOCATOR_LEN, "a zip64 locator makes no sense", err);
    status = scan_read_all(scan, where, buf, END64_LEN, err);
    if (status)
        return status;
    if (number_at(buf, 4) != END64_SIGNATURE || number_at(buf + 16, 8) != 0 ||
        number_at(buf + 24, 8) != number_at(buf + 32, 8))
        return zip_bad(scan, where, "the end of a zip64 directory makes no sense", err);
    *end = (struct zip_end){.members = number_at(buf + 32, 8),
                            .size = number_at(buf + 40, 8),
                            .offset = number_at(buf + 48, 8),
                            .limit = where};
    return STK_OK;
}

/* The end record is the last thing in the file but for a comment, whose length it tells. */
static stk_status zip_find_end(struct scan *scan, struct zip_end *end, struct stk_error *err)
{
    uint64_t size = scan_size(scan);
    size_t len = size < END_LEN + COMMENT_MAX ? (size_t)size : END_LEN + COMMENT_MAX;
    uint8_t *tail = memory_alloc(len);
    if (!tail)
        return fail_memory(err, len);
    stk_status status = scan_read_all(scan, size - len, tail, len, err);
    const uint8_t *found = NULL;
    for (size_t i = len; !status && !found && i-- >= END_LEN;) {
        const uint8_t *at = tail + (i - (END_LEN - 1));
        size_t rest = len - (size_t)(at - tail) - END_LEN;
        if (number_at(at, 4) == END_SIGNATURE && number_at(at + 20, 2) == rest)
            found = at;
    }
    if (!status && !found)
        status = zip_bad(scan, 0, "this is no zip file, or its end is missing", err);
    if (!status) {
        end->members = number_at(found + 10, 2);
        end->size = number_at(found + 12, 4);
        end->offset = number_at(found + 16, 4);
        end->limit = size - len + (uint64_t)(found - tail);
        if (end->members == UINT16_MAX || end->size == UINT32_MAX || end->offset == UINT32_MAX)
            status = zip_end64(scan, end, err);
        else if (number_at(found + 4, 4) != 0 || number_at(found + 8, 2) != end->members)
            status = zip_bad(scan, end->limit, "a zip file over several disks", err);
    }
    memory_free(tail);
    return status;
}

/* Numbers that did not fit 32 bits lie in an extra field, in a fixed order. */
static int entry_numbers(const uint8_t *entry, const uint8_t *extra, size_t extra_len,
                         uint64_t *size, uint64_t *packed, uint64_t *local)
{
    uint64_t *wanted[3] = {size, packed, local};
    *packed = number_at(entry + 20, 4);
    *size = number_at(entry + 24, 4);
    *local = number_at(entry + 42, 4);
    for (size_t at = 0; at + 4 <= extra_len;) {
        size_t len = number_at(extra + at + 2, 2);
        const uint8_t *data = extra + at + 4;
        if (len > extra_len - at - 4)
            return 0;
        at += 4 + len;
        if (number_at(data - 4, 2) != EXTRA_ZIP64)
            continue;
        for (int i = 0; i < 3; i++) {
            if (*wanted[i] != UINT32_MAX)
                continue;
            if (len < 8)
                return 0;
            *wanted[i] = number_at(data, 8);
            data += 8;
            len -= 8;
        }
        return 1;
    }
    return *size != UINT32_MAX && *packed != UINT32_MAX && *local != UINT32_MAX;
}

/* Finds the member's bytes behind its local header. */
static stk_status member_locate(struct zip_member *member, struct scan *scan, uint64_t local,
                                uint64_t limit, struct stk_error *err)
{
    uint8_t head[LOCAL_LEN];
    char name[1024];
    size_t name_len = strlen(member->name);
    if (!checked_inside(local, LOCAL_LEN + name_len, limit))
        return zip_bad(scan, local, "a zip member lies outside its file", err);
    stk_status status = scan_read_all(scan, local, head, sizeof(head), err);
    if (!status)
        status = scan_read_all(scan, local + LOCAL_LEN, name, name_len, err);
    if (status)
        return status;
    uint64_t method = member->is_deflated ? METHOD_DEFLATED : METHOD_STORED;
    if (number_at(head, 4) != LOCAL_SIGNATURE || number_at(head + 8, 2) != method ||
        number_at(head + 26, 2) != name_len || memcmp(name, member->name, name_len))
        return zip_bad(scan, local, "a zip member's header and the directory differ", err);
    member->offset = local + LOCAL_LEN + name_len + number_at(head + 28, 2);
    if (!checked_inside(member->offset, member->packed, limit))
        return zip_bad(scan, local, "a zip member is longer than its file", err);
    return STK_OK;
}

static stk_status member_check(const struct zip_directory *directory, struct scan *scan,
                               const uint8_t *entry, uint64_t offset, struct stk_error *err)
{
    const struct zip_member *member = &directory->members[directory->count];
    uint64_t method = number_at(entry + 10, 2);
    stk_status status = STK_OK;
    if (number_at(entry + 8, 2) & FLAG_ENCRYPTED)
        status = fail(err, STK_UNSUPPORTED, "the zip member %.200s is encrypted", member->name);
    else if (method != METHOD_STORED && method != METHOD_DEFLATED)
        status = fail(err, STK_UNSUPPORTED, "the zip member %.200s is compressed by method %u",
                      member->name, (unsigned)method);
    if (status) {
        fail_remedy(err, "write it with numpy.savez or numpy.savez_compressed");
        fail_at(err, scan_name(scan), offset);
        return status;
    }
    if (method == METHOD_STORED && member->packed != member->size)
        return zip_bad(scan, offset, "a stored zip member has two different sizes", err);
    for (uint32_t i = 0; i < directory->count; i++) {
        if (strcmp(directory->members[i].name, member->name))
            continue;
        fail(err, STK_CORRUPT, "the zip file has two members named %.200s", member->name);
        fail_at(err, scan_name(scan), offset);
        return STK_CORRUPT;
    }
    return STK_OK;
}

/* One entry at bytes + at; moves at behind it. */
static stk_status directory_entry(struct zip_directory *directory, struct scan *scan,
                                  const struct zip_end *end, const uint8_t *bytes, size_t *at,
                                  struct stk_error *err)
{
    const uint8_t *entry = bytes + *at;
    uint64_t offset = end->offset + *at, local = 0;
    struct zip_member *member = &directory->members[directory->count];
    if (end->size - *at < ENTRY_LEN || number_at(entry, 4) != ENTRY_SIGNATURE)
        return zip_bad(scan, offset, "the zip directory has fewer members than it says", err);
    size_t name_len = number_at(entry + 28, 2), extra_len = number_at(entry + 30, 2);
    size_t whole = ENTRY_LEN + name_len + extra_len + number_at(entry + 32, 2);
    if (whole > end->size - *at || name_len == 0 || name_len > 1024 ||
        memchr(entry + ENTRY_LEN, 0, name_len))
        return zip_bad(scan, offset, "a name in the zip directory makes no sense", err);
    if (!entry_numbers(entry, entry + ENTRY_LEN + name_len, extra_len, &member->size,
                       &member->packed, &local))
        return zip_bad(scan, offset, "a zip64 record in the directory makes no sense", err);
    member->is_deflated = number_at(entry + 10, 2) == METHOD_DEFLATED;
    member->check = (uint32_t)number_at(entry + 16, 4);
    member->name = memory_text((const char *)entry + ENTRY_LEN, name_len);
    if (!member->name)
        return fail_memory(err, name_len);
    stk_status status = member_check(directory, scan, entry, offset, err);
    directory->count++; /* its name is freed with the others from now on */
    *at += whole;
    return status ? status : member_locate(member, scan, local, end->offset, err);
}

stk_status zip_directory_read(struct zip_directory *directory, struct scan *scan,
                              struct stk_error *err)
{
    struct zip_end end = {0};
    uint8_t *bytes = NULL;
    *directory = (struct zip_directory){0};
    stk_status status = zip_find_end(scan, &end, err);
    if (!status && !checked_inside(end.offset, end.size, end.limit))
        status = zip_bad(scan, end.limit, "the zip directory lies outside its file", err);
    if (!status && (end.size > ZIP_MAX_DIRECTORY || end.members > ZIP_MAX_MEMBERS)) {
        status = fail(err, STK_LIMIT, "the zip file has too many members");
        fail_at(err, scan_name(scan), end.offset);
    }
    if (status)
        return status;
    bytes = memory_alloc(end.size);
    directory->members = memory_zero(end.members + 1, sizeof(*directory->members));
    if (!bytes || !directory->members)
        status = fail_memory(err, end.size);
    if (!status)
        status = scan_read_all(scan, end.offset, bytes, end.size, err);
    size_t at = 0;
    for (uint64_t i = 0; !status && i < end.members; i++)
        status = directory_entry(directory, scan, &end, bytes, &at, err);
    if (!status && at != end.size)
        status = zip_bad(scan, end.offset + at, "the zip directory is longer than it says", err);
    memory_free(bytes);
    return status;
}

void zip_directory_free(struct zip_directory *directory)
{
    for (uint32_t i = 0; directory->members && i < directory->count; i++)
        memory_free(directory->members[i].name);
    memory_free(directory->members);
    *directory = (struct zip_directory){0};
}

/* --- the beginning of a member --------------------------------------------------------------- */

static stk_status deflated_head(const struct zip_member *member, struct scan *scan,
                                struct filter *filter, uint8_t *to, size_t cap, size_t *got,
                                struct stk_error *err)
{
    uint8_t in[4096];
    uint64_t read = 0;
    int ended = 0;
    size_t used = 0, len = 0;
    while (*got < cap && !ended) {
        if (used == len) {
            uint64_t left = member->packed - read;
            used = 0;
            len = left < sizeof(in) ? (size_t)left : sizeof(in);
            stk_status status = scan_read_all(scan, member->offset + read, in, len, err);
            if (status)
                return status;
            read += len;
        }
        struct stk_bytes bytes = {in, len};
        stk_status status =
            filter_step(filter, &bytes, &used, to, cap, got, read == member->packed, &ended, err);
        if (status) {
            fail_at(err, scan_name(scan), member->offset + read - len + used);
            return status;
        }
    }
    return STK_OK;
}

stk_status zip_member_head(const struct zip_member *member, struct scan *scan, uint8_t *to,
                           size_t cap, size_t *got, struct stk_error *err)
{
    *got = 0;
    if (member->size < cap)
        cap = (size_t)member->size;
    if (!member->is_deflated) {
        stk_status status = scan_read_all(scan, member->offset, to, cap, err);
        *got = status ? 0 : cap;
        return status;
    }
    struct filter *filter = NULL;
    stk_status status = filter_open(&filter, FILTER_DEFLATE, err);
    if (!status)
        status = deflated_head(member, scan, filter, to, cap, got, err);
    filter_close(filter);
    return status;
}
