#include "transform/mix_transform.h"

#include <math.h>
#include <string.h>

#include "base/fail.h"
#include "base/random.h"

/* Which numbers of a key are what. */
enum mix_number { MIX_COIN, MIX_X, MIX_Y, MIX_BETA };

#define NO_GETTER "default"
#define ARG(member) offsetof(struct mix_args, member)
static const struct transform_arg mix_args[] = {
    {"alpha", ARG_FLOAT, ARG(alpha), "1.0", 1e-6, 1e6, NULL, 0, 0},
    {"num_classes", ARG_INT, ARG(classes), "None", 1, 1e7, NULL, 0, 0},
    {"image", ARG_TEXT, ARG(image), "None", 0, 0, NULL, 0, 0},
    {"label", ARG_TEXT, ARG(label), "None", 0, 0, NULL, 0, 0},
    {"p", ARG_FLOAT, ARG(p), "1.0", 0, 1, NULL, 0, 0},
    {"labels_getter", ARG_TEXT, ARG(labels_getter), NO_GETTER, 0, 0, NULL, 0, 0},
    {"classes", ARG_INT, ARG(other_classes), "None", 1, 1e7, NULL, 0, 0},
    {0}};

static stk_status mix_check(void *arguments, struct stk_error *err)
{
    struct mix_args *args = arguments;
    if (args->classes && args->other_classes)
        return fail(err, STK_USAGE, "num_classes and classes are one: give one of them");
    if (!args->classes)
        args->classes = args->other_classes;
    args->other_classes = 0;
    if (!args->classes) {
        stk_status status = fail(err, STK_USAGE,
                                 "num_classes is missing: labels become rows of "
                                 "so many columns");
        fail_remedy(err, "as in num_classes=10");
        return status;
    }
    if (!strcmp(args->labels_getter, NO_GETTER))
        return STK_OK;
    if (*args->label)
        return fail(err, STK_USAGE, "labels_getter and label are one: give one of them");
    memcpy(args->label, args->labels_getter, sizeof args->label);
    memset(args->labels_getter, 0, sizeof args->labels_getter);
    strcpy(args->labels_getter, NO_GETTER);
    return STK_OK;
}

/* --- drawing ---------------------------------------------------------------------------------- */

struct stream {
    uint64_t key, next;
};

/* In (0, 1]: its logarithm is finite. */
static double stream_unit(struct stream *stream)
{
    return 1 - random_unit(stream->key, stream->next++);
}

/* Box and Muller. */
static double stream_normal(struct stream *stream)
{
    const double turn = 6.283185307179586;
    double radius = sqrt(-2 * log(stream_unit(stream)));
    return radius * cos(turn * stream_unit(stream));
}

/* The logarithm of a Gamma(shape) number: Marsaglia and Tsang, "A simple method for generating
 * gamma variables" (2000). Logarithms, because small shapes give numbers that underflow. */
static double stream_log_gamma(struct stream *stream, double shape)
{
    double below = 0;
    if (shape < 1) {
        below = log(stream_unit(stream)) / shape;
        shape += 1;
    }
    double d = shape - 1.0 / 3, c = 1 / sqrt(9 * d);
    for (;;) {
        double x = stream_normal(stream), u = log(stream_unit(stream));
        double root = 1 + c * x, v = root * root * root;
        if (root > 0 && u < x * x / 2 + d - d * v + d * log(v))
            return log(d * v) + below;
    }
}

double mix_beta(double alpha, uint64_t key, uint64_t counter)
{
    struct stream stream = {key, counter};
    double a = stream_log_gamma(&stream, alpha), b = stream_log_gamma(&stream, alpha);
    return 1 / (1 + exp(b - a));
}

static int mix_happens(const struct mix_args *args, uint64_t key)
{
    return random_unit(key, MIX_COIN) < args->p;
}

static void mixup_draw(const void *arguments, uint64_t key, const struct stk_flow *in, void *params)
{
    const struct mix_args *args = arguments;
    (void)in;
    *(struct mix_params *)params = (struct mix_params){
        .lam = mix_happens(args, key) ? mix_beta(args->alpha, key, MIX_BETA) : 1};
}

int32_t mix_height_axis(const struct stk_flow *flow)
{
    const struct stk_tensor *tensor = &flow->tensor;
    int64_t last = tensor->rank ? tensor->shape[tensor->rank - 1] : 0;
    int first = flow->channels_first;
    if (flow->media == STK_MEDIA_TENSOR) /* no chain says: bytes of few channels are pixels */
        first = !(tensor->dtype == STK_U8 && tensor->rank > 2 && last >= 1 && last <= 4);
    return tensor->rank - (first ? 2 : 3);
}

static void cutmix_draw(const void *arguments, uint64_t key, const struct stk_flow *in,
                        void *parameters)
{
    const struct mix_args *args = arguments;
    struct mix_params *params = parameters;
    int32_t axis = mix_height_axis(in);
    params->lam = 1;
    if (!mix_happens(args, key) || axis < 0)
        return;
    int64_t height = in->tensor.shape[axis], width = in->tensor.shape[axis + 1];
    if (height < 1 || width < 1)
        return;
    double half = 0.5 * sqrt(1 - mix_beta(args->alpha, key, MIX_BETA));
    int64_t x = (int64_t)random_below(key, MIX_X, (uint64_t)width);
    int64_t y = (int64_t)random_below(key, MIX_Y, (uint64_t)height);
    int64_t half_width = (int64_t)(half * (double)width);
    int64_t half_height = (int64_t)(half * (double)height);
    params->x0 = x - half_width > 0 ? x - half_width : 0;
    params->y0 = y - half_height > 0 ? y - half_height : 0;
    params->x1 = x + half_width < width ? x + half_width : width;
    params->y1 = y + half_height < height ? y + half_height : height;
    params->lam = 1 - (double)((params->x1 - params->x0) * (params->y1 - params->y0)) /
                          ((double)width * (double)height);
}

const struct transform_ops cutmix_transform = {
    .name = "CutMix",
    .help = "Puts a box of one sample's image into another's, and mixes their labels by its area.",
    .stage = TRANSFORM_TENSOR,
    .args = mix_args,
    .size = sizeof(struct mix_args),
    .check = mix_check,
    .draw = cutmix_draw,
};

const struct transform_ops mixup_transform = {
    .name = "MixUp",
    .help = "Blends each sample's image and label with those of another.",
    .stage = TRANSFORM_TENSOR,
    .args = mix_args,
    .size = sizeof(struct mix_args),
    .check = mix_check,
    .draw = mixup_draw,
};
