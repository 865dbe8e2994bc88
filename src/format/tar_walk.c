#include "format/tar_walk.h"

#include <string.h>

#include "base/checked.h"
#include "base/fail.h"
#include "format/tar_header.h"

struct walk {
    struct tar_source *source;
    tar_visit visit;
    void *user;
    uint64_t at;                      /* of the header that comes */
    struct tar_records global, local; /* pax */
    struct text long_name;            /* GNU; len 0: none */
    int pending;                      /* an extended header waits for its member */
    int ended;                        /* the last block was of zeros */
};

static stk_status walk_fail_at(struct walk *walk, stk_status status, struct stk_error *err)
{
    fail_at(err, scan_name(walk->source->scan), walk->at);
    return status;
}

static stk_status walk_bad_header(struct walk *walk, struct stk_error *err)
{
    if (walk->at == 0) {
        fail(err, STK_CORRUPT, "this is not a tar file: it does not begin with a tar header");
        fail_remedy(err, "look at its first bytes: a failed download is often a page of HTML");
    } else if (walk->ended) {
        fail(err, STK_CORRUPT, "after the end of the tar comes something that is no tar header");
        fail_remedy(err, "cut off what follows the end, or write the shard anew");
    } else {
        fail(err, STK_CORRUPT, "a tar header has a wrong checksum");
    }
    return walk_fail_at(walk, STK_CORRUPT, err);
}

static stk_status walk_long_name(struct walk *walk, const char *name, size_t len,
                                 struct stk_error *err)
{
    walk->long_name.len = 0;
    text_add(&walk->long_name, name, strnlen(name, len));
    return walk->long_name.failed ? fail_memory(err, len) : STK_OK;
}

/* The body of an extended header, kept whole: it is small, or refused. */
static stk_status walk_extended(struct walk *walk, const struct tar_header *header,
                                struct stk_error *err)
{
    const uint8_t *body = NULL;
    size_t got = 0;
    stk_status status;
    if (header->size > TAR_EXTENDED_LIMIT) {
        fail(err, STK_LIMIT, "an extended tar header of %llu bytes is larger than the limit",
             (unsigned long long)header->size);
        return walk_fail_at(walk, STK_LIMIT, err);
    }
    status = tar_source_peek(walk->source, walk->at + TAR_BLOCK, header->size, &body, &got, err);
    if (status)
        return status;
    if (got < header->size) {
        fail(err, STK_TRUNCATED, "the shard ends inside an extended tar header");
        return walk_fail_at(walk, STK_TRUNCATED, err);
    }
    if (!body) /* nothing at the very end of the shard */
        body = (const uint8_t *)"";
    walk->pending = header->kind != TAR_PAX_ALL;
    switch (header->kind) {
    case TAR_PAX:
        tar_records_reset(&walk->local);
        status = tar_records_parse(&walk->local, (const char *)body, got, err);
        break;
    case TAR_PAX_ALL:
        status = tar_records_parse(&walk->global, (const char *)body, got, err);
        break;
    case TAR_LONG_NAME:
        status = walk_long_name(walk, (const char *)body, got, err);
        break;
    default: /* a link's target is nobody's business here */
        break;
    }
    return status ? walk_fail_at(walk, status, err) : STK_OK;
}

/* The member's name and size, from whichever header knows best. */
static void walk_member(const struct walk *walk, const struct tar_header *header,
                        struct tar_member *member)
{
    *member = (struct tar_member){.name = header->name,
                                  .name_len = header->name_len,
                                  .header = walk->at,
                                  .offset = walk->at + TAR_BLOCK,
                                  .size = header->size};
    if (walk->local.has_path || (walk->long_name.len == 0 && walk->global.has_path)) {
        const struct text *path = walk->local.has_path ? &walk->local.path : &walk->global.path;
        member->name = path->data;
        member->name_len = path->len;
    } else if (walk->long_name.len > 0) {
        member->name = walk->long_name.data;
        member->name_len = walk->long_name.len;
    }
    if (header->kind == TAR_OTHER)
        return; /* nothing follows, whatever a record says */
    if (walk->local.has_size)
        member->size = walk->local.size;
    else if (walk->global.has_size)
        member->size = walk->global.size;
}

