#include "transform/color_ops.h"

#include <math.h>
#include <string.h>

static uint8_t clip(float value)
{
    return value <= 0 ? 0 : value >= 255 ? 255 : (uint8_t)value;
}

static void apply_table(struct pixels image, const uint8_t table[256], int64_t channel)
{
    uint8_t *at = image.data + channel,
            *end = image.data + image.width * image.height * image.channels;
    for (; at < end; at += image.channels)
        *at = table[*at];
}

static void apply_to_colors(struct pixels image, const uint8_t table[256])
{
    for (int64_t c = 0; c < image.colors; c++)
        apply_table(image, table, c);
}

/* Towards one value, by a table: other + factor * (value - other). */
static void blend_with(struct pixels image, float other, float factor)
{
    uint8_t table[256];
    for (int value = 0; value < 256; value++)
        table[value] = clip(other + factor * ((float)value - other));
    apply_to_colors(image, table);
}

void color_brightness(struct pixels image, float factor)
{
    blend_with(image, 0, factor);
}

void color_contrast(struct pixels image, float factor)
{
    int64_t count = image.width * image.height;
    const uint8_t *at = image.data;
    uint64_t sum = 0;
    for (int64_t i = 0; i < count; i++, at += image.channels)
        sum += image.colors == 3 ? color_grey(at) : *at;
    double mean = count ? (double)sum / (double)count : 0;
    blend_with(image, (float)(int)(mean + 0.5), factor);
}

void color_saturation(struct pixels image, float factor)
{
    int64_t count = image.width * image.height;
    uint8_t *at = image.data;
    for (int64_t i = 0; i < count && image.colors == 3; i++, at += image.channels) {
        float grey = color_grey(at);
        for (int c = 0; c < 3; c++)
            at[c] = clip(grey + factor * ((float)at[c] - grey));
    }
}

/* One pixel's hue is turned; its largest and smallest values stay. */
static void turn_hue(uint8_t *pixel, float turn)
{
    float r = pixel[0], g = pixel[1], b = pixel[2];
    float most = fmaxf(r, fmaxf(g, b)), least = fminf(r, fminf(g, b)), range = most - least;
    if (range == 0)
        return;
    float hue = most == r ? (g - b) / range : most == g ? 2 + (b - r) / range : 4 + (r - g) / range;
    hue += turn * 6;
    hue -= 6 * floorf(hue / 6);
    int sector = (int)hue % 6;
    float part = hue - floorf(hue);
    float up = least + range * part, down = most - range * part;
    const float table[6][3] = {{most, up, least},   {down, most, least}, {least, most, up},
                               {least, down, most}, {up, least, most},   {most, least, down}};
    for (int c = 0; c < 3; c++)
        pixel[c] = (uint8_t)(table[sector][c] + 0.5f);
}

void color_hue(struct pixels image, float turn)
{
    int64_t count = image.width * image.height;
    uint8_t *at = image.data;
    for (int64_t i = 0; i < count && image.colors == 3; i++, at += image.channels)
        turn_hue(at, turn);
}

void color_sharpness(struct pixels image, float factor, uint8_t *copy)
{
    int64_t stride = image.width * image.channels;
    memcpy(copy, image.data, (size_t)(stride * image.height));
    for (int64_t y = 1; y + 1 < image.height; y++)
        for (int64_t x = image.channels; x < stride - image.channels; x++) {
            const uint8_t *at = copy + y * stride + x;
            int sum = 4 * at[0]; /* 5 in the middle, 1 around it: 13 in all */
            for (int64_t row = -stride; row <= stride; row += stride)
                sum += at[row - image.channels] + at[row] + at[row + image.channels];
            if (x % image.channels >= image.colors)
                continue;
            float smooth = clip((float)sum / 13 + 0.5f);
            image.data[y * stride + x] = clip(smooth + factor * ((float)at[0] - smooth));
        }
}

void color_posterize(struct pixels image, int bits)
{
    uint8_t table[256];
    int mask = bits <= 0 ? 0 : bits >= 8 ? 255 : 255 & ~((1 << (8 - bits)) - 1);
    for (int value = 0; value < 256; value++)
        table[value] = (uint8_t)(value & mask);
    apply_to_colors(image, table);
}

void color_solarize(struct pixels image, float threshold)
{
    uint8_t table[256];
    for (int value = 0; value < 256; value++)
        table[value] = (uint8_t)((float)value >= threshold ? 255 - value : value);
    apply_to_colors(image, table);
}

static void count_values(struct pixels image, int64_t channel, uint64_t counts[256])
{
    const uint8_t *at = image.data + channel;
    const uint8_t *end = image.data + image.width * image.height * image.channels;
    memset(counts, 0, 256 * sizeof *counts);
    for (; at < end; at += image.channels)
        counts[*at]++;
}

void color_autocontrast(struct pixels image)
{
    for (int64_t c = 0; c < image.colors; c++) {
        uint64_t counts[256];
        uint8_t table[256];
        int low = 0, high = 255;
        count_values(image, c, counts);
        while (low < 255 && !counts[low])
            low++;
        while (high > 0 && !counts[high])
            high--;
        if (high <= low)
            continue;
        double scale = 255.0 / (high - low);
        for (int value = 0; value < 256; value++)
            table[value] = clip((float)(value * scale - low * scale));
        apply_table(image, table, c);
    }
}

void color_equalize(struct pixels image)
{
    for (int64_t c = 0; c < image.colors; c++) {
        uint64_t counts[256], sum = 0, last = 0;
        uint8_t table[256];
        count_values(image, c, counts);
        for (int value = 0; value < 256; value++) {
            sum += counts[value];
            last = counts[value] ? counts[value] : last;
        }
        uint64_t step = (sum - last) / 255, n = step / 2;
        if (!step)
            continue;
        for (int value = 0; value < 256; value++) {
            table[value] = (uint8_t)(n / step < 255 ? n / step : 255);
            n += counts[value];
        }
        apply_table(image, table, c);
    }
}
