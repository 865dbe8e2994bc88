/* The kernels of images: image_fused for every record, image_crop_* for crops and flips alone.
 *
 * image_crop_*: a thread makes 8 (or 4) pixels of a row. Pixels of 3 bytes begin anywhere, so it
 * loads the aligned words around them and shifts; a plane's values go out in one store of 16 bytes.
 * For 8 pixels of 3 channels to float16: 7 loads, 3 stores and some 250 instructions, for 24 bytes
 * in and 48 out. A batch of 256 x 224 x 224 is 50,000 warps of them, 12.5 million instructions: of
 * an H200 that issues 900 thousand million a second, half the time that the 116 MB take. So the
 * memory bounds it.
 *
 * image_fused: a thread makes a column of 4 pixels, with one set of weights across. Weights are
 * computed in doubles and become fixed point, and sums are rounded to levels between the passes:
 * all as the CPU twin does, so that the results are its own, level for level. Bilinear, scaled down
 * by 1.4 as RandomResizedCrop does of 500 x 375, takes 9 pixels of 3 bytes for each output: 27
 * loads of a byte and 36 multiplications, and some 100 instructions for the weights down, half of
 * them of doubles. Their issue bounds it, not the memory. */
#include "transform/image_kernel.h"
#include "transform/kernel_dtype.h"
#include "transform/kernel_words.h"

#define STRIP 4 /* rows of a thread of image_fused */

/* --- writing --------------------------------------------------------------------------------- */

DEVICE float clamped(float value, float least, float most)
{
    return value < least ? least : value > most ? most : value;
}

/* Where values are only cast image_device.c has put 1 and 0 there. */
DEVICE float pixel_value(const struct image_job *job, float level, int c)
{
    return level * job->multiply[c] + job->add[c];
}

DEVICE uint8_t byte_of(float value)
{
    return (uint8_t)clamped(round_even(value), 0.0f, 255.0f);
}

/* Element `at` of the sample. */
DEVICE void element_put(const struct image_job *job, uint64_t sample, uint64_t at, float value)
{
    switch (job->dtype) {
    case KERNEL_U8:
        ((uint8_t *)device_memory(sample))[at] = byte_of(value);
        break;
    case KERNEL_F16:
        ((uint16_t *)device_memory(sample))[at] = half_bits(value);
        break;
    case KERNEL_BF16:
        ((uint16_t *)device_memory(sample))[at] = bfloat_bits(value);
        break;
    default:
        ((float *)device_memory(sample))[at] = value;
    }
}

/* Where a row of a frame begins in the sample, in elements, and how far channels are apart. */
struct row_place {
    uint64_t first, channel;
};

DEVICE struct row_place row_place(const struct image_job *job, uint32_t channels, uint32_t frame,
                                  uint32_t y)
{
    struct row_place place;
    uint64_t plane = (uint64_t)job->width * job->height;
    uint32_t clip = job->clip ? job->clip : job->frames;
    if (job->channels_first) {
        uint32_t number = clip == 1 ? frame : frame / clip;
        uint32_t inside = frame - number * clip;
        place.channel = plane * clip;
        place.first = number * channels * place.channel + inside * plane + (uint64_t)y * job->width;
    } else {
        place.channel = 1;
        place.first = (frame * plane + (uint64_t)y * job->width) * channels;
    }
    return place;
}

struct pixel {
    int32_t levels[4]; /* 0-255 */
};

DEVICE void pixel_put(const struct image_job *job, uint64_t sample, int channels, uint32_t frame,
                      uint32_t x, uint32_t y, const struct pixel *pixel)
{
    struct row_place place = row_place(job, (uint32_t)channels, frame, y);
    uint64_t at = place.first + (job->channels_first ? x : (uint64_t)x * (uint32_t)channels);
    for (int c = 0; c < channels; c++)
        element_put(job, sample, at + (uint64_t)c * place.channel,
                    pixel_value(job, (float)pixel->levels[c], c));
}

/* --- reading --------------------------------------------------------------------------------- */

DEVICE const struct image_record *record_of(const struct image_job *job)
{
    return (const struct image_record *)device_memory(job->records +
                                                      (uint64_t)GRID_Y * job->record_stride);
}

