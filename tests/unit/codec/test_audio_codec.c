/* test_audio_codec.c -- recordings: what comes out of every kind, and what is refused. The files of
 * the fuzz corpus hold a tone of 440 Hz (and one of 330 Hz in the second channel), written by
 * another program. */
#include "base/testing.h"

#include <math.h>

#include "codec/audio_codec.h"
#include "codec/audio_container.h"

#define CORPUS "tests/fuzz/corpus/audio"

static struct audio_decoder *decoder;
static struct stk_error err;

static int make_decoder(void **state)
{
    (void)state;
    return audio_decoder_new(&decoder, &err) == STK_UNSUPPORTED ? 0 : decoder == NULL;
}

static int free_decoder(void **state)
{
    (void)state;
    audio_decoder_free(decoder);
    decoder = NULL;
    return 0;
}

/* Builds without libsndfile have nothing to test. */
#define NEEDS_LIBRARY                                                                              \
    (void)state;                                                                                   \
    if (!decoder)                                                                                  \
    skip()

static int16_t tone(int64_t i, double rate, double hz)
{
    return (int16_t)lrint(12000 * sin(2 * M_PI * hz * (double)i / rate));
}

static struct stk_bytes load(const char *name)
{
    struct stk_bytes bytes;
    bytes.data = (uint8_t *)file_read(path_in(CORPUS, name), &bytes.len);
    return bytes;
}

static float *read_all(const struct stk_bytes *bytes, struct audio_header *header)
{
    assert_int_equal(audio_begin(decoder, bytes, header, &err), STK_OK);
    float *data = malloc((size_t)(header->frames * header->channels + 1) * sizeof(float));
    assert_int_equal(audio_read(decoder, 0, header->frames, data, &err), STK_OK);
    return data;
}

/* --- wav files made here ---------------------------------------------------------------------- */

struct wav {
    uint8_t bytes[4096];
    size_t len;
};

static void put(struct wav *wav, uint64_t value, int bytes)
{
    for (int i = 0; i < bytes; i++)
        wav->bytes[wav->len++] = (uint8_t)(value >> 8 * i);
}

static void put_text(struct wav *wav, const char *text)
{
    memcpy(wav->bytes + wav->len, text, 4);
    wav->len += 4;
}

/* A header for so many bytes of data; tag 1: integers, 3: floats. */
static void wav_begin(struct wav *wav, int tag, int channels, uint32_t rate, int bits,
                      uint32_t size)
{
    wav->len = 0;
    put_text(wav, "RIFF");
    put(wav, 36 + size, 4);
    put_text(wav, "WAVE");
    put_text(wav, "fmt ");
    put(wav, 16, 4);
    put(wav, (uint64_t)tag, 2);
    put(wav, (uint64_t)channels, 2);
    put(wav, rate, 4);
    put(wav, rate * (uint32_t)(channels * bits / 8), 4);
    put(wav, (uint64_t)(channels * bits / 8), 2);
    put(wav, (uint64_t)bits, 2);
    put_text(wav, "data");
    put(wav, size, 4);
}

static struct stk_bytes bytes_of(const struct wav *wav)
{
    return (struct stk_bytes){wav->bytes, wav->len};
}

static void integers_of_every_width_become_parts_of_one(void **state)
{
    NEEDS_LIBRARY;
    static const int widths[] = {8, 16, 24, 32};
    for (int w = 0; w < 4; w++) {
        struct wav wav;
        struct audio_header header;
        int bits = widths[w];
        wav_begin(&wav, 1, 2, 8000, bits, (uint32_t)(20 * 2 * bits / 8));
        for (int i = 0; i < 40; i++) {
            int64_t value = (int64_t)(i - 20) * (INT64_C(1) << (bits - 7)); /* from -20/64 up */
            put(&wav, (uint64_t)(bits == 8 ? value + 128 : value), bits / 8);
        }
        struct stk_bytes bytes = bytes_of(&wav);
        float *data = read_all(&bytes, &header);
        assert_int_equal(header.frames, 20);
        assert_int_equal(header.channels, 2);
        assert_true(header.rate == 8000);
        for (int i = 0; i < 40; i++)
            assert_true(data[i % 2 * 20 + i / 2] == (float)(i - 20) / 64);
        free(data);
    }
}

