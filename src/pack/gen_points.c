/* stk_gen_points: points on the surface of a solid that the class names, as a scanner would see
 * them: turned about z, moved, with noise, a few that belong to nothing, and an intensity. */
#include <inttypes.h>
#include <math.h>

#include "stoker/pack.h"

#include "base/fail.h"
#include "base/memory.h"
#include "base/npy_header.h"
#include "pack/dice.h"
#include "pack/gen_crew.h"

#define COLUMNS 4 /* x, y, z, intensity */
#define MOST_POINTS (64u << 20)
#define OUTLIERS 0.02 /* of all points */
#define NPY_CAP 512

enum { KEY_POINTS = 0x706f696e, KEY_SURFACE };

struct points_job {
    const struct stk_gen_points_options *options;
};

struct points_maker {
    const struct points_job *job;
    float *values;
};

/* --- solids ---------------------------------------------------------------------------------- */

/* A random point of a surface within [-1, 1] in each direction. */
typedef void solid_point(struct dice *dice, double p[3]);

static void on_circle(struct dice *dice, double radius, double p[3])
{
    double angle = dice_between(dice, 0, 2 * M_PI);

    p[0] = radius * cos(angle);
    p[1] = radius * sin(angle);
}

static void sphere_point(struct dice *dice, double p[3])
{
    p[2] = dice_between(dice, -1, 1); /* equal heights have equal areas */
    on_circle(dice, sqrt(1 - p[2] * p[2]), p);
}

static void cube_point(struct dice *dice, double p[3])
{
    uint32_t face = dice_below(dice, 6);

    for (uint32_t i = 0; i < 3; i++)
        p[i] = i == face / 2 ? (face & 1 ? 0.8 : -0.8) : dice_between(dice, -0.8, 0.8);
}

static void torus_point(struct dice *dice, double p[3])
{
    double angle = dice_between(dice, 0, 2 * M_PI);

    on_circle(dice, 0.7 + 0.3 * cos(angle), p);
    p[2] = 0.3 * sin(angle);
}

static void cylinder_point(struct dice *dice, double p[3])
{
    int is_lid = dice_between(dice, 0, 1) < 0.2;

    on_circle(dice, is_lid ? 0.5 * sqrt(dice_between(dice, 0, 1)) : 0.5, p);
    p[2] = is_lid ? (dice_below(dice, 2) ? 1 : -1) : dice_between(dice, -1, 1);
}

static void cone_point(struct dice *dice, double p[3])
{
    double radius = sqrt(dice_between(dice, 0, 1)); /* of the whole; more area below */
    int is_floor = dice_between(dice, 0, 1) < 0.3;

    on_circle(dice, 0.8 * radius, p);
    p[2] = is_floor ? -1 : 1 - 2 * radius;
}

static void plane_point(struct dice *dice, double p[3])
{
    p[0] = dice_between(dice, -1, 1);
    p[1] = dice_between(dice, -1, 1);
    p[2] = 0.12 * cos(5 * p[0]) * cos(5 * p[1]);
}

static void cross_point(struct dice *dice, double p[3])
{
    uint32_t bar = dice_below(dice, 3);

    for (uint32_t i = 0; i < 3; i++)
        p[i] = i == bar ? dice_between(dice, -1, 1) : dice_between(dice, -0.12, 0.12);
}

static void spiral_point(struct dice *dice, double p[3])
{
    double at = dice_between(dice, -1, 1);

    p[0] = 0.6 * cos(3 * M_PI * at);
    p[1] = 0.6 * sin(3 * M_PI * at);
    p[2] = at;
}

static solid_point *const solids[] = {sphere_point, cube_point,  torus_point, cylinder_point,
                                      cone_point,   plane_point, cross_point, spiral_point};
#define SOLIDS (sizeof(solids) / sizeof(solids[0]))

/* --- one sample ------------------------------------------------------------------------------ */

