/* stk_pack_tar: sample by sample into shards that lie in a hidden folder until all are whole. */
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "stoker/pack.h"

#include "base/context.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/npy_header.h"
#include "base/text.h"
#include "dataset/dataset_view.h"
#include "pack/numbered.h"
#include "pack/pack_names.h"
#include "pack/staging.h"
#include "pack/tar_writer.h"

#define DEFAULT_SHARD_SIZE (UINT64_C(256) << 20)
#define NPY_CAP 512
#define NAME_CAP 320

struct packer {
    struct stk_context *context;
    struct stk_dataset *dataset;
    const struct stk_pack_options *options;
    const struct index *index;
    const char *prefix;
    uint64_t shard_size;
    uint32_t index_fields, fields;
    struct stk_reader *reader;
    struct extent *extents;   /* of one sample, by the index's fields */
    struct stk_value *values; /* of one sample, when it is made of array rows */
    char *covered;            /* by index field: one of the dataset's fields stands for it */
    int arrays;               /* not 0: fields are rows of arrays */
    struct staging *staging;
    struct tar_writer *writer;
    uint64_t in_shard;     /* samples in the open shard */
    struct text name, key; /* key: of the sample before */
    struct stk_pack_result result;
};

/* --- members --------------------------------------------------------------------------------- */

/* One member of the sample at hand. */
struct member {
    const char *field;
    uint32_t number; /* the dataset's field; UINT32_MAX: a class that was not asked for */
    const struct extent *extent; /* in the index */
    const struct index_field *index_field;
};

/* Which of its alternatives a field takes in this sample. 0: the sample lacks it. */
static int find_member(const struct packer *packer, uint32_t f, struct member *member)
{
    const struct dataset_field *field = dataset_field(packer->dataset, f);

    for (uint32_t i = 0; i < field->alternative_count; i++) {
        uint32_t at = field->alternatives[i];
        if (packer->extents[at].object == EXTENT_NONE)
            continue;
        member->number = f;
        member->extent = &packer->extents[at];
        member->index_field = index_field(packer->index, at);
        member->field = member->index_field->name;
        return 1;
    }
    return 0;
}

/* The members of a sample in order: *next is 0 at first. A class that stands in no chosen field
 * comes last, for the folders that told it are gone in a shard. */
static int next_member(const struct packer *packer, uint32_t *next, struct member *member)
{
    while (*next < packer->fields)
        if (find_member(packer, (*next)++, member))
            return 1;
    while (*next < packer->fields + packer->index_fields) {
        uint32_t at = (*next)++ - packer->fields;
        if (packer->covered[at] || packer->extents[at].object != EXTENT_VALUE)
            continue;
        member->number = UINT32_MAX;
        member->extent = &packer->extents[at];
        member->index_field = index_field(packer->index, at);
        member->field = member->index_field->name;
        return 1;
    }
    return 0;
}

static int is_array(const struct member *member)
{
    return member->index_field->row.rank >= 0 && member->extent->object != EXTENT_VALUE;
}

/* KEY.FIELD; rows of arrays become npy files, and are named so. */
static struct stk_bytes member_name(struct packer *packer, struct stk_bytes key,
                                    const struct member *member)
{
    size_t len = strlen(member->field);
    int is_npy =
        !strcmp(member->field, "npy") || (len > 4 && !strcmp(member->field + len - 4, ".npy"));

    packer->name.len = 0;
    text_add(&packer->name, (const char *)key.data, key.len);
    text_add(&packer->name, ".", 1);
    text_add(&packer->name, member->field, len);
    if (is_array(member) && !is_npy)
        text_add(&packer->name, ".npy", 4);
    return (struct stk_bytes){(const uint8_t *)packer->name.data, packer->name.len};
}

static size_t class_text(const struct member *member, char out[24])
{
    return (size_t)snprintf(out, 24, "%" PRId64, (int64_t)member->extent->offset);
}

static uint64_t member_length(const struct member *member)
{
    char text[NPY_CAP];
    size_t head;

    if (member->extent->object == EXTENT_VALUE)
        return class_text(member, text);
    if (!is_array(member))
        return member->extent->length;
    npy_header_write(&member->index_field->row, text, sizeof(text), &head);
    return head + member->extent->length;
}

