#include "pipeline/video_fixture.h"

#include <pthread.h>
#include <sys/wait.h>

#include "base/random.h"

#define NEEDS_VIDEO()                                                                              \
    if (!video_ready)                                                                              \
    skip()

static struct video_decoder *decoder_new(void)
{
    struct video_decoder *decoder;
    assert_int_equal(video_decoder_new(&decoder, NULL), STK_OK);
    return decoder;
}

/* Reads `want` and compares each frame with the oracle's. */
static void frames_are(struct video_decoder *decoder, const struct stk_video_header *header,
                       const uint8_t *oracle, struct video_want want)
{
    size_t frame = (size_t)header->width * (size_t)header->height * 3;
    uint8_t *to = malloc(frame * (size_t)want.count);
    struct stk_error err = {0};
    stk_status status = video_read(decoder, &want, to, &err);
    if (status)
        print_error("%s\n", err.what);
    assert_int_equal(status, STK_OK);
    for (int64_t k = 0; k < want.count; k++) {
        int64_t number = want.first + k * want.stride;
        number = number < header->frames ? number : header->frames - 1;
        assert_memory_equal(to + frame * (size_t)k, oracle + frame * (size_t)number, frame);
    }
    free(to);
}

static void video_is_ffmpegs_own(const char *name)
{
    struct stk_video_header header;
    struct video_decoder *decoder = decoder_new();
    struct stk_bytes bytes = video_bytes(name);
    size_t len;
    uint8_t *oracle = video_oracle(name, &len);
    assert_int_equal(video_begin(decoder, &bytes, &header, NULL), STK_OK);
    assert_int_equal(len, (size_t)header.width * (size_t)header.height * 3 * (size_t)header.frames);
    frames_are(decoder, &header, oracle, (struct video_want){0, 1, header.frames});
    for (uint64_t i = 0; i < 24; i++) { /* any place, backwards and forwards, past the end */
        struct video_want want = {.stride = 1 + (int64_t)random_below(1, i, 5),
                                  .count = 1 + (int64_t)random_below(2, i, 6)};
        want.first = (int64_t)random_below(3, i, (uint64_t)header.frames);
        frames_are(decoder, &header, oracle, want);
    }
    frames_are(decoder, &header, oracle, (struct video_want){header.frames - 1, 7, 3});
    video_decoder_free(decoder);
    free(oracle);
    free((void *)(uintptr_t)bytes.data);
}

static void every_frame_of_every_codec_is_ffmpegs_own(void **state)
{
    (void)state;
    static const char *const made[] = {
        "-c:v libx264 -preset veryfast -g 250 -bf 2 -pix_fmt yuv420p a.mp4", /* one keyframe */
        "-c:v libx264 -preset veryfast -g 12 -bf 3 -pix_fmt yuv420p b.mkv",
        "-c:v libx264 -preset veryfast -x264-params open-gop=1:keyint=15 -bf 3 c.mkv",
        "-c:v libx264 -preset veryfast -x264-params intra-refresh=1:keyint=15 d.mp4",
        "-c:v libx264 -preset veryfast -bf 2 e.avi", /* no times */
        "-c:v mpeg4 -g 20 -bf 2 f.mp4",
        "-c:v mpeg4 -g 20 -bf 2 g.avi",
        "-c:v mpeg4 -vf scale=75:51 h.mov",                                 /* odd sizes */
        "-c:v libvpx -cpu-used 5 -auto-alt-ref 1 -lag-in-frames 16 i.webm", /* hidden */
        "-c:v libvpx-vp9 -deadline realtime -cpu-used 8 -vf scale=75:51 j.webm",
        "-c:v mjpeg k.avi",
        "-c:v ffv1 -pix_fmt yuv420p10le l.mkv",
        "-vf scale=out_color_matrix=bt709:out_range=pc -color_range pc -c:v mpeg4 m.mkv",
        "-c:v libx264 -preset veryfast -bf 2 -g 30 n.ts",
    };
    NEEDS_VIDEO();
    int tried = 0;
    for (size_t i = 0; i < sizeof made / sizeof made[0]; i++) {
        const char *name = strrchr(made[i], ' ') + 1;
        if (!video_make(1.5, made[i])) {
            print_message("this ffmpeg cannot write %s\n", made[i]);
            continue;
        }
        video_is_ffmpegs_own(name);
        tried++;
    }
    assert_true(tried > 3);
}