static void mono_of_16_bits_is_exact_for_every_length(void **state)
{
    NEEDS_LIBRARY;
    for (int frames = 0; frames < 40; frames++) {
        struct wav wav;
        struct audio_header header;
        wav_begin(&wav, 1, 1, 16000, 16, (uint32_t)frames * 2);
        for (int i = 0; i < frames; i++)
            put(&wav, (uint16_t)(int16_t)(i * 1771 - 32768), 2);
        struct stk_bytes bytes = bytes_of(&wav);
        float *data = read_all(&bytes, &header);
        assert_int_equal(header.frames, frames);
        for (int i = 0; i < frames; i++)
            assert_true(data[i] == (float)(int16_t)(i * 1771 - 32768) / 32768);
        free(data);
    }
}

static void floats_pass_through_even_what_is_not_a_number(void **state)
{
    NEEDS_LIBRARY;
    const float values[] = {0.25f, NAN, -INFINITY, 1e30f, -0.0f};
    struct wav wav;
    struct audio_header header;
    uint32_t bits;
    wav_begin(&wav, 3, 1, 44100, 32, sizeof values);
    for (int i = 0; i < 5; i++) {
        memcpy(&bits, &values[i], 4);
        put(&wav, bits, 4);
    }
    struct stk_bytes bytes = bytes_of(&wav);
    float *data = read_all(&bytes, &header);
    assert_memory_equal(data, values, sizeof values);
    free(data);
}

static void a_wav_shorter_than_it_says_is_truncated(void **state)
{
    NEEDS_LIBRARY;
    struct wav wav;
    struct audio_header header;
    wav_begin(&wav, 1, 1, 16000, 16, 1000);
    for (int i = 0; i < 300; i++)
        put(&wav, 0, 2);
    struct stk_bytes bytes = bytes_of(&wav);
    assert_int_equal(audio_begin(decoder, &bytes, &header, &err), STK_TRUNCATED);
    assert_non_null(strstr(err.what, "promises 500 frames and has 300"));
}

static void a_wav_written_into_a_pipe_has_no_length_and_is_read_to_its_end(void **state)
{
    NEEDS_LIBRARY;
    struct wav wav;
    struct audio_header header;
    wav_begin(&wav, 1, 1, 16000, 16, UINT32_MAX);
    for (int i = 0; i < 300; i++)
        put(&wav, 0, 2);
    struct stk_bytes bytes = bytes_of(&wav);
    assert_int_equal(audio_begin(decoder, &bytes, &header, &err), STK_OK);
    assert_int_equal(header.frames, 300);
}

static void headers_out_of_all_bounds_are_refused(void **state)
{
    NEEDS_LIBRARY;
    static const struct {
        int channels;
        uint32_t rate;
    } cases[] = {{0, 16000}, {65, 16000}, {1000, 16000}, {1, 0}, {1, 1000001}, {1, UINT32_MAX}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct wav wav;
        struct audio_header header;
        wav_begin(&wav, 1, cases[i].channels, cases[i].rate, 16, 2000);
        wav.len += 2000;
        struct stk_bytes bytes = bytes_of(&wav);
        stk_status status = audio_begin(decoder, &bytes, &header, &err);
        assert_true(status == STK_CORRUPT || status == STK_LIMIT);
        assert_int_equal(header.frames, 0);
    }
}

/* --- files ------------------------------------------------------------------------------------ */

static void lossless_recordings_come_out_bit_for_bit(void **state)
{
    NEEDS_LIBRARY;
    static const char *const names[] = {"tone.flac", "tone.wav", "tone.aiff", "tone.au",
                                        "flac_says_nothing"};
    for (size_t f = 0; f < sizeof names / sizeof names[0]; f++) {
        struct audio_header header;
        struct stk_bytes bytes = load(names[f]);
        float *data = read_all(&bytes, &header);
        assert_true(header.rate == 16000 && header.frames >= 200);
        for (int64_t i = 0; i < header.frames; i++) {
            assert_true(data[i] == (float)tone(i, 16000, 440) / 32768);
            if (header.channels == 2)
                assert_true(data[header.frames + i] == (float)tone(i, 16000, 330) / 32768);
        }
        free(data);
        free((void *)bytes.data);
    }
}

static void lossy_recordings_sound_like_what_was_recorded(void **state)
{
    NEEDS_LIBRARY;
    static const struct {
        const char *name;
        int64_t frames;
        double rate;
    } cases[] = {{"tone.ogg", 4000, 16000},
                 {"tone_opus.ogg", 12000, 48000},
                 {"tone.mp3", 4000, 16000},
                 {"tone_adpcm.wav", 2000, 16000}};
    for (size_t f = 0; f < sizeof cases / sizeof cases[0]; f++) {
        struct audio_header header;
        struct stk_bytes bytes = load(cases[f].name);
        float *data = read_all(&bytes, &header);
        assert_true(header.frames >= cases[f].frames && header.rate == cases[f].rate);
        double error = 0, energy = 0;
        for (int64_t i = 0; i < cases[f].frames; i++) {
            double right = (double)tone(i, cases[f].rate, 440) / 32768;
            error += (data[i] - right) * (data[i] - right);
            energy += right * right;
        }
        assert_true(error < 0.02 * energy); /* 17 dB: also where it begins and ends */
        free(data);
        free((void *)bytes.data);
    }
}

