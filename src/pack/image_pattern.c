#include "pack/image_pattern.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/fail.h"
#include "base/memory.h"
#include "base/random.h"
#include "pack/dice.h"

#define LEAST_SIDE 256 /* of the tables */
#define MOST_SIDE 2048
#define FIRST_SIDE 4 /* of the coarsest octave */
#define NOISE_COUNT 65536
#define NOISE_ONE 64   /* a standard deviation of the noise */
#define TABLE_ONE 1024 /* a standard deviation of a table, about */
#define ONE 16         /* a level while a row is worked on */
#define SINE_BITS 10
#define SINE_COUNT (1 << SINE_BITS)
#define SINE_ONE 1024
#define ROW_PAD 16 /* values behind a row */

enum { KEY_LUMA = 1, KEY_CHROMA, KEY_SENSOR };

struct image_pattern {
    uint32_t side;          /* a power of two */
    int16_t *luma, *smooth; /* side * side, periodic: with and without the finest octaves */
    int16_t *noise;         /* NOISE_COUNT, and side more */
    int16_t sine[SINE_COUNT];
};

/* --- tables ---------------------------------------------------------------------------------- */

/* Sums of four uniform numbers are near enough to Gaussian ones. Standard deviation: `one`. */
static int32_t bell(uint64_t bits, int32_t one)
{
    int64_t sum = 0;

    for (int shift = 0; shift < 64; shift += 16)
        sum += (int64_t)(bits >> shift & 0xFFFF);
    sum -= 2 * 65535;
    return (int32_t)(sum * one * 7 / (4 * 65536)); /* four have a deviation of 1 / sqrt(3) */
}

/* Twice the side, by the weights 1 3 3 1 / 4 in each direction: smooth and periodic. */
static void double_side(const int16_t *from, uint32_t side, int16_t *to)
{
    uint32_t mask = side - 1;

    for (uint32_t y = 0; y < 2 * side; y++) {
        const int16_t *near = from + (size_t)(y / 2) * side;
        const int16_t *far = from + (size_t)(((y & 1 ? y / 2 + 1 : y / 2 - 1)) & mask) * side;
        int16_t *row = to + (size_t)y * 2 * side;
        for (uint32_t x = 0; x < side; x++) {
            uint32_t left = (x - 1) & mask, right = (x + 1) & mask;
            int32_t here = 3 * near[x] + far[x];
            row[2 * x] = (int16_t)((3 * here + 3 * near[left] + far[left]) / 16);
            row[2 * x + 1] = (int16_t)((3 * here + 3 * near[right] + far[right]) / 16);
        }
    }
}

/* Octave upon octave of the same strength: power falls with the square of the frequency. `plain`
 * octaves at the end bring nothing of their own. The result lies in `to`; other is room. */
static void fill_octaves(int16_t *to, int16_t *other, uint32_t side, uint32_t plain, uint64_t key)
{
    const int32_t strength = TABLE_ONE * 2 / 5;
    uint32_t doublings = 0, octave = 0;

    for (uint32_t at = FIRST_SIDE; at < side; at *= 2)
        doublings++;
    int16_t *now = doublings % 2 ? other : to, *next = doublings % 2 ? to : other;
    memset(now, 0, FIRST_SIDE * FIRST_SIDE * sizeof(*now));
    for (uint32_t at = FIRST_SIDE;; at *= 2, octave++) {
        uint64_t octave_key = random_key(key, octave);
        if (octave + plain <= doublings)
            for (uint32_t i = 0; i < at * at; i++)
                now[i] = (int16_t)(now[i] + bell(random_at(octave_key, i), strength));
        if (at == side)
            break;
        double_side(now, at, next);
        int16_t *swap = now;
        now = next;
        next = swap;
    }
    assert(now == to);
}