static void frame_numbers_are_exact_when_the_rate_varies(void **state)
{
    (void)state;
    NEEDS_VIDEO();
    assert_true(video_make(2, "-vf \"select='not(mod(n,3))+not(mod(n,7))'\" -fps_mode vfr "
                              "-c:v mpeg4 -bf 2 vary.mp4"));
    video_is_ffmpegs_own("vary.mp4");
}

static void pictures_are_turned_as_the_file_asks(void **state)
{
    (void)state;
    NEEDS_VIDEO();
    assert_true(video_make(0.5, "-c:v mpeg4 plain.mp4"));
    for (int angle = 90; angle < 360; angle += 90) {
        char arguments[128];
        struct stk_video_header header;
        struct video_decoder *decoder = decoder_new();
        snprintf(arguments, sizeof arguments,
                 "-i plain.mp4 -c copy -metadata:s:v:0 rotate=%d turned.mp4", angle);
        assert_true(ffmpeg(arguments));
        struct stk_bytes bytes = video_bytes("turned.mp4");
        assert_int_equal(video_begin(decoder, &bytes, &header, NULL), STK_OK);
        video_decoder_free(decoder);
        free((void *)(uintptr_t)bytes.data);
        if (angle != 180 && header.width == 128)
            skip(); /* a newer ffmpeg writes rotations another way */
        video_is_ffmpegs_own("turned.mp4");
    }
}

static void a_cut_without_its_keyframe_begins_where_ffmpeg_begins(void **state)
{
    (void)state;
    NEEDS_VIDEO();
    if (!video_make(2, "-c:v libx264 -preset veryfast -g 12 -bf 2 whole.mkv") ||
        !ffmpeg("-i whole.mkv -c copy -bsf:v \"noise=drop='lt(n,5)'\" headless.mkv"))
        skip();
    video_is_ffmpegs_own("headless.mkv");
    /* The middle of a file: its first keyframe is decoded and not shown. */
    assert_true(ffmpeg("-ss 0.7 -i whole.mkv -c copy middle.mp4"));
    video_is_ffmpegs_own("middle.mp4");
}

/* --- faults ----------------------------------------------------------------------------------- */

static stk_status begin_status(struct stk_bytes bytes, struct stk_error *err)
{
    struct stk_video_header header;
    struct video_decoder *decoder = decoder_new();
    stk_status status = video_begin(decoder, &bytes, &header, err);
    video_decoder_free(decoder);
    return status;
}

static void what_is_no_video_is_refused_with_words(void **state)
{
    (void)state;
    NEEDS_VIDEO();
    struct stk_error err;
    static const char list[] = "#EXTM3U\n#EXT-X-TARGETDURATION:9\n#EXTINF:9,\nfile:///etc/hosts\n";
    static const char page[] = "<!doctype html><html><body>404</body></html>";
    uint8_t noise[4096];
    for (size_t i = 0; i < sizeof noise; i++)
        noise[i] = (uint8_t)random_at(1, i);
    struct stk_bytes empty = {(const uint8_t *)"", 0};
    assert_int_equal(begin_status(empty, &err), STK_TRUNCATED);
    assert_non_null(strstr(err.what, "empty"));
    struct stk_bytes playlist = {(const uint8_t *)list, sizeof list - 1};
    assert_int_equal(begin_status(playlist, &err), STK_UNSUPPORTED);
    struct stk_bytes html = {(const uint8_t *)page, sizeof page - 1};
    assert_int_not_equal(begin_status(html, &err), STK_OK);
    struct stk_bytes random = {noise, sizeof noise};
    assert_int_not_equal(begin_status(random, &err), STK_OK);
    assert_true(ffmpeg("-f lavfi -i sine=duration=0.2 sound.m4a"));
    struct stk_bytes sound = video_bytes("sound.m4a");
    assert_int_equal(begin_status(sound, &err), STK_UNSUPPORTED);
    assert_non_null(strstr(err.what, "no video in the file"));
    free((void *)(uintptr_t)sound.data);
}