/* Of the box's first pixel. */
DEVICE uint64_t box_start(const struct image_job *job, const struct image_record *record,
                          int channels, uint32_t frame)
{
    uint64_t source = record->source ? job->decoded : job->landed;
    uint64_t row = (uint64_t)frame * (uint32_t)record->height + (uint32_t)record->y;
    return source + record->pixels +
           (row * (uint32_t)record->width + (uint32_t)record->x) * (uint32_t)channels;
}

/* --- filters: see image_coefficients.c ------------------------------------------------------- */

#define PI 3.14159265358979323846
#define WEIGHT_BITS 22
#define WEIGHT_ONE (double)(1 << WEIGHT_BITS)
#define KEPT 32 /* weights that are kept; of more pixels they are computed again for every line */

/* One axis of a resize: `box` pixels become others. In doubles, as the CPU twin does: so its
 * fixed-point weights come out, and its sums, which matters to filters that overshoot. */
struct axis {
    double scale;          /* pixels of the box for each of the result */
    double shrink;         /* 1 / how much the filter is widened */
    double support;        /* how far it reaches, widened */
    int32_t filter, sharp; /* sharp: bicubic, not antialiased */
    int32_t box;
};

/* The pixels of one output pixel. */
struct taps {
    int32_t from, count;
    double middle; /* in pixels of the box */
    double unit;   /* a weight's fixed point: WEIGHT_BITS, and divided by the sum of all */
};

DEVICE double cubic_at(double x, double a)
{
    x = x < 0 ? -x : x;
    if (x < 1.0)
        return ((a + 2.0) * x - (a + 3.0)) * x * x + 1;
    return x < 2.0 ? (((x - 5) * x + 8) * x - 4) * a : 0.0;
}

/* |x| is small: sin(pi x) is that of x's distance to the nearest whole number, by its series. */
DEVICE double sinc_at(double x)
{
    int32_t whole = (int32_t)(x < 0 ? x - 0.5 : x + 0.5);
    double part = PI * (x - whole), square = part * part, sine = 0;
    for (int i = 21; i > 1; i -= 2)
        sine = (sine + 1) * square * (-1.0 / (i * (i - 1)));
    sine = (whole & 1 ? -part : part) * (sine + 1);
    return x == 0.0 ? 1.0 : sine / (PI * x);
}

/* The sharp cubic is another (a = -0.75), and repeats the outermost pixel beyond the edge. */
DEVICE double sharp_weight_at(const struct axis *axis, double middle, int32_t pixel)
{
    int32_t at = (int32_t)(middle + 0.5) - 1, last = axis->box - 1; /* floor(middle - 0.5) */
    double part = middle - 0.5 - at, weight = 0;
    for (int32_t i = -1; i < 3; i++) {
        int32_t taken = at + i < 0 ? 0 : at + i > last ? last : at + i;
        weight += taken == pixel ? cubic_at(i - part, -0.75) : 0.0;
    }
    return weight;
}

DEVICE double weight_at(const struct axis *axis, double middle, int32_t pixel)
{
    double x = (pixel - middle + 0.5) * axis->shrink;
    switch (axis->filter) {
    case IMAGE_KERNEL_BICUBIC:
        return axis->sharp ? sharp_weight_at(axis, middle, pixel) : cubic_at(x, -0.5);
    case IMAGE_KERNEL_LANCZOS:
        return x >= -3.0 && x < 3.0 ? sinc_at(x) * sinc_at(x / 3) : 0.0;
    case IMAGE_KERNEL_AREA:
        return x > -0.5 && x <= 0.5 ? 1.0 : 0.0;
    default:
        x = 1.0 - (x < 0 ? -x : x);
        return x > 0 ? x : 0.0;
    }
}

DEVICE int32_t fixed_weight_at(const struct axis *axis, const struct taps *taps, int32_t k)
{
    double weight = weight_at(axis, taps->middle, taps->from + k) * taps->unit;
    return (int32_t)(weight < 0 ? weight - 0.5 : weight + 0.5);
}

