/* stk_gen_images: each sample's scene is drawn from (seed, sample) alone, then encoded. */
#include "stoker/pack.h"

#include "base/fail.h"
#include "base/memory.h"
#include "base/random.h"
#include "pack/gen_crew.h"
#include "pack/image_pattern.h"
#include "pack/jpeg_write.h"
#include "pack/png_write.h"

#define LEAST_SIDE 16
#define MOST_SIDE 16384
#define PNG_LEVEL 3 /* noise does not get smaller with more */

enum { KEY_IMAGE = 0x696d6167, KEY_SIZE, KEY_MARK };

struct images_job {
    const struct stk_gen_images_options *options;
    struct image_pattern *pattern;
    uint32_t most[2]; /* width and height that vary may lead to */
};

struct images_maker {
    const struct images_job *job;
    struct jpeg_writer *jpeg; /* NULL for PNG */
    uint8_t *pixels;
    void *room;
};

static void maker_close(void *maker)
{
    struct images_maker *images = maker;

    if (!images)
        return;
    jpeg_writer_free(images->jpeg);
    memory_free(images->pixels);
    memory_free(images->room);
    memory_free(images);
}

static stk_status maker_open(void **out, const void *job, struct stk_error *err)
{
    const struct images_job *images_job = job;
    uint64_t bytes = (uint64_t)images_job->most[0] * images_job->most[1] * 3;
    struct images_maker *images = memory_zero(1, sizeof(*images));
    stk_status status = STK_OK;

    *out = images; /* closed by the crew in any case */
    if (!images)
        return fail_memory(err, sizeof(*images));
    images->job = images_job;
    images->pixels = memory_alloc(bytes);
    images->room = memory_alloc(image_pattern_room(images_job->most[0]));
    if (!images->pixels || !images->room)
        return fail_memory(err, bytes);
    if (images_job->options->format == STK_GEN_JPEG)
        status = jpeg_writer_new(&images->jpeg, err);
    return status;
}

static uint32_t varied(uint32_t side, double vary, uint64_t key, uint64_t counter)
{
    double factor = 1 + vary * (2 * random_unit(key, counter) - 1);
    uint32_t result = (uint32_t)(side * factor + 0.5);

    return result < 1 ? 1 : result;
}

static stk_status maker_make(void *maker, uint64_t sample, uint32_t label, struct text *to,
                             struct stk_error *err)
{
    struct images_maker *images = maker;
    const struct stk_gen_images_options *options = images->job->options;
    uint64_t key = random_key(random_key(options->common.seed, KEY_IMAGE), sample);
    uint64_t size_key = random_key(key, KEY_SIZE);
    struct image_scene scene;

    image_scene_init(&scene, varied(options->width, options->vary, size_key, 0),
                     varied(options->height, options->vary, size_key, 1), key);
    image_scene_mark(&scene, label, options->common.classes, random_key(key, KEY_MARK));
    image_scene_draw(images->job->pattern, &scene, images->pixels, images->room);
    if (images->jpeg) {
        struct jpeg_image image = {images->pixels, scene.width, scene.height, 1};
        struct jpeg_write_options how = {options->quality, options->subsampling,
                                         options->progressive};
        return jpeg_writer_add(images->jpeg, &image, &how, to, err);
    }
    image_to_rgb(images->pixels, (uint64_t)scene.width * scene.height);
    struct png_picture picture = {images->pixels, scene.width, scene.height, 3};
    return png_write(&picture, PNG_LEVEL, to, err);
}

static stk_status check_options(const struct stk_gen_images_options *options, struct stk_error *err)
{
    if (options->width < LEAST_SIDE || options->width > MOST_SIDE || options->height < LEAST_SIDE ||
        options->height > MOST_SIDE)
        return fail(err, STK_USAGE, "an image's sides are %d to %d pixels long", LEAST_SIDE,
                    MOST_SIDE);
    if (!(options->vary >= 0 && options->vary <= 0.9))
        return fail(err, STK_USAGE, "sides can vary by 0 to 0.9 of their length");
    if (options->format == STK_GEN_PNG)
        return png_write_check(err);
    if (options->quality < 1 || options->quality > 100)
        return fail(err, STK_USAGE, "the quality of a JPEG is 1 to 100");
    if (options->subsampling != 420 && options->subsampling != 444)
        return fail(err, STK_USAGE, "the subsampling is 420 or 444");
    return STK_OK;
}

stk_status stk_gen_images(struct stk_context *context, const struct stk_gen_images_options *options,
                          struct stk_pack_result *result, struct stk_error *err)
{
    const struct gen_kind kind = {options->format == STK_GEN_PNG ? ".png" : ".jpg", maker_open,
                                  maker_make, maker_close};
    struct images_job job = {.options = options};
    stk_status status = check_options(options, err);

    *result = (struct stk_pack_result){0};
    if (status)
        return status;
    job.most[0] = (uint32_t)(options->width * (1 + options->vary)) + 1;
    job.most[1] = (uint32_t)(options->height * (1 + options->vary)) + 1;
    uint32_t longest = job.most[0] > job.most[1] ? job.most[0] : job.most[1];
    status = image_pattern_new(&job.pattern, longest, options->common.seed, err);
    if (!status)
        status = gen_crew_run(context, &options->common, &kind, &job, result, err);
    image_pattern_free(job.pattern);
    return status;
}