/* Past the first eight classes the same solids come again, lower and lower. */
static void fill_values(float *values, uint32_t count, uint32_t label, uint64_t key)
{
    struct dice dice = {key, 0}, surface = {random_key(key, KEY_SURFACE), 0};
    solid_point *solid = solids[label % SOLIDS];
    double height = pow(0.6, (double)(label / SOLIDS % 16));
    double turn = dice_between(&dice, 0, 2 * M_PI), size = dice_between(&dice, 0.8, 1.25);
    double noise = dice_between(&dice, 0.005, 0.02), glow = dice_between(&dice, 0.3, 0.6);
    double move[3], p[3];

    for (int i = 0; i < 3; i++)
        move[i] = dice_between(&dice, -0.2, 0.2);
    for (uint32_t i = 0; i < count; i++, values += COLUMNS) {
        if (dice_between(&surface, 0, 1) < OUTLIERS)
            for (int axis = 0; axis < 3; axis++)
                p[axis] = dice_between(&surface, -1.5, 1.5);
        else
            solid(&surface, p);
        double x = p[0] * cos(turn) - p[1] * sin(turn), y = p[0] * sin(turn) + p[1] * cos(turn);
        double light = glow + 0.25 * p[2] + 0.15 * x + 0.03 * dice_bell(&surface);
        values[0] = (float)(size * (x + noise * dice_bell(&surface)) + move[0]);
        values[1] = (float)(size * (y + noise * dice_bell(&surface)) + move[1]);
        values[2] = (float)(size * (p[2] * height + noise * dice_bell(&surface)) + move[2]);
        values[3] = (float)fmax(0, fmin(1, light));
    }
}

static void add_header(const struct stk_gen_points_options *options, struct text *to)
{
    struct stk_tensor shape = {.dtype = STK_F32, .rank = 2, .shape = {options->points, COLUMNS}};
    char npy[NPY_CAP];
    size_t len;

    switch (options->format) {
    case STK_GEN_BIN:
        break;
    case STK_GEN_PCD:
        text_format(to,
                    "# .PCD v0.7 - Point Cloud Data file format\nVERSION 0.7\n"
                    "FIELDS x y z intensity\nSIZE 4 4 4 4\nTYPE F F F F\nCOUNT 1 1 1 1\n"
                    "WIDTH %" PRIu32 "\nHEIGHT 1\nVIEWPOINT 0 0 0 1 0 0 0\nPOINTS %" PRIu32
                    "\nDATA binary\n",
                    options->points, options->points);
        break;
    case STK_GEN_PLY:
        text_format(to,
                    "ply\nformat binary_little_endian 1.0\nelement vertex %" PRIu32
                    "\nproperty float x\nproperty float y\nproperty float z\n"
                    "property float intensity\nend_header\n",
                    options->points);
        break;
    case STK_GEN_NPY:
        npy_header_write(&shape, npy, sizeof(npy), &len);
        text_add(to, npy, len);
        break;
    }
}

static stk_status maker_make(void *maker, uint64_t sample, uint32_t label, struct text *to,
                             struct stk_error *err)
{
    struct points_maker *points = maker;
    const struct stk_gen_points_options *options = points->job->options;
    uint64_t key = random_key(random_key(options->common.seed, KEY_POINTS), sample);

    (void)err;
    fill_values(points->values, options->points, label, key);
    add_header(options, to);
    text_add(to, (const char *)points->values,
             (size_t)options->points * COLUMNS * sizeof(*points->values));
    return STK_OK;
}

/* --- the whole ------------------------------------------------------------------------------- */

static void maker_close(void *maker)
{
    struct points_maker *points = maker;

    if (points)
        memory_free(points->values);
    memory_free(points);
}

static stk_status maker_open(void **out, const void *job, struct stk_error *err)
{
    const struct points_job *points_job = job;
    size_t bytes = (size_t)points_job->options->points * COLUMNS * sizeof(float);
    struct points_maker *points = memory_zero(1, sizeof(*points));

    *out = points; /* closed by the crew in any case */
    if (!points)
        return fail_memory(err, sizeof(*points));
    points->job = points_job;
    points->values = memory_alloc(bytes);
    return points->values ? STK_OK : fail_memory(err, bytes);
}

stk_status stk_gen_points(struct stk_context *context, const struct stk_gen_points_options *options,
                          struct stk_pack_result *result, struct stk_error *err)
{
    static const char *const suffixes[] = {".bin", ".pcd", ".ply", ".npy"};
    const struct gen_kind kind = {suffixes[options->format], maker_open, maker_make, maker_close};
    struct points_job job = {options};

    *result = (struct stk_pack_result){0};
    if (options->points < 1 || options->points > MOST_POINTS)
        return fail(err, STK_USAGE, "a cloud has 1 to %u points", MOST_POINTS);
    return gen_crew_run(context, &options->common, &kind, &job, result, err);
}