static void a_file_cut_short_gives_the_frames_it_has(void **state)
{
    (void)state;
    NEEDS_VIDEO();
    struct stk_error err;
    struct stk_video_header header;
    uint8_t frame[20][128 * 96 * 3];
    assert_true(video_make(2, "-c:v mpeg4 -g 10 late.mp4"));
    struct stk_bytes bytes = video_bytes("late.mp4");
    bytes.len = bytes.len * 2 / 3; /* its index is at the end: lost */
    assert_int_equal(begin_status(bytes, &err), STK_CORRUPT);
    assert_non_null(strstr(err.what, "moov"));
    free((void *)(uintptr_t)bytes.data);
    assert_true(ffmpeg("-i late.mp4 -c copy -movflags +faststart early.mp4"));
    bytes = video_bytes("early.mp4");
    bytes.len = bytes.len * 2 / 3;
    struct video_decoder *decoder = decoder_new();
    assert_int_equal(video_begin(decoder, &bytes, &header, &err), STK_OK);
    assert_in_range(header.frames, 20, 55);
    struct video_want there = {header.frames - 10, 1, 10}, beyond = {header.frames - 10, 1, 11};
    assert_int_equal(video_read(decoder, &there, frame[0], &err), STK_OK);
    assert_int_equal(video_read(decoder, &beyond, frame[0], &err), STK_TRUNCATED);
    video_decoder_free(decoder);
    free((void *)(uintptr_t)bytes.data);
}

static void damage_in_the_middle_is_an_error_there_alone(void **state)
{
    (void)state;
    NEEDS_VIDEO();
    struct stk_error err;
    struct stk_video_header header;
    static uint8_t frames[60][128 * 96 * 3];
    assert_true(video_make(2, "-c:v mpeg4 -g 15 -bf 0 hurt.mp4"));
    struct stk_bytes bytes = video_bytes("hurt.mp4");
    uint8_t *data = (uint8_t *)(uintptr_t)bytes.data;
    for (size_t i = 0; i < 600; i++)
        data[bytes.len / 2 + i] = (uint8_t)random_at(1, i);
    struct video_decoder *decoder = decoder_new();
    assert_int_equal(video_begin(decoder, &bytes, &header, &err), STK_OK);
    assert_int_equal(header.frames, 60);
    struct video_want all = {0, 1, 60}, first = {0, 1, 15}, last = {45, 1, 15};
    assert_int_equal(video_read(decoder, &all, frames[0], &err), STK_CORRUPT);
    assert_non_null(strstr(err.what, "is damaged"));
    assert_int_equal(video_read(decoder, &first, frames[0], &err), STK_OK);
    assert_int_equal(video_read(decoder, &last, frames[0], &err), STK_OK);
    video_decoder_free(decoder);
    free(data);
}

/* Whatever the bytes are: a status, and no crash. */
static void random_damage_is_survived(void **state)
{
    (void)state;
    NEEDS_VIDEO();
    static uint8_t frames[4][4096 * 3];
    assert_true(video_make(0.5, "-vf scale=64:48 -c:v mpeg4 -g 5 -bf 1 small.mp4"));
    struct stk_bytes bytes = video_bytes("small.mp4");
    uint8_t *copy = malloc(bytes.len);
    struct video_decoder *decoder = decoder_new();
    for (uint64_t round = 0; round < 120; round++) {
        struct stk_video_header header;
        struct stk_bytes hurt = {copy, bytes.len};
        memcpy(copy, bytes.data, bytes.len);
        for (uint64_t i = 0; i < 8; i++)
            copy[random_below(round, i, bytes.len)] = (uint8_t)random_at(round, 100 + i);
        if (round % 4 == 0)
            hurt.len = random_below(round, 50, bytes.len);
        struct video_want want = {0, 1, 4};
        if (!video_begin(decoder, &hurt, &header, NULL) && header.width * header.height <= 4096)
            (void)(video_read(decoder, &want, frames[0], NULL) == STK_OK);
    }
    video_decoder_free(decoder);
    free(copy);
    free((void *)(uintptr_t)bytes.data);
}

/* --- threads and the plugin ------------------------------------------------------------------- */

struct reader {
    struct stk_bytes bytes;
    uint8_t frames[8][128 * 96 * 3];
};