DEVICE double filter_support(int32_t filter)
{
    return filter == IMAGE_KERNEL_BILINEAR  ? 1.0
           : filter == IMAGE_KERNEL_BICUBIC ? 2.0
           : filter == IMAGE_KERNEL_LANCZOS ? 3.0
                                            : 0.5;
}

DEVICE struct axis axis_make(int32_t filter, int antialias, int32_t box, int32_t to)
{
    struct axis axis;
    int narrow = !antialias && filter <= IMAGE_KERNEL_BICUBIC;
    axis.scale = (double)box / to;
    double widen = axis.scale > 1.0 && !narrow ? axis.scale : 1.0;
    axis.shrink = 1.0 / widen;
    axis.support = filter_support(filter) * widen;
    axis.filter = filter;
    axis.sharp = !antialias && filter == IMAGE_KERNEL_BICUBIC;
    axis.box = box;
    return axis;
}

DEVICE struct axis axis_across(int32_t filter, const struct image_record *record)
{
    return axis_make(filter, record->antialias, record->box_width, record->to_width);
}

/* Output pixel number `at`. */
DEVICE struct taps taps_find(const struct axis *axis, int32_t at)
{
    struct taps taps;
    taps.middle = (at + 0.5) * axis->scale;
    int32_t first = (int32_t)(taps.middle - axis->support + 0.5);
    int32_t stop = (int32_t)(taps.middle + axis->support + 0.5);
    stop = stop > axis->box ? axis->box : stop;
    first = first < 0 ? 0 : first;
    taps.from = first < stop ? first : stop - 1;
    taps.count = stop - taps.from;
    double sum = 0;
    for (int32_t k = 0; k < taps.count; k++)
        sum += weight_at(axis, taps.middle, taps.from + k);
    taps.unit = axis->sharp ? WEIGHT_ONE : WEIGHT_ONE / sum;
    return taps;
}

DEVICE int32_t level_of(int32_t sum)
{
    sum >>= WEIGHT_BITS;
    return sum < 0 ? 0 : sum > 255 ? 255 : sum;
}

#define HALF (1 << (WEIGHT_BITS - 1))

/* What all pixels of a column share. */
struct view {
    const uint8_t *pixel; /* of the box's first row, under the first tap across */
    int64_t stride;
    struct taps across;
    const int32_t *kept; /* weights across, as many as are kept */
    const struct image_record *record;
    int32_t filter;
};

DEVICE int32_t weight_across(const struct view *view, int32_t k)
{
    if (k < KEPT)
        return view->kept[k];
    struct axis axis = axis_across(view->filter, view->record); /* not held in registers for this */
    return fixed_weight_at(&axis, &view->across, k);
}

/* Rows are summed across, made levels, and summed down. */
DEVICE struct pixel weigh_across_first(const struct view *view, int channels,
                                       const struct axis *axis, const struct taps *down)
{
    struct pixel sums = {{HALF, HALF, HALF, HALF}};
    const uint8_t *row = view->pixel + down->from * view->stride;
    for (int32_t i = 0; i < down->count; i++, row += view->stride) {
        int32_t across[4] = {HALF, HALF, HALF, HALF}, weight = fixed_weight_at(axis, down, i);
        const uint8_t *pixel = row;
        for (int32_t k = 0; k < view->across.count; k++, pixel += channels) {
            int32_t part = weight_across(view, k);
            for (int c = 0; c < channels; c++)
                across[c] += part * pixel[c];
        }
        for (int c = 0; c < channels; c++)
            sums.levels[c] += weight * level_of(across[c]);
    }
    for (int c = 0; c < channels; c++)
        sums.levels[c] = level_of(sums.levels[c]);
    return sums;
}

/* Columns are summed down, made levels, and summed across. */
DEVICE struct pixel weigh_down_first(const struct view *view, int channels, const struct axis *axis,
                                     const struct taps *down)
{
    struct pixel sums = {{HALF, HALF, HALF, HALF}};
    int32_t kept[KEPT];
    for (int32_t i = 0; i < down->count && i < KEPT; i++)
        kept[i] = fixed_weight_at(axis, down, i);
    const uint8_t *column = view->pixel + down->from * view->stride;
    for (int32_t k = 0; k < view->across.count; k++, column += channels) {
        int32_t sum[4] = {HALF, HALF, HALF, HALF}, weight = weight_across(view, k);
        const uint8_t *pixel = column;
        for (int32_t i = 0; i < down->count; i++, pixel += view->stride) {
            int32_t part = i < KEPT ? kept[i] : fixed_weight_at(axis, down, i);
            for (int c = 0; c < channels; c++)
                sum[c] += part * pixel[c];
        }
        for (int c = 0; c < channels; c++)
            sums.levels[c] += weight * level_of(sum[c]);
    }
    for (int c = 0; c < channels; c++)
        sums.levels[c] = level_of(sums.levels[c]);
    return sums;
}

