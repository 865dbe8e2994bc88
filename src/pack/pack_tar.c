/* stk_pack_tar: sample by sample into shards, which their target makes to be there (pack_target.h).
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "stoker/pack.h"

#include "base/context.h"
#include "base/fail.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/npy_header.h"
#include "base/text.h"
#include "dataset/dataset_view.h"
#include "pack/pack_names.h"
#include "pack/pack_target.h"
#include "pack/tar_writer.h"

#define DEFAULT_SHARD_SIZE (UINT64_C(256) << 20)
#define NPY_CAP 512

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
    struct pack_target *target;
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
    stk_status status;

    if (!writer)
        return STK_OK;
    packer->writer = NULL;
    packer->in_shard = 0;
    packer->result.bytes += tar_writer_size(writer);
    status = tar_writer_finish(writer, err);
    return status ? status : pack_target_shard(packer->target, packer->result.shards - 1, err);
}

/* What says where shards end: as much of the open one as its size hangs on. */
struct shard_state {
    uint64_t samples, size; /* size: 0 where there is none */
    struct text *key;       /* of the sample before */
};

/* Not 0: another shard begins with this sample. It does when there is none, when the sample would
 * make this one too large, or when two neighbours have the same key: side by side in one shard they
 * would be read as one sample. */
static int begins_shard(const struct packer *packer, const struct shard_state *state,
                        struct stk_bytes key, uint64_t size)
{
    uint64_t limit = packer->options->shard_samples;
    int same = state->samples && state->key->len == key.len &&
               !memcmp(state->key->data, key.data, key.len);

    return !state->samples || same || (limit && state->samples >= limit) ||
           state->size + size > packer->shard_size;
}

static stk_status keep_key(struct text *to, struct stk_bytes key, struct stk_error *err)
{
    to->len = 0;
    text_add(to, (const char *)key.data, key.len);
    return to->failed ? fail_memory(err, key.len) : STK_OK;
}

static stk_status choose_shard(struct packer *packer, struct stk_bytes key, uint64_t size,
                               struct stk_error *err)
{
    const struct shard_state state = {.samples = packer->in_shard,
                                      .size = packer->writer ? tar_writer_size(packer->writer) : 0,
                                      .key = &packer->key};
    int begins = begins_shard(packer, &state, key, size);
    stk_status status = begins ? end_shard(packer, err) : STK_OK;
    char name[PACK_TARGET_NAME];

    if (!status)
        status = keep_key(&packer->key, key, err);
    if (status || !begins)
        return status;
    uint32_t number = packer->result.shards++;
    pack_target_name(number, name);
    return tar_writer_open(&packer->writer, pack_target_folder(packer->target), name,
                           pack_target_label(packer->target, number), err);
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

/* The sample's key, extents and size in a shard. */
static stk_status look_up(struct packer *packer, uint64_t position, struct stk_bytes *key,
                          uint64_t *size, struct stk_error *err)
{
    uint64_t sample = position;
    stk_status status = stk_dataset_key(packer->dataset, position, key, err);

    dataset_samples(packer->dataset, &sample, 1);
    if (!status)
        status = index_resolve(packer->index, &sample, 1, packer->extents, err);
    return status ? status : sample_size(packer, *key, size, err);
}

static stk_status pack_sample(struct packer *packer, uint64_t position, struct stk_error *err)
{
    uint64_t size;
    struct stk_bytes key;
    struct member member;
    stk_status status = look_up(packer, position, &key, &size, err);

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

/* How many shards there will be: names have as many digits as the last one needs, and shards that
 * are sent to a site get their names before the last one is known. Reads no data. */
static stk_status count_shards(struct packer *packer, uint32_t *shards, struct stk_error *err)
{
    struct shard_state state = {.key = &packer->key};
    uint64_t samples = stk_dataset_samples(packer->dataset), size;
    stk_status status = STK_OK;

    *shards = 0;
    for (uint64_t i = 0; i < samples && !status; i++) {
        struct stk_bytes key;
        status = look_up(packer, i, &key, &size, err);
        if (status)
            break;
        if (begins_shard(packer, &state, key, size)) {
            state.samples = 0;
            state.size = TAR_END;
            (*shards)++;
        }
        state.samples++;
        state.size += size;
        status = keep_key(&packer->key, key, err);
    }
    packer->key.len = 0;
    return status;
}

/* --- the whole ------------------------------------------------------------------------------- */

/* The same data and the same options give the same shards. A fingerprint tells samples apart, and
 * not their values: the versions of the objects do. */
static stk_status source_hash(const struct packer *packer, uint8_t out[16], struct stk_error *err)
{
    struct hash128 hash;
    uint8_t fingerprint[16];
    struct index_object object;

    stk_dataset_fingerprint(packer->dataset, fingerprint);
    hash128_init(&hash, 1);
    hash128_add(&hash, fingerprint, sizeof(fingerprint));
    hash128_add_number(&hash, packer->shard_size);
    hash128_add_number(&hash, packer->options->shard_samples);
    for (uint32_t f = 0; f < packer->fields; f++) {
        const char *name = stk_dataset_field(packer->dataset, f)->name;
        hash128_add(&hash, name, strlen(name));
    }
    for (uint32_t i = 0; i < index_object_count(packer->index); i++) {
        stk_status status = index_object(packer->index, i, &object, err);
        if (status)
            return status;
        hash128_add_number(&hash, object.version);
    }
    hash128_out(&hash, out);
    return STK_OK;
}

static stk_status open_target(struct packer *packer, struct stk_error *err)
{
    struct pack_target_options options = {.context = packer->context,
                                          .out = packer->options->out,
                                          .prefix = packer->prefix,
                                          .force = packer->options->force};
    stk_status status = STK_OK;

    if (pack_target_is_remote(options.out))
        status = count_shards(packer, &options.shards, err);
    if (!status)
        status = source_hash(packer, options.source, err);
    return status ? status : pack_target_open(&packer->target, &options, err);
}

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
        status = open_target(packer, err);
    return status;
}

static void packer_free(struct packer *packer)
{
    tar_writer_close(packer->writer);
    pack_target_close(packer->target);
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
    stk_status status = prepare(&packer, err);
    if (!status)
        status = pack_samples(&packer, err);
    if (status)
        pack_target_advise(packer.target, err);
    else
        status = pack_target_finish(packer.target, packer.result.shards, err);
    if (!status)
        *result = packer.result;
    packer_free(&packer);
    return status;
}