static void a_part_is_the_same_as_in_the_whole(void **state)
{
    NEEDS_LIBRARY;
    static const char *const names[] = {"tone.flac", "tone.ogg",       "tone_opus.ogg", "tone.mp3",
                                        "tone.aiff", "tone_adpcm.wav", "tone.wav"};
    for (size_t f = 0; f < sizeof names / sizeof names[0]; f++) {
        struct audio_header header;
        struct stk_bytes bytes = load(names[f]);
        float *data = read_all(&bytes, &header), part[2 * 150];
        const int64_t last = header.frames - 150;
        const int64_t firsts[] = {last, 0,        1,
                                  50,   last / 2, last / 2 + 150 <= last ? last / 2 + 150 : last};
        for (size_t k = 0; k < sizeof firsts / sizeof firsts[0]; k++) {
            assert_int_equal(audio_read(decoder, firsts[k], 150, part, &err), STK_OK);
            for (int64_t i = 0; i < 150 * header.channels; i++) {
                float whole = data[i / 150 * header.frames + firsts[k] + i % 150];
                assert_true(fabsf(part[i] - whole) < 1e-5f);
            }
        }
        free(data);
        free((void *)bytes.data);
    }
}

/* --- what is refused -------------------------------------------------------------------------- */

static void a_recording_cut_anywhere_never_passes_for_a_whole_one(void **state)
{
    NEEDS_LIBRARY;
    static const char *const names[] = {"tone.flac", "tone.ogg",  "tone_opus.ogg", "tone.mp3",
                                        "tone.wav",  "tone.aiff", "tone.au"};
    for (size_t f = 0; f < sizeof names / sizeof names[0]; f++) {
        struct stk_bytes bytes = load(names[f]);
        for (size_t len = bytes.len / 3; len < bytes.len; len += bytes.len / 7) {
            struct audio_header header;
            struct stk_bytes cut = {bytes.data, len};
            stk_status status = audio_begin(decoder, &cut, &header, &err);
            float *data = calloc((size_t)(header.frames * header.channels + 1), sizeof(float));
            if (!status)
                status = audio_read(decoder, 0, header.frames, data, &err);
            assert_true(status == STK_TRUNCATED);
            free(data);
        }
        free((void *)bytes.data);
    }
}

static void an_mp3_cut_in_mid_frame_says_so(void **state)
{
    NEEDS_LIBRARY;
    struct audio_header header;
    struct stk_bytes bytes = load("mp3_cut");
    assert_int_equal(audio_begin(decoder, &bytes, &header, &err), STK_TRUNCATED);
    assert_non_null(strstr(err.what, "mp3 frame"));
    free((void *)bytes.data);
}

static size_t largest;
static int note_size(void *user, size_t size)
{
    (void)user;
    largest = size > largest ? size : largest;
    return 0;
}

static void a_header_that_claims_billions_of_frames_allocates_nothing(void **state)
{
    NEEDS_LIBRARY;
    struct audio_header header;
    struct stk_bytes bytes = load("flac_says_too_much");
    memory_set_hook(note_size, NULL);
    largest = 0;
    stk_status status = audio_begin(decoder, &bytes, &header, &err);
    memory_set_hook(NULL, NULL);
    assert_int_equal(status, STK_CORRUPT);
    assert_int_equal(largest, 0);
    assert_non_null(strstr(err.what, "68719476735 frames"));
    free((void *)bytes.data);
}

