#include <string.h>

#include "base/fail.h"
#include "base/shape.h"
#include "codec/audio_codec.h"
#include "pipeline/pipeline_impl.h"
#include "transform/audio_range.h"
#include "transform/audio_resample.h"

/* One recording on its way. */
struct recording {
    struct pipeline_state *state;
    struct audio_header header;
    struct audio_range range;
    double rate;      /* of the result */
    int32_t channels; /* of the result: 1 when mixed */
};

static stk_status take_floats(struct pipeline_state *state, int64_t channels, int64_t frames,
                              float **out, struct stk_error *err)
{
    struct stk_tensor floats = {.dtype = STK_F32, .rank = 2, .shape = {channels, frames}};
    uint64_t bytes = stk_tensor_size(&floats);
    *out = NULL;
    if (bytes > AUDIO_MAX_BYTES) {
        (void)fail(err, STK_LIMIT, "%lld frames of %lld channels at once: %llu bytes at most",
                   (long long)frames, (long long)channels, (unsigned long long)AUDIO_MAX_BYTES);
        fail_remedy(err, "ask for a part: DecodeAudio(seconds=10)");
        return STK_LIMIT;
    }
    *out = scratch_take(&state->scratch, bytes);
    return *out ? STK_OK : fail_memory(err, bytes);
}

/* The mean of all channels. */
static void mix(const float *in, int32_t channels, int64_t frames, float *out)
{
    float scale = 1.0f / (float)channels;
    for (int64_t i = 0; i < frames; i++)
        out[i] = in[i] + in[frames + i];
    for (int32_t c = 2; c < channels; c++)
        for (int64_t i = 0; i < frames; i++)
            out[i] += in[c * frames + i];
    for (int64_t i = 0; i < frames; i++)
        out[i] *= scale;
}

/* Frames [first, first + count) as stored, mixed when that is asked for. */
static stk_status read_stored(struct recording *recording, int64_t first, int64_t count, float *to,
                              struct stk_error *err)
{
    struct audio_decoder *decoder = recording->state->audio;
    int32_t channels = recording->header.channels;
    if (channels == recording->channels)
        return audio_read(decoder, first, count, to, err);
    float *all;
    stk_status status = take_floats(recording->state, channels, count, &all, err);
    if (!status)
        status = audio_read(decoder, first, count, all, err);
    if (!status)
        mix(all, channels, count, to);
    return status;
}

/* A little more than the range is decoded, resampled, and the range cut out of it. */
static stk_status read_resampled(struct recording *recording, float *to, struct stk_error *err)
{
    struct pipeline_state *state = recording->state;
    const struct audio_range *range = &recording->range;
    struct audio_part part;
    float *in = NULL, *out = NULL;
    stk_status status = audio_rates_check(recording->header.rate, recording->rate, err);
    if (status)
        return status;
    audio_part_find(recording->header.frames, recording->header.rate, recording->rate, range->first,
                    range->count, &part);
    if (!state->resampler)
        status = audio_resampler_new(&state->resampler, err);
    if (!status)
        status = take_floats(state, recording->channels, part.in_count, &in, err);
    if (!status)
        status = take_floats(state, recording->channels, part.out_count, &out, err);
    if (!status)
        status = read_stored(recording, part.in_first, part.in_count, in, err);
    if (status)
        return status;
    struct audio_resample_job job = {.from = recording->header.rate,
                                     .to = recording->rate,
                                     .channels = recording->channels,
                                     .in = in,
                                     .in_frames = part.in_count,
                                     .out = out,
                                     .out_frames = part.out_count};
    status = audio_resample(state->resampler, &job, err);
    for (int32_t c = 0; !status && c < recording->channels; c++)
        memcpy(to + c * range->count, out + c * part.out_count + part.skip,
               (size_t)range->count * sizeof(float));
    return status;
}

/* (channels, count) -> (channels, length) in place, with zeros behind every channel. */
static void pad_rows(const struct recording *recording, float *data)
{
    int64_t count = recording->range.count, length = recording->range.length;
    if (count == length)
        return;
    for (int32_t c = recording->channels - 1; c >= 0; c--) { /* the last first: rows move up */
        memmove(data + c * length, data + c * count, (size_t)count * sizeof(float));
        memset(data + c * length + count, 0, (size_t)(length - count) * sizeof(float));
    }
}

static stk_status choose_range(const struct pipeline *pipeline, uint64_t key,
                               struct recording *recording, struct stk_flow *flow,
                               struct stk_error *err)
{
    const struct decode_audio_args *args = pipeline_decode_args(pipeline);
    const struct audio_header *header = &recording->header;
    struct step_params params = {{0}};
    *flow = (struct stk_flow){
        .media = STK_MEDIA_AUDIO,
        .tensor = {.dtype = STK_F32, .rank = 2, .shape = {header->channels, header->frames}},
        .rate = header->rate,
        .real = -1};
    if (pipeline->first)
        pipeline_draw(pipeline, 0, key, flow, &params);
    audio_range_find(args, (const void *)params.bytes, flow, &recording->range);
    stk_status status = decode_audio_transform.shape(args, params.bytes, flow, err);
    recording->channels = (int32_t)flow->tensor.shape[0];
    recording->rate = flow->rate;
    return status;
}

stk_status audio_run(const struct pipeline *pipeline, struct pipeline_state *state,
                     const struct pipeline_input *input, void *place, struct stk_flow *flow,
                     struct stk_error *err)
{
    struct recording recording = {.state = state};
    float *to = NULL;
    stk_status status = STK_OK;
    if (!state->audio)
        status = audio_decoder_new(&state->audio, err);
    if (status)
        return status;
    status = audio_begin(state->audio, &input->bytes, &recording.header, err);
    if (!status)
        status = choose_range(pipeline, input->key, &recording, flow, err);
    if (status)
        goto done;
    if (place && shape_same(&flow->tensor, &pipeline->out.tensor))
        to = place;
    else
        status = take_floats(state, flow->tensor.shape[0], flow->tensor.shape[1], &to, err);
    if (!status && recording.rate == recording.header.rate)
        status = read_stored(&recording, recording.range.first, recording.range.count, to, err);
    else if (!status)
        status = read_resampled(&recording, to, err);
    if (status)
        goto done;
    pad_rows(&recording, to);
    flow->tensor.data = to;
done:
    audio_end(state->audio); /* the bytes are the caller's */
    return status;
}

void audio_run_free(struct pipeline_state *state)
{
    audio_decoder_free(state->audio);
    audio_resampler_free(state->resampler);
    state->audio = NULL;
    state->resampler = NULL;
}

uint64_t audio_run_bytes(const struct pipeline_state *state)
{
    return audio_decoder_bytes(state->audio) + audio_resampler_bytes(state->resampler);
}
