#include <string.h>

#include "transform/transform.h"

extern const struct transform_ops cast_transform;
extern const struct transform_ops center_crop_transform;
extern const struct transform_ops color_jitter_transform;
extern const struct transform_ops cutmix_transform;
extern const struct transform_ops decode_audio_transform;
extern const struct transform_ops decode_image_transform;
extern const struct transform_ops decode_points_transform;
extern const struct transform_ops decode_video_transform;
extern const struct transform_ops gain_transform;
extern const struct transform_ops gaussian_blur_transform;
extern const struct transform_ops grayscale_transform;
extern const struct transform_ops layout_transform;
extern const struct transform_ops log_mel_transform;
extern const struct transform_ops mixup_transform;
extern const struct transform_ops noise_transform;
extern const struct transform_ops normalize_transform;
extern const struct transform_ops pad_transform;
extern const struct transform_ops points_drop_transform;
extern const struct transform_ops points_jitter_transform;
extern const struct transform_ops points_rotate_transform;
extern const struct transform_ops points_scale_transform;
extern const struct transform_ops random_crop_transform;
extern const struct transform_ops random_erasing_transform;
extern const struct transform_ops random_horizontal_flip_transform;
extern const struct transform_ops random_resized_crop_transform;
extern const struct transform_ops random_rotation_transform;
extern const struct transform_ops random_vertical_flip_transform;
extern const struct transform_ops resample_transform;
extern const struct transform_ops resize_transform;
extern const struct transform_ops spec_augment_transform;
extern const struct transform_ops temporal_crop_transform;
extern const struct transform_ops trivial_augment_transform;
extern const struct transform_ops trivial_augment_wide_transform;

/* Sorted by name. */
static const struct transform_ops *const transforms[] = {
    &cast_transform,
    &center_crop_transform,
    &color_jitter_transform,
    &cutmix_transform,
    &decode_audio_transform,
    &decode_image_transform,
    &decode_points_transform,
    &decode_video_transform,
    &points_drop_transform,
    &gain_transform,
    &gaussian_blur_transform,
    &grayscale_transform,
    &points_jitter_transform,
    &layout_transform,
    &log_mel_transform,
    &mixup_transform,
    &noise_transform,
    &normalize_transform,
    &pad_transform,
    &random_crop_transform,
    &random_erasing_transform,
    &random_horizontal_flip_transform,
    &random_resized_crop_transform,
    &random_rotation_transform,
    &random_vertical_flip_transform,
    &resample_transform,
    &resize_transform,
    &points_rotate_transform,
    &points_scale_transform,
    &spec_augment_transform,
    &temporal_crop_transform,
    &trivial_augment_transform,
    &trivial_augment_wide_transform,
    NULL,
};
#define TRANSFORM_COUNT (sizeof transforms / sizeof transforms[0] - 1) /* a NULL ends them */

const struct transform_ops *transform_at(uint32_t row)
{
    return row < TRANSFORM_COUNT ? transforms[row] : NULL;
}

const struct transform_ops *transform_find(const char *name)
{
    for (uint32_t row = 0; row < TRANSFORM_COUNT; row++)
        if (!strcmp(transforms[row]->name, name))
            return transforms[row];
    return NULL;
}
