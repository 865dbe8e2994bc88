/* stk_gen_video: striped shapes that all go the same way over a background that stands still. The
 * class gives the direction, and how fast they go where there are more than eight. */
#include <math.h>

#include "stoker/pack.h"

#include "base/fail.h"
#include "base/memory.h"
#include "pack/avi_write.h"
#include "pack/dice.h"
#include "pack/gen_crew.h"
#include "pack/image_pattern.h"
#include "pack/jpeg_write.h"

#define LEAST_SIDE 16
#define MOST_SIDE 4096
#define MOST_FRAMES 100000
#define DIRECTIONS 8

enum { KEY_VIDEO = 0x76696465, KEY_SHAPES, KEY_FRAME };

struct video_job {
    const struct stk_gen_video_options *options;
    struct image_pattern *pattern;
    struct avi_format format;
};

struct video_maker {
    const struct video_job *job;
    struct jpeg_writer *jpeg;
    struct avi_writer avi;
    uint8_t *pixels;
    void *room;
};

/* --- one sample ------------------------------------------------------------------------------ */

/* By how many pixels a frame, along x and y. */
static void class_motion(uint32_t label, uint32_t classes, double least, double motion[2])
{
    uint32_t directions = classes < DIRECTIONS ? classes : DIRECTIONS;
    double angle = 2 * M_PI * (label % directions) / directions;
    double speed = least * 0.012 * (1 + label / directions % 4);

    motion[0] = speed * cos(angle);
    motion[1] = speed * sin(angle);
}

/* Larger shapes than a picture has, with stripes that move along with them. */
static void set_shapes(struct image_scene *scene, uint64_t key)
{
    double least = scene->width < scene->height ? scene->width : scene->height;
    struct dice dice = {key, 0};

    for (uint32_t i = 0; i < scene->count; i++) {
        struct image_shape *shape = &scene->shapes[i];
        double angle = dice_between(&dice, 0, 2 * M_PI);
        double frequency = dice_between(&dice, 0.04, 0.1);
        shape->width = (float)(least * dice_between(&dice, 0.08, 0.25));
        shape->height = (float)(least * dice_between(&dice, 0.08, 0.25));
        shape->texture = 0;
        shape->grating = (float)dice_between(&dice, 20, 50);
        shape->wave[0] = (float)(frequency * cos(angle));
        shape->wave[1] = (float)(frequency * sin(angle));
    }
}

/* Where a thing is that leaves on one side and comes back on the other. */
static float wrapped(double at, double margin, double side)
{
    double whole = side + 2 * margin, from = at + margin;

    return (float)(from - whole * floor(from / whole) - margin);
}

static void move_shapes(struct image_scene *scene, const struct image_scene *start,
                        const double motion[2], uint32_t frame)
{
    for (uint32_t i = 0; i < scene->count; i++) {
        struct image_shape *shape = &scene->shapes[i];
        const struct image_shape *from = &start->shapes[i];
        double margin = 2 * fmax(from->width, from->height);
        double time = frame * (0.8 + 0.1 * (i % 5)); /* not all as fast */
        shape->x = wrapped(from->x + motion[0] * time, margin, scene->width);
        shape->y = wrapped(from->y + motion[1] * time, margin, scene->height);
    }
}

static stk_status add_frame(struct video_maker *video, const struct image_scene *scene,
                            struct text *to, struct stk_error *err)
{
    struct jpeg_image image = {video->pixels, scene->width, scene->height, 1};
    struct jpeg_write_options how = {video->job->options->quality, 420, 0};

    image_scene_draw(video->job->pattern, scene, video->pixels, video->room);
    avi_writer_begin_frame(&video->avi);
    stk_status status = jpeg_writer_add(video->jpeg, &image, &how, to, err);
    avi_writer_end_frame(&video->avi);
    if (!status && to->len - video->avi.first > AVI_LIMIT) {
        status = fail(err, STK_LIMIT, "a video of more than 1 GiB does not fit into an AVI file");
        fail_remedy(err, "ask for fewer or smaller frames");
    }
    return status;
}