/* --- columns of pixels: every filter ------------------------------------------------------- */

/* Nearest: pixel `at` of `to`. The CPU twin adds up `scale`, as Pillow does. Where that is exact,
 * and where the sum is not near a whole number, a product gives the same pixel. */
DEVICE int32_t nearest_pixel(int32_t box, int32_t to, int32_t at)
{
    double scale = (double)box / to, place = (at + 0.5) * scale;
    double fine = scale * 1048576.0, part = place - (int64_t)place;
    if (fine != (double)(int64_t)fine && (part < 1e-6 || part > 1 - 1e-6)) {
        place = scale * 0.5;
        for (int32_t i = 0; i < at; i++)
            place += scale;
    }
    int32_t pixel = (int32_t)place;
    return pixel < box ? pixel : box - 1;
}

/* Which of the passes the CPU twin does first. */
DEVICE int is_down_first(const struct image_record *record)
{
    int64_t less_wide = record->box_width - record->to_width;
    int64_t less_high = record->box_height - record->to_height;
    return record->antialias && less_wide && less_high > 0 && less_high > 2 * less_wide;
}

/* A column of STRIP pixels of the result. */
struct column {
    uint32_t frame, x, y; /* of the first */
    int32_t from_x;       /* in the resized box, where it is inside */
    uint64_t sample;
};

/* Row of the resized box that output row y is. */
DEVICE int32_t row_of(const struct image_job *job, const struct image_record *record, uint32_t y)
{
    return record->out_y + (int32_t)(record->flip_y ? job->height - 1 - y : y);
}

DEVICE void column_fill(const struct image_job *job, const struct image_record *record,
                        int channels, const struct column *column, uint32_t y)
{
    struct pixel pixel;
    for (int c = 0; c < channels; c++)
        pixel.levels[c] = record->fill[c];
    pixel_put(job, column->sample, channels, column->frame, column->x, y, &pixel);
}

/* Copied pixels, or the nearest. */
DEVICE void column_pick(const struct image_job *job, const struct image_record *record,
                        int channels, const struct column *column, uint32_t y, int32_t row)
{
    struct pixel pixel;
    int32_t x = record->box_width == record->to_width
                    ? column->from_x
                    : nearest_pixel(record->box_width, record->to_width, column->from_x);
    if (record->box_height != record->to_height)
        row = nearest_pixel(record->box_height, record->to_height, row);
    const uint8_t *from =
        (const uint8_t *)device_memory(box_start(job, record, channels, column->frame)) +
        ((int64_t)row * record->width + x) * channels;
    for (int c = 0; c < channels; c++)
        pixel.levels[c] = from[c];
    pixel_put(job, column->sample, channels, column->frame, column->x, y, &pixel);
}

DEVICE void column_weigh(const struct image_job *job, const struct image_record *record,
                         int channels, int32_t filter, const struct column *column)
{
    int32_t kept[KEPT];
    struct axis across = axis_across(filter, record);
    struct axis down = axis_make(filter, record->antialias, record->box_height, record->to_height);
    struct view view = {
        0,     (int64_t)record->width * channels, taps_find(&across, column->from_x), kept, record,
        filter};
    for (int32_t k = 0; k < view.across.count && k < KEPT; k++)
        kept[k] = fixed_weight_at(&across, &view.across, k);
    view.pixel = (const uint8_t *)device_memory(box_start(job, record, channels, column->frame)) +
                 (int64_t)view.across.from * channels;
    int turned = is_down_first(record);
    for (uint32_t y = column->y; y < column->y + STRIP && y < job->height; y++) {
        int32_t row = row_of(job, record, y);
        if (row < 0 || row >= record->to_height) {
            column_fill(job, record, channels, column, y);
            continue;
        }
        struct taps taps = taps_find(&down, row);
        struct pixel pixel = turned ? weigh_down_first(&view, channels, &down, &taps)
                                    : weigh_across_first(&view, channels, &down, &taps);
        pixel_put(job, column->sample, channels, column->frame, column->x, y, &pixel);
    }
}