static stk_status write_member(struct packer *packer, uint64_t position, struct stk_bytes name,
                               const struct member *member, struct stk_error *err)
{
    char text[NPY_CAP];
    size_t len = 0;
    struct stk_bytes body = {0};
    stk_status status = STK_OK;

    if (member->extent->object == EXTENT_VALUE) {
        len = class_text(member, text);
    } else if (is_array(member)) {
        const struct stk_tensor *tensor = &packer->values[member->number].tensor;
        npy_header_write(tensor, text, sizeof(text), &len);
        body = (struct stk_bytes){tensor->data, stk_tensor_size(tensor)};
    } else {
        status = stk_reader_bytes(packer->reader, position, member->number, &body, err);
    }
    if (status)
        return status;
    return tar_writer_member(packer->writer, name, (struct stk_bytes){(uint8_t *)text, len}, body,
                             err);
}

/* --- samples and shards ---------------------------------------------------------------------- */

static stk_status end_shard(struct packer *packer, struct stk_error *err)
{
    struct tar_writer *writer = packer->writer;

    if (!writer)
        return STK_OK;
    packer->writer = NULL;
    packer->in_shard = 0;
    packer->result.bytes += tar_writer_size(writer);
    return tar_writer_finish(writer, err);
}

/* Opens the next shard when there is none, when the sample would make this one too large, or when
 * two neighbours have the same key: side by side in one shard they would be read as one sample. */
static stk_status choose_shard(struct packer *packer, struct stk_bytes key, uint64_t size,
                               struct stk_error *err)
{
    uint64_t limit = packer->options->shard_samples;
    char name[24], label[PATH_MAX];
    int same = packer->in_shard && packer->key.len == key.len &&
               !memcmp(packer->key.data, key.data, key.len);

    if (packer->in_shard && (same || (limit && packer->in_shard >= limit) ||
                             tar_writer_size(packer->writer) + size > packer->shard_size)) {
        stk_status status = end_shard(packer, err);
        if (status)
            return status;
    }
    packer->key.len = 0;
    text_add(&packer->key, (const char *)key.data, key.len);
    if (packer->key.failed)
        return fail_memory(err, key.len);
    if (packer->writer)
        return STK_OK;
    snprintf(name, sizeof(name), "%" PRIu32, packer->result.shards);
    snprintf(label, sizeof(label), "%s/%s-%04" PRIu32 ".tar", staging_target(packer->staging),
             packer->prefix, packer->result.shards++);
    return tar_writer_open(&packer->writer, staging_fd(packer->staging), name, label, err);
}

static stk_status sample_size(struct packer *packer, struct stk_bytes key, uint64_t *size,
                              struct stk_error *err)
{
    struct member member;

    *size = 0;
    for (uint32_t next = 0; next_member(packer, &next, &member);)
        *size += tar_writer_member_size(member_name(packer, key, &member), member_length(&member));
    return packer->name.failed ? fail_memory(err, key.len) : STK_OK;
}

static stk_status pack_sample(struct packer *packer, uint64_t position, struct stk_error *err)
{
    uint64_t sample = position, size;
    struct stk_bytes key;
    struct member member;
    stk_status status = stk_dataset_key(packer->dataset, position, &key, err);

    dataset_samples(packer->dataset, &sample, 1);
    if (!status)
        status = index_resolve(packer->index, &sample, 1, packer->extents, err);
    if (!status)
        status = sample_size(packer, key, &size, err);
    if (!status)
        status = choose_shard(packer, key, size, err);
    if (!status && packer->arrays)
        status = stk_reader_read(packer->reader, position, packer->values, err);
    for (uint32_t next = 0; !status && next_member(packer, &next, &member);)
        status = write_member(packer, position, member_name(packer, key, &member), &member, err);
    packer->in_shard++;
    packer->result.samples++;
    return status;
}

