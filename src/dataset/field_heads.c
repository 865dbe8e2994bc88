#include "dataset/field_heads.h"

#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "index/index_heads.h"

static int tensor_load(const struct index_file_tensor *from, struct stk_tensor *to)
{
    *to = (struct stk_tensor){.rank = from->rank, .dtype = (enum stk_dtype)from->dtype};
    if (from->rank < 0 || from->rank > STK_MAX_RANK || from->dtype >= STK_DTYPE_COUNT)
        return 0;
    for (int32_t i = 0; i < from->rank; i++) {
        if (from->shape[i] < 0)
            return 0;
        to->shape[i] = from->shape[i];
    }
    return stk_tensor_size(to) != UINT64_MAX;
}

int field_head_load(const struct dataset_source *source, struct dataset_field *field)
{
    if (field->alternative_count != 1) /* which of them came first is not kept */
        return 0;
    const struct index_file_head *head = index_head(source->index, field->alternatives[0]);
    struct stk_tensor shape;
    if (!head || strncmp(head->codec, field->codec->name, sizeof head->codec) ||
        head->sample >= index_samples(source->index) || !tensor_load(&head->shape, &shape))
        return 0;
    field->field.shape = shape;
    field->payload = stk_tensor_size(&shape);
    field->head = head->length;
    field->plain = head->plain != 0;
    memcpy(field->head_bytes, head->bytes, sizeof field->head_bytes);
    field->probed = head->sample;
    return 1;
}

/* Not 0: the field was looked at, as everybody would who does not say what it is. */
static int is_worth_keeping(const struct dataset_source *source, const struct dataset_field *field)
{
    if (field->field.kind != STK_KIND_TENSOR || field->alternative_count != 1 ||
        field->probed == STK_NOWHERE)
        return 0;
    const struct index_field *from = index_field(source->index, field->alternatives[0]);
    return from->row.rank < 0 && field->codec == codec_for(from->name, STK_KIND_AUTO);
}

static void head_fill(struct index_file_head *head, const struct dataset_field *field)
{
    *head = (struct index_file_head){
        .field = field->alternatives[0],
        .length = field->head,
        .sample = field->probed,
        .plain = (uint32_t)field->plain,
        .shape = {.rank = field->field.shape.rank, .dtype = field->field.shape.dtype},
    };
    snprintf(head->codec, sizeof head->codec, "%s", field->codec->name);
    memcpy(head->shape.shape, field->field.shape.shape, sizeof head->shape.shape);
    memcpy(head->bytes, field->head_bytes, sizeof head->bytes);
}

static int has_head(const struct index_file_head *heads, uint64_t count, uint32_t field)
{
    for (uint64_t i = 0; i < count; i++)
        if (heads[i].field == field)
            return 1;
    return 0;
}

/* Those that the index has and those that are new, in heads. Returns how many are new. */
static uint64_t heads_gather(const struct dataset_source *source, struct index_file_head *heads,
                             uint64_t *count)
{
    uint64_t added = 0;
    *count = 0;
    for (uint32_t i = 0; i < index_field_count(source->index); i++) {
        const struct index_file_head *kept = index_head(source->index, i);
        if (kept)
            heads[(*count)++] = *kept;
    }
    for (uint32_t f = 0; f < source->field_count; f++) {
        const struct dataset_field *field = &source->fields[f];
        if (!is_worth_keeping(source, field) || has_head(heads, *count, field->alternatives[0]))
            continue;
        head_fill(&heads[(*count)++], field);
        added++;
    }
    return added;
}

void field_heads_keep(const struct stk_dataset *dataset)
{
    const struct dataset_source *source = dataset->source;
    uint64_t most = (uint64_t)index_field_count(source->index) + source->field_count, count;
    struct index_file_head *heads = memory_zero(most, sizeof *heads);
    if (heads && *index_path(source->index) && heads_gather(source, heads, &count))
        (void)!index_heads_write(source->index, heads, count, NULL);
    memory_free(heads);
}
