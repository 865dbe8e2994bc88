#include "transform/affine.h"

#include <math.h>
#include <string.h>

static int64_t within(int64_t at, int64_t size)
{
    return at < 0 ? 0 : at >= size ? size - 1 : at;
}

static void pick_bilinear(struct pixels in, double x, double y, uint8_t *to)
{
    x -= 0.5;
    y -= 0.5;
    int64_t left = (int64_t)floor(x), top = (int64_t)floor(y);
    double dx = x - (double)left, dy = y - (double)top;
    const uint8_t *above = in.data + within(top, in.height) * in.width * in.channels;
    const uint8_t *below = in.data + within(top + 1, in.height) * in.width * in.channels;
    int64_t a = within(left, in.width) * in.channels, b = within(left + 1, in.width) * in.channels;
    for (int64_t c = 0; c < in.channels; c++) {
        double first = above[a + c] + dx * (above[b + c] - above[a + c]);
        double second = below[a + c] + dx * (below[b + c] - below[a + c]);
        to[c] = (uint8_t)(first + dy * (second - first) + 0.5);
    }
}

void affine_run(const struct affine *affine, struct pixels in, struct pixels out)
{
    const double *m = affine->m;
    uint8_t *to = out.data;
    for (int64_t row = 0; row < out.height; row++)
        for (int64_t column = 0; column < out.width; column++, to += out.channels) {
            double x = m[0] * ((double)column + 0.5) + m[1] * ((double)row + 0.5) + m[2];
            double y = m[3] * ((double)column + 0.5) + m[4] * ((double)row + 0.5) + m[5];
            int inside = x >= 0 && x < (double)in.width && y >= 0 && y < (double)in.height;
            if (!inside)
                memcpy(to, affine->fill, (size_t)out.channels);
            else if (affine->bilinear)
                pick_bilinear(in, x, y, to);
            else
                memcpy(to, in.data + ((int64_t)y * in.width + (int64_t)x) * in.channels,
                       (size_t)in.channels);
        }
}

void affine_turn(struct affine *affine, double degrees, int64_t width, int64_t height)
{
    double angle = -degrees * 3.14159265358979323846 / 180;
    double cosine = cos(angle), sine = sin(angle), x = (double)width / 2, y = (double)height / 2;
    affine->m[0] = cosine;
    affine->m[1] = sine;
    affine->m[2] = x - cosine * x - sine * y;
    affine->m[3] = -sine;
    affine->m[4] = cosine;
    affine->m[5] = y + sine * x - cosine * y;
}
