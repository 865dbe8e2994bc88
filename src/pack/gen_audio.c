/* stk_gen_audio: notes over pink noise. The class gives their pitch, their rhythm and whether they
 * rise or fall; the sample where they begin, how loud and how rich they are. */
#include <inttypes.h>
#include <math.h>

#include "stoker/pack.h"

#include "base/fail.h"
#include "base/memory.h"
#include "pack/dice.h"
#include "pack/gen_crew.h"
#include "pack/sndfile_write.h"
#include "pack/wav_write.h"

#define LEAST_RATE 4000
#define MOST_RATE 384000
#define MOST_CHANNELS 8
#define MOST_VALUES (UINT64_C(1) << 29) /* frames * channels: a gigabyte */
#define HARMONICS 4
#define PITCHES 12
#define LOWEST 180.0 /* Hz */

enum { KEY_AUDIO = 0x61756469, KEY_PINK };

struct audio_job {
    const struct stk_gen_audio_options *options;
    uint64_t frames;
};

struct audio_maker {
    const struct audio_job *job;
    float *notes; /* of a frame, before noise */
    int16_t *samples;
};

struct voice {
    double pitch, bend; /* Hz at the note's start; the share it gains over the note */
    double beat, share; /* seconds from note to note; how much of them sounds */
    double begin;       /* seconds: where the first note begins, at or before 0 */
    double harmonics[HARMONICS];
    double gain, noise;
};

/* --- one sample ------------------------------------------------------------------------------ */

static struct voice draw_voice(uint32_t label, uint32_t classes, struct dice *dice)
{
    static const double beats[] = {0.5, 0.25, 0.125, 0.0625}, bends[] = {0, 0.5, -0.33};
    uint32_t pitches = classes < PITCHES ? classes : PITCHES, more = label / pitches;
    double sum = 0, octaves = 3.0 * (label % pitches) / pitches;
    struct voice voice = {
        .pitch = LOWEST * exp2(octaves) * dice_between(dice, 0.98, 1.02),
        .bend = bends[(label + more / 4) % 3],
        .beat = beats[(label + more) % 4] * dice_between(dice, 0.95, 1.05),
        .share = dice_between(dice, 0.5, 0.7),
        .gain = dice_between(dice, 0.12, 0.4),
        .noise = dice_between(dice, 0.01, 0.05),
    };

    voice.begin = -voice.beat * dice_between(dice, 0, 1);
    for (int i = 0; i < HARMONICS; i++)
        sum += voice.harmonics[i] = i ? dice_between(dice, 0.1, 0.6) / i : 1;
    for (int i = 0; i < HARMONICS; i++)
        voice.harmonics[i] /= sum;
    return voice;
}

static void play(const struct voice *voice, uint32_t rate, uint64_t frames, float *to)
{
    double phase = 0; /* turns of the first harmonic */

    for (uint64_t i = 0; i < frames; i++) {
        double beats = ((double)i / rate - voice->begin) / voice->beat;
        double within = (beats - floor(beats)) / voice->share; /* 0 .. 1 while the note sounds */
        double pitch = voice->pitch * (1 + voice->bend * fmin(within, 1));
        double value = 0;
        phase += pitch / rate;
        phase -= floor(phase);
        if (within < 1) {
            for (int h = 0; h < HARMONICS && pitch * (h + 1) < 0.45 * rate; h++)
                value += voice->harmonics[h] * sin(2 * M_PI * phase * (h + 1));
            value *= voice->gain * sin(M_PI * sqrt(within)); /* a quick rise, a slow fall */
        }
        to[i] = (float)value;
    }
}

/* A sum of slow and quick parts: each holds white noise through a low pass an octave or two above
 * the one before. Together they fall by about 3 dB an octave. */
