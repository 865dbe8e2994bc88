#include "dataset/media_read.h"

#include "base/fail.h"
#include "base/memory.h"

stk_status media_reader_init(struct media_reader *reader, uint32_t fields, struct stk_error *err)
{
    *reader = (struct media_reader){.fields = fields};
    reader->states = memory_zero(fields, sizeof *reader->states);
    return reader->states ? STK_OK : fail_memory(err, fields * sizeof *reader->states);
}

void media_reader_reset(struct media_reader *reader)
{
    for (uint32_t f = 0; reader->states && f < reader->fields; f++)
        pipeline_state_free(reader->states[f]);
    for (uint32_t media = 0; media < STK_MEDIA_COUNT; media++)
        pipeline_free(reader->pipelines[media]);
    memory_free(reader->states);
    *reader = (struct media_reader){0};
}

stk_status media_read(struct media_reader *reader, const struct media_value *value,
                      struct stk_tensor *tensor, struct stk_error *err)
{
    const struct pipeline_options options = {.media = value->media};
    const struct pipeline_input input = {.bytes = value->bytes,
                                         .key = pipeline_key(0, 0, value->sample)};
    struct pipeline **pipeline = &reader->pipelines[value->media];
    struct pipeline_state **state = &reader->states[value->field];
    struct stk_flow flow = {0};
    stk_status status = STK_OK;
    *tensor = (struct stk_tensor){0};
    if (!*pipeline)
        status = pipeline_new(pipeline, &options, err);
    if (!status && !*state)
        status = pipeline_state_new(state, err);
    if (!status)
        status = pipeline_run(*pipeline, *state, &input, &flow, err);
    if (!status)
        *tensor = flow.tensor;
    return status;
}