static void what_is_no_recording_is_named(void **state)
{
    NEEDS_LIBRARY;
    static const struct {
        const char *bytes;
        size_t len;
        const char *words;
    } cases[] = {{"", 0, "0 bytes"},
                 {"\n<html><body>", 13, "HTML"},
                 {"<!DOCTYPE html>", 15, "HTML"},
                 {"<?xml version=\"1.0\"?><Error>", 28, "XML"},
                 {"\0\0\0 ftypM4A ", 12, "M4A"},
                 {"\x89PNG\r\n\x1a\n", 8, "an image"},
                 {"\x1a\x45\xdf\xa3----", 8, "Matroska"},
                 {"hello", 5, "text"},
                 {"ID3\4\0\0\0\0\0\0", 10, "ID3"},
                 {"\x01\x02\x03\x04", 4, "none of wav"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct audio_header header;
        struct stk_bytes bytes = {(const uint8_t *)cases[i].bytes, cases[i].len};
        assert_int_equal(audio_begin(decoder, &bytes, &header, &err), STK_CORRUPT);
        assert_non_null(strstr(err.what, cases[i].words));
    }
}

static void a_damaged_flac_is_corrupt(void **state)
{
    NEEDS_LIBRARY;
    struct audio_header header;
    struct stk_bytes bytes = load("tone.flac");
    uint8_t *damaged = calloc(1, bytes.len + 65536); /* what follows is not its end */
    memcpy(damaged, bytes.data, bytes.len);
    memset(damaged + bytes.len / 2, 0x55, 300);
    struct stk_bytes all = {damaged, bytes.len + 65536};
    assert_int_equal(audio_begin(decoder, &all, &header, &err), STK_OK);
    float *data = calloc((size_t)(header.frames * header.channels), sizeof(float));
    stk_status status = audio_read(decoder, 0, header.frames, data, &err);
    assert_true(status == STK_CORRUPT || status == STK_TRUNCATED);
    assert_non_null(strstr(err.what, "promises 4000 frames"));
    free(data);
    free(damaged);
    free((void *)bytes.data);
}

static int count_calls(void *user, size_t size)
{
    (void)size;
    ++*(int *)user;
    return 0;
}

static void a_decoder_allocates_nothing_for_a_sample_and_outlives_errors(void **state)
{
    NEEDS_LIBRARY;
    struct audio_header header;
    struct stk_bytes flac = load("tone.flac"), html = load("html");
    float *data = malloc(2 * 4000 * sizeof(float));
    int calls = 0;
    memory_set_hook(count_calls, &calls);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(audio_begin(decoder, &html, &header, &err), STK_CORRUPT);
        assert_int_equal(audio_begin(decoder, &flac, &header, &err), STK_OK);
        assert_int_equal(audio_read(decoder, 0, 4000, data, &err), STK_OK);
    }
    memory_set_hook(NULL, NULL);
    assert_int_equal(calls, 0);
    assert_true(audio_decoder_bytes(decoder) > 0);
    audio_end(decoder);
    free(data);
    free((void *)flac.data);
    free((void *)html.data);
}

/* libsndfile leaves memory behind when such a header gets that far: sanitizers see it. */
static void a_damaged_header_of_an_ogg_is_told_by_its_checksum(void **state)
{
    static const char *const names[] = {"tone.ogg", "tone_opus.ogg"};
    NEEDS_LIBRARY;
    for (size_t i = 0; i < 2; i++) {
        struct stk_bytes bytes = load(names[i]);
        struct audio_header header;
        uint8_t *data = (uint8_t *)(uintptr_t)bytes.data;
        assert_int_equal(audio_begin(decoder, &bytes, &header, &err), STK_OK);
        audio_end(decoder);
        for (size_t at = 6; at < 120; at++) {
            data[at] ^= 0x10;
            assert_int_not_equal(audio_begin(decoder, &bytes, &header, &err), STK_OK);
            data[at] ^= 0x10;
        }
        data[40] ^= 1;
        assert_int_equal(audio_begin(decoder, &bytes, &header, &err), STK_CORRUPT);
        assert_non_null(strstr(err.what, "checksum"));
        free(data);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_decoder, free_decoder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(integers_of_every_width_become_parts_of_one),
        TEST(mono_of_16_bits_is_exact_for_every_length),
        TEST(floats_pass_through_even_what_is_not_a_number),
        TEST(a_wav_shorter_than_it_says_is_truncated),
        TEST(a_damaged_header_of_an_ogg_is_told_by_its_checksum),
        TEST(a_wav_written_into_a_pipe_has_no_length_and_is_read_to_its_end),
        TEST(headers_out_of_all_bounds_are_refused),
        TEST(lossless_recordings_come_out_bit_for_bit),
        TEST(lossy_recordings_sound_like_what_was_recorded),
        TEST(a_part_is_the_same_as_in_the_whole),
        TEST(a_recording_cut_anywhere_never_passes_for_a_whole_one),
        TEST(an_mp3_cut_in_mid_frame_says_so),
        TEST(a_header_that_claims_billions_of_frames_allocates_nothing),
        TEST(what_is_no_recording_is_named),
        TEST(a_damaged_flac_is_corrupt),
        TEST(a_decoder_allocates_nothing_for_a_sample_and_outlives_errors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
