/* Tar shards in WebDataset's layout: consecutive members of a shard that have one key are a sample.
 *
 * How fast, from the page cache, one thread, a shared 2-core virtual machine, against Python 3.11's
 * tarfile.open(...).getmembers() on the same file:
 *   100,000 members of 160 bytes and of 1 byte   2.9 M members/s   tarfile 47 k/s   62 times
 *   1,000 members of 1.2 MB                      1.0 M members/s   tarfile 42 k/s   24 times
 * The first is bound by the headers' checksums and copies, the second by one pread a member. */
#include <string.h>

#include "base/fail.h"
#include "format/format.h"
#include "format/shard_crew.h"
#include "format/tar_header.h"
#include "format/tar_walk.h"
#include "index/sample_name.h"

struct grouping {
    struct shard *shard;
    const struct tar_source *source;
    struct text key; /* of the sample that is open */
    int open;
    uint32_t object; /* the shard, or its chunk */
};

static stk_status group_sample(struct grouping *grouping, const char *key, size_t len,
                               struct stk_error *err)
{
    if (grouping->open && grouping->key.len == len && !memcmp(grouping->key.data, key, len))
        return STK_OK;
    grouping->key.len = 0;
    text_add(&grouping->key, key, len);
    if (grouping->key.failed)
        return fail_memory(err, len);
    grouping->open = 1;
    return index_part_sample(grouping->shard->part, key, len, err);
}

static stk_status group_member(void *user, const struct tar_member *member, struct stk_error *err)
{
    struct grouping *grouping = user;
    size_t key_len = 0;
    if (sample_name_is_meta(member->name, member->name_len) ||
        !sample_name_split(member->name, member->name_len, &key_len)) {
        grouping->shard->skipped++;
        return STK_OK;
    }
    stk_status status = group_sample(grouping, member->name, key_len, err);
    struct extent extent = {member->offset, member->size, grouping->object};
    const char *field = member->name + key_len + 1;
    if (!status)
        status = index_part_extent(grouping->shard->part, field, member->name_len - key_len - 1,
                                   &extent, err);
    if (status) {
        fail_at(err, scan_name(grouping->source->scan), member->header);
        fail_sample(err, STK_NOWHERE, member->name, key_len);
    }
    return status;
}

static stk_status tar_scan(struct shard *shard, struct stk_error *err)
{
    struct tar_source source = {.shard = shard};
    struct grouping grouping = {.shard = shard, .source = &source};
    stk_status status = tar_source_open(&source, shard, err);
    if (status)
        goto done;
    grouping.object = source.filter ? INDEX_PART_CHUNK : shard->number;
    status = tar_walk(&source, group_member, &grouping, err);
    if (!status && !source.filter)
        status = shard_tick(shard, source.size - source.base, err);
    if (status || !source.filter || index_part_samples(shard->part) == 0)
        goto done;
    struct chunk chunk = {.length = shard->object->size,
                          .decoded = source.size,
                          .count = index_part_samples(shard->part),
                          .object = shard->number,
                          .filter = (uint32_t)source.kind};
    uint32_t number;
    status = index_part_chunk(shard->part, &chunk, &number, err);
done:
    tar_source_close(&source);
    text_free(&grouping.key);
    return status;
}

static stk_status tar_build(const struct format_input *input, struct index_builder *builder,
                            struct stk_error *err)
{
    return crew_run(input, builder, tar_scan, err);
}

static int tar_sniff(const struct stk_bytes *head)
{
    if (filter_sniff(head) != FILTER_NONE) /* what else would come compressed */
        return 1;
    return head->len >= TAR_BLOCK && tar_block_is_header(head->data) &&
           !tar_block_is_zero(head->data);
}

static const char *const tar_suffixes[] = {".tar", ".tar.gz", ".tgz", ".tar.zst", ".tzst", NULL};

const struct format_ops tar_format = {
    .name = "tar", .suffixes = tar_suffixes, .sniff = tar_sniff, .build = tar_build};