DEVICE void column_make(const struct image_job *job, const struct image_record *record,
                        int channels, const struct column *column)
{
    int copied = record->box_width == record->to_width && record->box_height == record->to_height;
    int picked = copied || record->filter == IMAGE_KERNEL_NEAREST;
    int seen = column->from_x >= 0 && column->from_x < record->to_width;
    if (seen && !picked) {
        if (record->filter == IMAGE_KERNEL_BILINEAR) /* without asking which at every weight */
            column_weigh(job, record, channels, IMAGE_KERNEL_BILINEAR, column);
        else
            column_weigh(job, record, channels, record->filter, column);
        return;
    }
    for (uint32_t y = column->y; y < column->y + STRIP && y < job->height; y++) {
        int32_t row = row_of(job, record, y);
        if (seen && row >= 0 && row < record->to_height)
            column_pick(job, record, channels, column, y, row);
        else
            column_fill(job, record, channels, column, y);
    }
}

/* --- the kernel for every record ------------------------------------------------------------- */

DEVICE void fused(const struct image_job *job, int channels)
{
    uint32_t strips = (job->height + STRIP - 1) / STRIP;
    uint64_t number = GRID_X;
    if (number >= (uint64_t)strips * job->width * job->frames)
        return;
    uint32_t line = (uint32_t)number / job->width, x = (uint32_t)number - line * job->width;
    uint32_t frame = job->frames == 1 ? 0 : line / strips, strip = line - frame * strips;
    const struct image_record *record = record_of(job);
    struct column column = {frame, x, strip * STRIP,
                            record->out_x + (int32_t)(record->flip_x ? job->width - 1 - x : x),
                            job->out + GRID_Y * job->item};
    column_make(job, record, channels, &column);
}

KERNEL(image_fused)(struct image_job job)
{
    switch (job.channels) { /* a number that is known keeps sums in registers */
    case 1:
        fused(&job, 1);
        break;
    case 3:
        fused(&job, 3);
        break;
    case 4:
        fused(&job, 4);
        break;
    default:
        fused(&job, 2);
    }
}

/* --- crops and flips alone ------------------------------------------------------------------- */

/* The low 32 bits of two words, from bit `shift` (0-31) on. */
DEVICE uint32_t words_shift(uint32_t low, uint32_t high, uint32_t shift)
{
    return (uint32_t)(((uint64_t)high << 32 | low) >> shift);
}

/* pixels[k]: channel c in bits 8 * c. count is 4 or 8; no byte is read beyond the words that hold
 * pixels. */
DEVICE void pixels_load(uint64_t address, int count, int channels, uint32_t *pixels)
{
    const uint32_t *from = (const uint32_t *)device_memory(address & ~(uint64_t)3);
    uint32_t begin = (uint32_t)address & 3, shift = 8 * begin;
    int words = count * channels / 4;
    uint32_t raw[9];
    for (int i = 0; i < words; i++)
        raw[i] = from[i];
    raw[words] = begin ? from[words] : 0;
    for (int i = 0; i < words; i++)
        raw[i] = words_shift(raw[i], raw[i + 1], shift);
    raw[words] = 0;
    for (int k = 0; k < count; k++) {
        int byte = k * channels;
        pixels[k] = words_shift(raw[byte / 4], raw[byte / 4 + 1], 8 * (uint32_t)(byte % 4));
    }
}

DEVICE uint32_t element_bits(const struct image_job *job, int dtype, uint32_t pixel, int c)
{
    uint32_t level = pixel >> (8 * c) & 255;
    if (dtype == KERNEL_U8 && job->plain)
        return level;
    float value = pixel_value(job, (float)level, c);
    switch (dtype) {
    case KERNEL_U8:
        return byte_of(value);
    case KERNEL_F16:
        return half_bits(value);
    case KERNEL_BF16:
        return bfloat_bits(value);
    default:
        return float_bits(value);
    }
}

