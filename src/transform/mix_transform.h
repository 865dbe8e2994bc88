/* mix_transform.h -- MixUp and CutMix: transforms of whole batches, as torchvision v2 has them.
 * Owns: nothing.   Threads: any.   Errors: STK_USAGE.   Not here: doing it
 * (loader/batch_transform.h).
 *
 * Each sample is mixed with the one before it in the batch, the first with the last one that is
 * real; all with the same params. With lam the share of a sample's own:
 *   MixUp:  image = lam * own + (1 - lam) * other, uint8 rounded to the nearest;
 *   CutMix: the box of the other image is put into its own place, and lam is the share of pixels
 *           that are left.
 *   label = lam * own + (1 - lam) * other, of rows with a 1 at the class. */
#ifndef TRANSFORM_MIX_TRANSFORM_H
#define TRANSFORM_MIX_TRANSFORM_H

#include "transform/transform.h"

/* MixUp(alpha=1.0, num_classes, image=None, label=None, p=1.0), and CutMix */
struct mix_args {
    double alpha;                   /* lam is drawn from Beta(alpha, alpha) */
    int64_t classes;                /* columns of the label */
    char image[TRANSFORM_TEXT_MAX]; /* fields; "": the only one there is */
    char label[TRANSFORM_TEXT_MAX];
    double p; /* chance that a batch is mixed at all */
    /* Other words for label and num_classes; once checked they have gone into those. */
    char labels_getter[TRANSFORM_TEXT_MAX]; /* torchvision's; "default": none is named */
    int64_t other_classes;
};

struct mix_params {
    double lam;             /* 1: the batch stays as it is */
    int64_t x0, y0, x1, y1; /* CutMix: the box, [x0, x1) and [y0, y1) */
};

/* As rows of the table; their media is 0: no chain of a field takes them. draw's flow is that of
 * one image; lengths are known. */
extern const struct transform_ops cutmix_transform, mixup_transform;

/* The axis of an image's or a video's height; its width is the next. */
int32_t mix_height_axis(const struct stk_flow *flow);
/* Beta(alpha, alpha) from the numbers `counter` and following of a key. */
double mix_beta(double alpha, uint64_t key, uint64_t counter);

#endif