static void *read_some(void *user)
{
    struct reader *reader = user;
    struct video_decoder *decoder = decoder_new();
    for (int i = 0; i < 5; i++) {
        struct stk_video_header header;
        struct video_want want = {11, 2, 8};
        assert_int_equal(video_begin(decoder, &reader->bytes, &header, NULL), STK_OK);
        assert_int_equal(video_read(decoder, &want, reader->frames[0], NULL), STK_OK);
    }
    video_decoder_free(decoder);
    return NULL;
}

static void threads_decode_the_same_frames(void **state)
{
    (void)state;
    NEEDS_VIDEO();
    static struct reader readers[4];
    pthread_t threads[4];
    assert_true(video_make(1, "-c:v mpeg4 -bf 2 shared.mp4"));
    struct stk_bytes bytes = video_bytes("shared.mp4");
    for (int i = 0; i < 4; i++) {
        readers[i].bytes = bytes;
        assert_int_equal(pthread_create(&threads[i], NULL, read_some, &readers[i]), 0);
    }
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    for (int i = 1; i < 4; i++)
        assert_memory_equal(readers[i].frames, readers[0].frames, sizeof readers[0].frames);
    free((void *)(uintptr_t)bytes.data);
}

/* In a process of its own: this one may have found the plugin. Returns what find said. */
static stk_status find_elsewhere(const char *folder, char what[320], char remedy[256])
{
    int ends[2];
    struct stk_error err = {0};
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        struct video_decoder *decoder;
        setenv("STOKER_PLUGINS", folder, 1);
        if (!video_decoder_new(&decoder, &err))
            video_decoder_free(decoder);
        ssize_t written = write(ends[1], &err, sizeof err);
        _exit(written != sizeof err);
    }
    assert_int_equal(read(ends[0], &err, sizeof err), sizeof err);
    waitpid(child, NULL, 0);
    close(ends[0]), close(ends[1]);
    strcpy(what, err.what);
    strcpy(remedy, err.remedy);
    return err.status;
}

static void another_decoder_is_refused_while_one_is_in_use(void **state)
{
    (void)state;
    NEEDS_VIDEO();
    struct stk_error err;
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/libstoker_video.so", getenv("STOKER_PLUGINS"));
    assert_int_equal(video_codec_use(path, &err), STK_OK); /* the same one */
    snprintf(path, sizeof path, "%s/plugins/solarize.so", getenv("STOKER_PLUGINS"));
    assert_int_equal(video_codec_use(path, &err), STK_USAGE);
    assert_non_null(strstr(err.what, "ffmpeg already"));
    assert_int_equal(video_codec_use("/nowhere/x.so", &err), STK_NOT_FOUND);
}

/* Before the others: nothing is loaded yet. */
static void without_a_plugin_the_words_say_what_to_install(void)
{
    char what[320], remedy[256];
    folder_new(video_folder);
    stk_status status = find_elsewhere(video_folder, what, remedy);
    if (status != STK_OK) { /* else one is installed on this system */
        assert_int_equal(status, STK_UNSUPPORTED);
        assert_non_null(strstr(what, "no decoder of videos"));
        assert_non_null(strstr(what, video_folder));
        assert_non_null(strstr(remedy, "ffmpeg"));
        text_write(path_in(video_folder, "libstoker_video.so"), "no library\n");
        assert_int_equal(find_elsewhere(video_folder, what, remedy), STK_UNSUPPORTED);
        assert_non_null(strstr(what, "does not load"));
        assert_non_null(strstr(remedy, "ffmpeg"));
    }
    folder_remove(video_folder);
}

static int setup(void **state)
{
    without_a_plugin_the_words_say_what_to_install();
    return video_setup(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_frame_of_every_codec_is_ffmpegs_own),
        cmocka_unit_test(frame_numbers_are_exact_when_the_rate_varies),
        cmocka_unit_test(pictures_are_turned_as_the_file_asks),
        cmocka_unit_test(a_cut_without_its_keyframe_begins_where_ffmpeg_begins),
        cmocka_unit_test(what_is_no_video_is_refused_with_words),
        cmocka_unit_test(a_file_cut_short_gives_the_frames_it_has),
        cmocka_unit_test(damage_in_the_middle_is_an_error_there_alone),
        cmocka_unit_test(random_damage_is_survived),
        cmocka_unit_test(threads_decode_the_same_frames),
        cmocka_unit_test(another_decoder_is_refused_while_one_is_in_use),
    };
    return cmocka_run_group_tests(tests, setup, video_teardown);
}