static void fill_noise(struct image_pattern *pattern, uint64_t key)
{
    for (uint32_t i = 0; i < NOISE_COUNT; i++)
        pattern->noise[i] = (int16_t)bell(random_at(key, i), NOISE_ONE);
    for (uint32_t i = 0; i < MOST_SIDE; i++)
        pattern->noise[NOISE_COUNT + i] = pattern->noise[i];
}

stk_status image_pattern_new(struct image_pattern **out, uint32_t longest, uint64_t seed,
                             struct stk_error *err)
{
    struct image_pattern *pattern = memory_zero(1, sizeof(*pattern));
    stk_status status = STK_OK;
    uint32_t side = LEAST_SIDE;

    *out = NULL;
    if (!pattern)
        return fail_memory(err, sizeof(*pattern));
    while (side < MOST_SIDE && side < longest + longest / 2)
        side *= 2;
    size_t bytes = (size_t)side * side * sizeof(int16_t);
    int16_t *other = memory_alloc(bytes);
    pattern->side = side;
    pattern->luma = memory_alloc(bytes);
    pattern->smooth = memory_alloc(bytes);
    pattern->noise = memory_alloc((NOISE_COUNT + MOST_SIDE) * sizeof(int16_t));
    if (!other || !pattern->luma || !pattern->smooth || !pattern->noise) {
        status = fail_memory(err, bytes);
        goto done;
    }
    fill_octaves(pattern->luma, other, side, 0, random_key(seed, KEY_LUMA));
    fill_octaves(pattern->smooth, other, side, 2, random_key(seed, KEY_CHROMA));
    fill_noise(pattern, random_key(seed, KEY_SENSOR));
    for (int i = 0; i < SINE_COUNT; i++)
        pattern->sine[i] = (int16_t)lrint(SINE_ONE * sin(2 * M_PI * i / SINE_COUNT));
    *out = pattern;
    pattern = NULL;
done:
    memory_free(other);
    image_pattern_free(pattern);
    return status;
}

void image_pattern_free(struct image_pattern *pattern)
{
    if (!pattern)
        return;
    memory_free(pattern->luma);
    memory_free(pattern->smooth);
    memory_free(pattern->noise);
    memory_free(pattern);
}

/* --- what a scene holds ---------------------------------------------------------------------- */

static float between(struct dice *dice, double low, double high)
{
    return (float)dice_between(dice, low, high);
}

static void add_shape(struct image_scene *scene, struct dice *dice)
{
    struct image_shape *shape = &scene->shapes[scene->count++];
    uint32_t least = scene->width < scene->height ? scene->width : scene->height;
    float steep = 60.0f / (float)least;

    *shape = (struct image_shape){.sides = dice_below(dice, 5)};
    shape->sides += shape->sides ? 2 : 0;
    shape->x = between(dice, 0, scene->width);
    shape->y = between(dice, 0, scene->height);
    shape->width = between(dice, 0.04, 0.35) * (float)least;
    shape->height = between(dice, 0.04, 0.35) * (float)least;
    shape->turn = between(dice, 0, 2 * M_PI);
    shape->level[0] = between(dice, 30, 225);
    shape->level[1] = between(dice, 112, 144);
    shape->level[2] = between(dice, 112, 144);
    shape->slope[0] = between(dice, -steep, steep);
    shape->slope[1] = between(dice, -steep, steep);
    shape->texture = between(dice, 0.2, 1.0);
}