/* A plane's elements of `count` pixels. */
DEVICE void plane_store(const struct image_job *job, uint64_t to, int dtype, const uint32_t *pixels,
                        int count, int c)
{
    int size = dtype == KERNEL_U8 ? 1 : dtype == KERNEL_F32 ? 4 : 2;
    uint32_t words[8];
    for (int i = 0; i < count * size / 4; i++)
        words[i] = 0;
    for (int k = 0; k < count; k++)
        words[k * size / 4] |= element_bits(job, dtype, pixels[k], c) << (8 * (k * size % 4));
    words_store(to, words, count * size / 4);
}

DEVICE void packed_store(const struct image_job *job, uint64_t to, int dtype,
                         const uint32_t *pixels, int count, int channels)
{
    int size = dtype == KERNEL_U8 ? 1 : dtype == KERNEL_F32 ? 4 : 2;
    uint32_t words[16];
    for (int i = 0; i < count * channels * size / 4; i++)
        words[i] = 0;
    for (int k = 0; k < count; k++)
        for (int c = 0; c < channels; c++) {
            int byte = (k * channels + c) * size;
            words[byte / 4] |= element_bits(job, dtype, pixels[k], c) << (8 * (byte % 4));
        }
    words_store(to, words, count * channels * size / 4);
}

/* `count` pixels of a row; the row has a multiple of them. */
DEVICE void crop(const struct image_job *job, int dtype, int count, int channels)
{
    uint32_t groups = job->width / (uint32_t)count;
    uint64_t number = GRID_X;
    if (number >= (uint64_t)groups * job->height * job->frames)
        return;
    uint32_t line = (uint32_t)number / groups;
    uint32_t x = ((uint32_t)number - line * groups) * (uint32_t)count;
    uint32_t frame = job->frames == 1 ? 0 : line / job->height, y = line - frame * job->height;
    const struct image_record *record = record_of(job);
    int flipped = record->flip_x;
    uint32_t from_x = (uint32_t)record->out_x + (flipped ? job->width - (uint32_t)count - x : x);
    uint32_t from_y = (uint32_t)record->out_y + (record->flip_y ? job->height - 1 - y : y);
    uint32_t pixels[8];
    pixels_load(box_start(job, record, channels, frame) +
                    ((uint64_t)from_y * (uint32_t)record->width + from_x) * (uint32_t)channels,
                count, channels, pixels);
    for (int k = 0; k < count / 2; k++) {
        uint32_t left = pixels[k], right = pixels[count - 1 - k];
        pixels[k] = flipped ? right : left;
        pixels[count - 1 - k] = flipped ? left : right;
    }
    int size = dtype == KERNEL_U8 ? 1 : dtype == KERNEL_F32 ? 4 : 2;
    struct row_place place = row_place(job, (uint32_t)channels, frame, y);
    uint64_t to = job->out + GRID_Y * job->item + place.first * (uint32_t)size;
    if (job->channels_first)
        for (int c = 0; c < channels; c++)
            plane_store(job, to + ((uint64_t)c * place.channel + x) * (uint32_t)size, dtype, pixels,
                        count, c);
    else
        packed_store(job, to + (uint64_t)x * (uint32_t)(channels * size), dtype, pixels, count,
                     channels);
}

DEVICE void crop_any(const struct image_job *job, int dtype, int count)
{
    switch (job->channels) {
    case 1:
        crop(job, dtype, count, 1);
        break;
    case 3:
        crop(job, dtype, count, 3);
        break;
    default:
        crop(job, dtype, count, 4);
    }
}

KERNEL(image_crop_byte)(struct image_job job)
{
    crop_any(&job, KERNEL_U8, 8);
}

KERNEL(image_crop_half)(struct image_job job)
{
    crop_any(&job, KERNEL_F16, 8);
}

KERNEL(image_crop_bfloat)(struct image_job job)
{
    crop_any(&job, KERNEL_BF16, 8);
}

KERNEL(image_crop_float)(struct image_job job)
{
    crop_any(&job, KERNEL_F32, 4);
}