static stk_status maker_make(void *maker, uint64_t sample, uint32_t label, struct text *to,
                             struct stk_error *err)
{
    struct video_maker *video = maker;
    const struct stk_gen_video_options *options = video->job->options;
    uint64_t key = random_key(random_key(options->common.seed, KEY_VIDEO), sample);
    uint32_t least = options->width < options->height ? options->width : options->height;
    struct image_scene start, scene;
    stk_status status = STK_OK;
    double motion[2];

    image_scene_init(&start, options->width, options->height, key);
    start.noise *= 0.5f; /* frames are smoother than photographs */
    start.contrast *= 0.7f;
    set_shapes(&start, random_key(key, KEY_SHAPES));
    class_motion(label, options->common.classes, least, motion);
    scene = start;
    avi_writer_begin(&video->avi, &video->job->format, to);
    for (uint32_t i = 0; i < options->frames && !status && !to->failed; i++) {
        move_shapes(&scene, &start, motion, i);
        scene.noise_key = random_key(random_key(key, KEY_FRAME), i);
        status = add_frame(video, &scene, to, err);
    }
    avi_writer_end(&video->avi);
    return status;
}

/* --- the whole ------------------------------------------------------------------------------- */

static void maker_close(void *maker)
{
    struct video_maker *video = maker;

    if (!video)
        return;
    jpeg_writer_free(video->jpeg);
    avi_writer_reset(&video->avi);
    memory_free(video->pixels);
    memory_free(video->room);
    memory_free(video);
}

static stk_status maker_open(void **out, const void *job, struct stk_error *err)
{
    const struct video_job *video_job = job;
    const struct stk_gen_video_options *options = video_job->options;
    uint64_t bytes = (uint64_t)options->width * options->height * 3;
    struct video_maker *video = memory_zero(1, sizeof(*video));

    *out = video; /* closed by the crew in any case */
    if (!video)
        return fail_memory(err, sizeof(*video));
    video->job = video_job;
    video->pixels = memory_alloc(bytes);
    video->room = memory_alloc(image_pattern_room(options->width));
    if (!video->pixels || !video->room)
        return fail_memory(err, bytes);
    return jpeg_writer_new(&video->jpeg, err);
}

static stk_status check_options(const struct stk_gen_video_options *options, struct stk_error *err)
{
    if (options->width < LEAST_SIDE || options->width > MOST_SIDE || options->height < LEAST_SIDE ||
        options->height > MOST_SIDE)
        return fail(err, STK_USAGE, "a video's sides are %d to %d pixels long", LEAST_SIDE,
                    MOST_SIDE);
    if (options->frames < 1 || options->frames > MOST_FRAMES)
        return fail(err, STK_USAGE, "a video has 1 to %d frames", MOST_FRAMES);
    if (!(options->fps >= 0.1 && options->fps <= 1000))
        return fail(err, STK_USAGE, "a video shows 0.1 to 1000 frames a second");
    if (options->quality < 1 || options->quality > 100)
        return fail(err, STK_USAGE, "the quality of the frames is 1 to 100");
    return STK_OK;
}

stk_status stk_gen_video(struct stk_context *context, const struct stk_gen_video_options *options,
                         struct stk_pack_result *result, struct stk_error *err)
{
    static const struct gen_kind kind = {".avi", maker_open, maker_make, maker_close};
    struct video_job job = {.options = options};
    stk_status status = check_options(options, err);

    *result = (struct stk_pack_result){0};
    if (status)
        return status;
    job.format = (struct avi_format){options->width, options->height, 0, 1};
    if (options->fps != floor(options->fps))
        job.format.scale = 1000; /* 29.97 is 29970 / 1000 */
    job.format.rate = (uint32_t)lrint(options->fps * job.format.scale);
    uint32_t longest = options->width > options->height ? options->width : options->height;
    status = image_pattern_new(&job.pattern, longest, options->common.seed, err);
    if (!status)
        status = gen_crew_run(context, &options->common, &kind, &job, result, err);
    image_pattern_free(job.pattern);
    return status;
}