void image_scene_init(struct image_scene *scene, uint32_t width, uint32_t height, uint64_t key)
{
    struct dice dice = {key, 0};
    uint32_t shapes = 4 + dice_below(&dice, 8);
    float steep = 60.0f / (float)height;
    /* A larger picture of the same thing is smoother from pixel to pixel. */
    float fine = (float)pow(500.0 * 375.0 / ((double)width * height), 0.12);

    *scene = (struct image_scene){.width = width, .height = height};
    fine = fine > 1.3f ? 1.3f : fine;
    for (int i = 0; i < 2; i++) {
        scene->luma[i] = dice_below(&dice, MOST_SIDE);
        scene->chroma[0][i] = dice_below(&dice, MOST_SIDE);
        scene->chroma[1][i] = dice_below(&dice, MOST_SIDE);
        scene->slope[i] = between(&dice, -steep, steep);
    }
    scene->level[0] = between(&dice, 90, 160);
    scene->level[1] = between(&dice, 120, 136);
    scene->level[2] = between(&dice, 120, 136);
    scene->contrast = between(&dice, 20, 44) * fine;
    scene->noise = between(&dice, 2.0, 5.0) * fine;
    scene->noise_key = random_key(key, KEY_SENSOR);
    while (shapes--)
        add_shape(scene, &dice);
}

void image_scene_mark(struct image_scene *scene, uint32_t label, uint32_t classes, uint64_t key)
{
    static const uint32_t outlines[] = {0, 3, 4, 6}, waves[] = {5, 8, 12, 17};
    struct dice dice = {key, 0};
    struct image_shape *shape = &scene->shapes[scene->count++];
    uint32_t least = scene->width < scene->height ? scene->width : scene->height;
    uint32_t hues = classes < 12 ? classes : 12, more = label / hues;
    double hue = 2 * M_PI * ((double)(label % hues) + between(&dice, -0.2, 0.2)) / hues;
    double stripes = M_PI * ((double)((label + more) % 6) + between(&dice, -0.15, 0.15)) / 6;
    float size = between(&dice, 0.22, 0.4) * (float)least;
    double frequency = waves[more / 6 % 4] / (2.0 * size);
    double colour = between(&dice, 48, 70);

    *shape = (struct image_shape){.sides = outlines[(label + more / 24) % 4], .texture = 0.4f};
    shape->width = size;
    shape->height = size * between(&dice, 0.8, 1.0);
    shape->turn = between(&dice, 0, 2 * M_PI);
    shape->x = between(&dice, 0.25, 0.75) * (float)scene->width;
    shape->y = between(&dice, 0.25, 0.75) * (float)scene->height;
    shape->level[0] = between(&dice, 100, 160);
    shape->level[1] = (float)(128 + colour * cos(hue));
    shape->level[2] = (float)(128 + colour * sin(hue));
    shape->grating = between(&dice, 25, 40);
    shape->wave[0] = (float)(frequency * cos(stripes));
    shape->wave[1] = (float)(frequency * sin(stripes));
}

/* --- drawing --------------------------------------------------------------------------------- */

struct span {
    float first, last; /* first >= last: nothing */
};

/* What a shape covers of the row whose centre is dy away from its own. */
static struct span ellipse_span(const struct image_shape *shape, float dy)
{
    float c = cosf(shape->turn), s = sinf(shape->turn);
    float u = 1 / (shape->width * shape->width), v = 1 / (shape->height * shape->height);
    float a = c * c * u + s * s * v, b = dy * c * s * (u - v);
    float d = b * b - a * (dy * dy * (s * s * u + c * c * v) - 1);
    float root = d > 0 ? sqrtf(d) : 0;

    return d > 0 ? (struct span){(-b - root) / a, (-b + root) / a} : (struct span){0, 0};
}

/* Where the row lies on the inner side of every edge. */
static struct span polygon_span(const struct image_shape *shape, float dy)
{
    float c = cosf(shape->turn), s = sinf(shape->turn);
    float inner = cosf((float)M_PI / (float)shape->sides);
    struct span span = {-1e9f, 1e9f};

    for (uint32_t i = 0; i < shape->sides; i++) {
        float angle = 2 * (float)M_PI * (float)i / (float)shape->sides;
        float u = cosf(angle) / shape->width, v = sinf(angle) / shape->height;
        float along = u * c - v * s, across = u * s + v * c;
        float limit = inner - across * dy; /* along * dx <= limit */
        if (fabsf(along) < 1e-9f) {
            if (limit < 0)
                return (struct span){0, 0};
        } else if (along > 0) {
            span.last = fminf(span.last, limit / along);
        } else {
            span.first = fmaxf(span.first, limit / along);
        }
    }
    return span;
}