static void add_pink(const struct audio_maker *maker, uint32_t channel, double noise, double gain,
                     uint64_t key)
{
    static const double poles[] = {0.9988, 0.9886, 0.9551, 0.85, 0.55, 0.0};
    const struct stk_gen_audio_options *options = maker->job->options;
    struct dice dice = {random_key(key, channel), 0};
    double parts[6] = {0};

    for (uint64_t i = 0; i < maker->job->frames; i++) {
        double white = dice_bell(&dice), sum = 0;
        for (int p = 0; p < 6; p++) {
            parts[p] = poles[p] * parts[p] + sqrt(1 - poles[p] * poles[p]) * white;
            sum += parts[p];
        }
        double value = 32767 * (gain * (double)maker->notes[i] + noise * sum / 2.5);
        value = fmax(-32767, fmin(32767, value));
        maker->samples[i * options->channels + channel] = (int16_t)lrint(value);
    }
}

static stk_status maker_make(void *maker, uint64_t sample, uint32_t label, struct text *to,
                             struct stk_error *err)
{
    struct audio_maker *audio = maker;
    const struct stk_gen_audio_options *options = audio->job->options;
    uint64_t key = random_key(random_key(options->common.seed, KEY_AUDIO), sample);
    struct dice dice = {key, 0};
    struct voice voice = draw_voice(label, options->common.classes, &dice);
    struct sound sound = {audio->samples, audio->job->frames, options->channels, options->rate};

    play(&voice, options->rate, audio->job->frames, audio->notes);
    for (uint32_t i = 0; i < options->channels; i++)
        add_pink(audio, i, voice.noise, dice_between(&dice, 0.7, 1), random_key(key, KEY_PINK));
    if (options->format == STK_GEN_FLAC)
        return sndfile_write(&sound, SNDFILE_FLAC, to, err);
    if (options->format == STK_GEN_OGG)
        return sndfile_write(&sound, SNDFILE_OGG, to, err);
    wav_write(&sound, to);
    return STK_OK;
}

/* --- the whole ------------------------------------------------------------------------------- */

static void maker_close(void *maker)
{
    struct audio_maker *audio = maker;

    if (!audio)
        return;
    memory_free(audio->notes);
    memory_free(audio->samples);
    memory_free(audio);
}

static stk_status maker_open(void **out, const void *job, struct stk_error *err)
{
    const struct audio_job *audio_job = job;
    uint64_t values = audio_job->frames * audio_job->options->channels;
    struct audio_maker *audio = memory_zero(1, sizeof(*audio));

    *out = audio; /* closed by the crew in any case */
    if (!audio)
        return fail_memory(err, sizeof(*audio));
    audio->job = audio_job;
    audio->notes = memory_alloc(audio_job->frames * sizeof(*audio->notes));
    audio->samples = memory_alloc(values * sizeof(*audio->samples));
    if (!audio->notes || !audio->samples)
        return fail_memory(err, values * sizeof(*audio->samples));
    return STK_OK;
}

static stk_status check_options(const struct stk_gen_audio_options *options, uint64_t *frames,
                                struct stk_error *err)
{
    if (options->rate < LEAST_RATE || options->rate > MOST_RATE)
        return fail(err, STK_USAGE, "the rate is %d to %d samples a second", LEAST_RATE, MOST_RATE);
    if (options->channels < 1 || options->channels > MOST_CHANNELS)
        return fail(err, STK_USAGE, "a sound has 1 to %d channels", MOST_CHANNELS);
    double count = options->seconds * options->rate;
    if (!(count >= 1))
        return fail(err, STK_USAGE, "a sound must last longer than 0 seconds");
    if (count * options->channels > (double)MOST_VALUES)
        return fail(err, STK_LIMIT, "a sound of more than a gigabyte cannot be generated");
    *frames = (uint64_t)(count + 0.5);
    return options->format == STK_GEN_WAV ? STK_OK : sndfile_write_check(err);
}

stk_status stk_gen_audio(struct stk_context *context, const struct stk_gen_audio_options *options,
                         struct stk_pack_result *result, struct stk_error *err)
{
    static const char *const suffixes[] = {".wav", ".flac", ".ogg"};
    struct audio_job job = {.options = options};
    stk_status status = check_options(options, &job.frames, err);

    *result = (struct stk_pack_result){0};
    if (status)
        return status;
    const struct gen_kind kind = {suffixes[options->format], maker_open, maker_make, maker_close};
    return gen_crew_run(context, &options->common, &kind, &job, result, err);
}