/* Where the next header is; checks that the member fits the shard, as far as that is known. */
static stk_status walk_advance(struct walk *walk, uint64_t size, struct stk_error *err)
{
    uint64_t body = walk->at + TAR_BLOCK;
    uint64_t padded = (size + TAR_BLOCK - 1) / TAR_BLOCK * TAR_BLOCK; /* size <= 2^60 */
    uint64_t next;
    if (!checked_add(body, padded, &next) ||
        (walk->source->size != UINT64_MAX && !checked_inside(body, size, walk->source->size))) {
        fail(err, STK_TRUNCATED, "the shard ends inside a member of %llu bytes",
             (unsigned long long)size);
        return walk_fail_at(walk, STK_TRUNCATED, err);
    }
    walk->at = next;
    return STK_OK;
}

static stk_status walk_header(struct walk *walk, const uint8_t *block, struct stk_error *err)
{
    struct tar_header header;
    struct tar_member member;
    if (!tar_block_is_header(block))
        return walk_bad_header(walk, err);
    stk_status status = tar_header_parse(&header, block, err);
    if (status)
        return walk_fail_at(walk, status, err);
    walk->ended = 0;
    if (header.kind >= TAR_PAX) {
        status = walk_extended(walk, &header, err);
        return status ? status : walk_advance(walk, header.size, err);
    }
    walk_member(walk, &header, &member);
    if (header.kind == TAR_SPARSE || walk->local.sparse || walk->global.sparse) {
        int shown = member.name_len < 200 ? (int)member.name_len : 200;
        fail(err, STK_UNSUPPORTED, "the member %.*s is a sparse file", shown, member.name);
        fail_remedy(err, "write the tar without --sparse");
        return walk_fail_at(walk, STK_UNSUPPORTED, err);
    }
    status = walk_advance(walk, member.size, err);
    if (status)
        return status;
    if (header.kind == TAR_FILE)
        status = walk->visit(walk->user, &member, err);
    else
        walk->source->shard->skipped++;
    tar_records_reset(&walk->local);
    walk->long_name.len = 0;
    walk->pending = 0;
    return status;
}

/* The last bytes: too few for a header, or none. */
static stk_status walk_end(struct walk *walk, const uint8_t *rest, size_t got,
                           struct stk_error *err)
{
    for (size_t i = 0; i < got; i++) {
        if (rest[i] || !walk->ended) {
            if (walk->at == 0)
                return walk_bad_header(walk, err);
            fail(err, STK_TRUNCATED, "the shard ends inside a tar header");
            return walk_fail_at(walk, STK_TRUNCATED, err);
        }
    }
    if (walk->at == 0) {
        fail(err, STK_TRUNCATED, "the shard is empty: not even a tar's end is there");
        return walk_fail_at(walk, STK_TRUNCATED, err);
    }
    if (walk->pending) {
        fail(err, STK_TRUNCATED, "the shard ends after an extended header, before its member");
        return walk_fail_at(walk, STK_TRUNCATED, err);
    }
    if (!walk->ended)
        shard_notice(walk->source->shard, "the tar has no end blocks; it may have been cut off");
    return STK_OK;
}

static stk_status walk_zeros(struct walk *walk, struct stk_error *err)
{
    if (walk->pending) {
        fail(err, STK_CORRUPT, "an extended header is followed by no member");
        return walk_fail_at(walk, STK_CORRUPT, err);
    }
    walk->ended = 1;
    walk->at += TAR_BLOCK;
    return STK_OK;
}

stk_status tar_walk(struct tar_source *source, tar_visit visit, void *user, struct stk_error *err)
{
    struct walk walk = {.source = source, .visit = visit, .user = user};
    stk_status status = STK_OK;
    while (!status) { /* every turn moves walk.at by a block at least */
        const uint8_t *block = NULL;
        size_t got = 0;
        status = tar_source_peek(source, walk.at, TAR_BLOCK, &block, &got, err);
        if (status)
            break;
        if (got < TAR_BLOCK) {
            status = walk_end(&walk, block, got, err);
            break;
        }
        if (tar_block_is_zero(block))
            status = walk_zeros(&walk, err);
        else
            status = walk_header(&walk, block, err);
    }
    tar_records_free(&walk.global);
    tar_records_free(&walk.local);
    text_free(&walk.long_name);
    return status;
}