struct row {
    const struct image_pattern *pattern;
    const struct image_scene *scene;
    uint32_t y;
    int16_t *rough;     /* the background's roughness: shapes share it */
    int16_t *values[3]; /* Y, Cb, Cr in ONE's */
};

/* to = from table's row `y`, from column x on, times gain / TABLE_ONE. The table is periodic. */
static void take_row(const struct image_pattern *pattern, const int16_t *table,
                     const uint32_t at[2], uint32_t y, int32_t gain, uint32_t width, int16_t *to)
{
    uint32_t mask = pattern->side - 1, x = at[0] & mask;
    const int16_t *from = table + (size_t)((at[1] + y) & mask) * pattern->side;

    for (uint32_t done = 0; done < width; x = 0) {
        uint32_t count = pattern->side - x;
        count = count < width - done ? count : width - done;
        for (uint32_t i = 0; i < count; i++)
            to[done + i] = (int16_t)(from[x + i] * gain / TABLE_ONE);
        done += count;
    }
}

static void draw_background(const struct row *row)
{
    const struct image_scene *scene = row->scene;
    const struct image_pattern *pattern = row->pattern;
    int32_t chroma = (int32_t)(scene->contrast * 0.3f * ONE);
    int32_t start =
        (int32_t)((scene->level[0] + scene->slope[1] * ((float)row->y - (float)scene->height / 2) -
                   scene->slope[0] * (float)scene->width / 2) *
                  ONE * 256);
    int32_t step = (int32_t)(scene->slope[0] * ONE * 256);

    take_row(pattern, pattern->luma, scene->luma, row->y, (int32_t)(scene->contrast * ONE),
             scene->width, row->rough);
    for (uint32_t x = 0; x < scene->width; x++)
        row->values[0][x] = (int16_t)(row->rough[x] + (start + step * (int32_t)x) / 256);
    for (int i = 0; i < 2; i++) {
        int16_t level = (int16_t)(scene->level[1 + i] * ONE), *to = row->values[1 + i];
        take_row(pattern, pattern->smooth, scene->chroma[i], row->y, chroma, scene->width, to);
        for (uint32_t x = 0; x < scene->width; x++)
            to[x] = (int16_t)(to[x] + level);
    }
}

/* Pixels [first, last); cover: of 256, how much of what is behind is hidden. */
static void draw_span(const struct row *row, const struct image_shape *shape, int32_t first,
                      int32_t last, int32_t cover)
{
    float dy = (float)row->y - shape->y, dx = (float)first - shape->x;
    int32_t start =
        (int32_t)((shape->level[0] + shape->slope[0] * dx + shape->slope[1] * dy) * ONE * 256);
    int32_t step = (int32_t)(shape->slope[0] * ONE * 256);
    int32_t texture = (int32_t)(shape->texture * 256);
    int32_t grating = (int32_t)(shape->grating * ONE);
    /* Turns in 32 bits go round by themselves. */
    double turns = (double)shape->wave[0] * dx + (double)shape->wave[1] * dy;
    uint32_t angle = (uint32_t)(int64_t)(turns * 0x1p32);
    uint32_t angle_step = (uint32_t)(int64_t)((double)shape->wave[0] * 0x1p32);
    int16_t *luma = row->values[0];

    for (int32_t x = first; x < last; x++, start += step, angle += angle_step) {
        int32_t value = start / 256 + row->rough[x] * texture / 256;
        if (grating)
            value += grating * row->pattern->sine[angle >> (32 - SINE_BITS)] / SINE_ONE;
        luma[x] = (int16_t)(luma[x] + (value - luma[x]) * cover / 256);
    }
    for (int i = 1; i < 3; i++) {
        int32_t level = (int32_t)(shape->level[i] * ONE);
        int16_t *to = row->values[i];
        for (int32_t x = first; x < last; x++)
            to[x] = (int16_t)(to[x] + (level - to[x]) * cover / 256);
    }
}

