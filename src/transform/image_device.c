#include "transform/image_device.h"

#include <assert.h>
#include <string.h>

#include "stoker/tensor.h"
#include "base/fail.h"

#define THREADS 256
#define STRIP 4         /* rows of a thread of image_fused */
#define MOST_ROWS 65535 /* of a grid */

static_assert((int)IMAGE_KERNEL_BILINEAR == (int)IMAGE_BILINEAR &&
                  (int)IMAGE_KERNEL_BICUBIC == (int)IMAGE_BICUBIC &&
                  (int)IMAGE_KERNEL_AREA == (int)IMAGE_AREA &&
                  (int)IMAGE_KERNEL_NEAREST == (int)IMAGE_NEAREST &&
                  (int)IMAGE_KERNEL_LANCZOS == (int)IMAGE_LANCZOS,
              "the kernel's filters are those of image_geometry.h");
static_assert(sizeof(struct image_record) == 80, "image_record has no holes");

void image_record_set(struct image_record *record, const struct image_geometry *geometry,
                      uint32_t source, uint64_t offset)
{
    *record = (struct image_record){
        .pixels = offset,
        .source = (int32_t)source,
        .width = geometry->width,
        .height = geometry->height,
        .x = geometry->x,
        .y = geometry->y,
        .box_width = geometry->box_width,
        .box_height = geometry->box_height,
        .resized = geometry->resized,
        .filter = (int32_t)geometry->filter,
        .antialias = geometry->antialias,
        .to_width = geometry->to_width,
        .to_height = geometry->to_height,
        .out_x = geometry->out_x,
        .out_y = geometry->out_y,
        .flip_x = geometry->flip_x,
        .flip_y = geometry->flip_y,
    };
    memcpy(record->fill, geometry->fill, sizeof record->fill);
}

/* A kernel, and the pixels that one of its threads makes. */
struct choice {
    const char *name;
    uint32_t columns, rows;
};

static struct choice crop_choice(uint32_t dtype)
{
    switch (dtype) {
    case STK_U8:
        return (struct choice){"image_crop_byte", 8, 1};
    case STK_F16:
        return (struct choice){"image_crop_half", 8, 1};
    case STK_BF16:
        return (struct choice){"image_crop_bfloat", 8, 1};
    default:
        return (struct choice){"image_crop_float", 4, 1};
    }
}

/* The fast kernels store 16 bytes at once: rows, samples and planes begin at a multiple of them. */
static struct choice choose(const struct image_job *job, int resizes)
{
    struct choice crop = crop_choice(job->dtype);
    int aligned = job->width % crop.columns == 0 && job->out % 16 == 0 && job->item % 16 == 0;
    if (!resizes && aligned && job->channels != 2)
        return crop;
    return (struct choice){"image_fused", 1, STRIP};
}

stk_status image_device_run(struct gpu *gpu, const struct image_job *job, int resizes,
                            struct gpu_stream *stream, struct stk_error *err)
{
    assert(job->channels >= 1 && job->channels <= 4 && job->frames > 0);
    struct choice choice = choose(job, resizes);
    uint64_t lines = (uint64_t)job->frames * ((job->height + choice.rows - 1) / choice.rows);
    uint64_t threads = lines * (job->width / choice.columns);
    struct gpu_kernel *kernel;
    if (threads >= UINT32_MAX)
        return fail(err, STK_UNSUPPORTED,
                    "a sample of %u frames of %u x %u is too large to be "
                    "made on the device",
                    job->frames, job->width, job->height);
    stk_status status = gpu_kernel(gpu, "image_kernel", choice.name, &kernel, err);
    for (uint32_t at = 0; at < job->count && threads && !status; at += MOST_ROWS) {
        uint32_t count = job->count - at < MOST_ROWS ? job->count - at : MOST_ROWS;
        struct gpu_grid grid = {(uint32_t)((threads + THREADS - 1) / THREADS), count, THREADS};
        struct image_job part = *job;
        part.records += (uint64_t)at * job->record_stride;
        part.out += at * job->item;
        part.count = count;
        for (int c = 0; c < 4 && job->plain; c++) {
            part.multiply[c] = 1;
            part.add[c] = 0;
        }
        status = gpu_launch(gpu, kernel, &grid, &part, sizeof part, stream, err);
    }
    return status;
}