static stk_status pack_samples(struct packer *packer, struct stk_error *err)
{
    uint64_t samples = stk_dataset_samples(packer->dataset);
    struct context_timer timer = {0};
    stk_status status = STK_OK;

    for (uint64_t i = 0; i < samples && !status; i++) {
        struct stk_progress progress = {.what = "packing",
                                        .unit = "samples",
                                        .done = i + 1,
                                        .total = samples,
                                        .bytes = packer->result.bytes};
        status = pack_sample(packer, i, err);
        if (!status && context_progress(packer->context, &timer, &progress))
            status = fail(err, STK_CANCELLED, "stopped on request");
    }
    return status ? status : end_shard(packer, err);
}

/* --- the whole ------------------------------------------------------------------------------- */

static stk_status prepare(struct packer *packer, struct stk_error *err)
{
    stk_status status = STK_OK;

    packer->extents = memory_zero(packer->index_fields, sizeof(*packer->extents));
    packer->values = memory_zero(packer->fields, sizeof(*packer->values));
    packer->covered = memory_zero(packer->index_fields, 1);
    if (!packer->extents || !packer->values || !packer->covered)
        return fail_memory(err, packer->index_fields * sizeof(*packer->extents));
    for (uint32_t f = 0; f < packer->fields; f++) {
        const struct dataset_field *field = dataset_field(packer->dataset, f);
        for (uint32_t i = 0; i < field->alternative_count; i++) {
            uint32_t at = field->alternatives[i];
            packer->covered[at] = 1;
            if (index_field(packer->index, at)->row.rank >= 0)
                packer->arrays = 1;
        }
    }
    status = pack_names_check(packer->dataset, packer->options->out, packer->prefix, err);
    if (!status)
        status = stk_reader_new(packer->dataset, &packer->reader, err);
    if (!status)
        status = staging_open(&packer->staging, packer->options->out, packer->prefix, err);
    return status;
}

static stk_status check_free(const struct packer *packer, const struct numbered *names,
                             struct stk_error *err)
{
    if (packer->options->force || !numbered_any(names, staging_target_fd(packer->staging)))
        return STK_OK;
    stk_status status =
        fail(err, STK_USAGE, "the folder has shards %s....tar already", names->prefix);
    fail_at(err, packer->options->out, STK_NOWHERE);
    fail_remedy(err, "choose another folder or --prefix, or replace them with --force");
    return status;
}

static stk_status publish(const struct packer *packer, const struct numbered *any,
                          struct stk_error *err)
{
    struct numbered names = *any;
    stk_status status = STK_OK;
    char from[24], to[NAME_CAP];

    names.digits = numbered_digits(packer->result.shards, any->digits);
    numbered_remove(any, staging_target_fd(packer->staging));
    for (uint32_t i = 0; i < packer->result.shards && !status; i++) {
        snprintf(from, sizeof(from), "%" PRIu32, i);
        numbered_name(&names, i, to, sizeof(to));
        status = staging_publish(packer->staging, from, to, err);
    }
    return status;
}

static void packer_free(struct packer *packer)
{
    tar_writer_close(packer->writer);
    staging_close(packer->staging);
    stk_reader_free(packer->reader);
    memory_free(packer->extents);
    memory_free(packer->values);
    memory_free(packer->covered);
    text_free(&packer->name);
    text_free(&packer->key);
}

stk_status stk_pack_tar(struct stk_context *context, struct stk_dataset *dataset,
                        const struct stk_pack_options *options, struct stk_pack_result *result,
                        struct stk_error *err)
{
    char prefix[NAME_CAP];
    struct packer packer = {
        .context = context,
        .dataset = dataset,
        .options = options,
        .index = dataset_index(dataset),
        .prefix = options->prefix ? options->prefix : "shard",
        .shard_size = options->shard_size ? options->shard_size : DEFAULT_SHARD_SIZE,
        .fields = stk_dataset_field_count(dataset),
    };

    *result = (struct stk_pack_result){0};
    packer.index_fields = index_field_count(packer.index);
    snprintf(prefix, sizeof(prefix), "%s-", packer.prefix);
    const struct numbered names = {prefix, ".tar", 4};
    stk_status status = prepare(&packer, err);
    if (!status)
        status = check_free(&packer, &names, err);
    if (!status)
        status = pack_samples(&packer, err);
    if (!status)
        status = publish(&packer, &names, err);
    if (!status)
        *result = packer.result;
    packer_free(&packer);
    return status;
}