/* Edge pixels are covered in part. */
static void draw_shape(const struct row *row, const struct image_shape *shape)
{
    float dy = (float)row->y - shape->y, most = (float)row->scene->width;
    float reach = 2 * fmaxf(shape->width, shape->height); /* stretched polygons have long corners */
    if (fabsf(dy) > reach)
        return;
    struct span span = shape->sides ? polygon_span(shape, dy) : ellipse_span(shape, dy);
    float from = fmaxf(span.first + shape->x, 0), to = fminf(span.last + shape->x, most);

    if (span.first >= span.last || from >= to)
        return;
    int32_t first = (int32_t)ceilf(from), last = (int32_t)floorf(to);
    if (first > last)
        return;
    if (first > 0)
        draw_span(row, shape, first - 1, first, (int32_t)(256 * ((float)first - from)));
    draw_span(row, shape, first, last, 256);
    if (last < (int32_t)row->scene->width)
        draw_span(row, shape, last, last + 1, (int32_t)(256 * (to - (float)last)));
}

/* Noise over all, then 8 bits. */
static void finish_row(const struct row *row, uint8_t *to)
{
    const struct image_scene *scene = row->scene;

    for (uint32_t c = 0; c < 3; c++) {
        int32_t gain = (int32_t)(scene->noise * (c ? 0.35f : 1.0f) * ONE);
        const int16_t *values = row->values[c];
        for (uint32_t at = 0; at < scene->width; at += MOST_SIDE) {
            uint64_t number = ((uint64_t)row->y * 3 + c) * 16 + at / MOST_SIDE;
            const int16_t *noise =
                row->pattern->noise + random_below(scene->noise_key, number, NOISE_COUNT);
            uint32_t left = scene->width - at, count = left < MOST_SIDE ? left : MOST_SIDE;
            for (uint32_t i = 0; i < count; i++) {
                int32_t value = (values[at + i] + noise[i] * gain / NOISE_ONE + ONE / 2) / ONE;
                value = value < 0 ? 0 : value;
                to[(at + i) * 3 + c] = (uint8_t)(value > 255 ? 255 : value);
            }
        }
    }
}

uint64_t image_pattern_room(uint32_t width)
{
    return 4 * ((uint64_t)width + ROW_PAD) * sizeof(int16_t);
}

void image_scene_draw(const struct image_pattern *pattern, const struct image_scene *scene,
                      uint8_t *to, void *room)
{
    int16_t *rows = room;
    size_t step = scene->width + ROW_PAD;
    struct row row = {pattern, scene, 0, rows, {rows + step, rows + 2 * step, rows + 3 * step}};

    for (; row.y < scene->height; row.y++) {
        draw_background(&row);
        for (uint32_t i = 0; i < scene->count; i++)
            draw_shape(&row, &scene->shapes[i]);
        finish_row(&row, to + (size_t)row.y * scene->width * 3);
    }
}

static uint8_t clamped(int32_t value)
{
    return (uint8_t)(value < 0 ? 0 : value > 255 ? 255 : value);
}

/* JFIF, in 16 bits of fraction. */
void image_to_rgb(uint8_t *pixels, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++, pixels += 3) {
        int32_t y = pixels[0] * 65536 + 32768, cb = pixels[1] - 128, cr = pixels[2] - 128;
        pixels[0] = clamped((y + 91881 * cr) >> 16);
        pixels[1] = clamped((y - 22554 * cb - 46802 * cr) >> 16);
        pixels[2] = clamped((y + 116130 * cb) >> 16);
    }
}
