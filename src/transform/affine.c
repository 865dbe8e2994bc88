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

/* Of a right angle these are 0 and 1, and not almost: else a turned image would grow by a pixel. */
static double rounded(double value)
{
    return rint(value * 1e15) / 1e15;
}

void affine_turn(struct affine *affine, double degrees, double x, double y)
{
    double angle = -degrees * 3.14159265358979323846 / 180;
    double cosine = rounded(cos(angle)), sine = rounded(sin(angle));
    affine->m[0] = cosine;
    affine->m[1] = sine;
    affine->m[2] = x - cosine * x - sine * y;
    affine->m[3] = -sine;
    affine->m[4] = cosine;
    affine->m[5] = y + sine * x - cosine * y;
}

/* What three of its numbers make of the four corners: from the least to the most, in whole pixels.
 */
static int64_t corners_reach(const double *m, double width, double height)
{
    double least = m[2], most = m[2];
    for (int corner = 1; corner < 4; corner++) {
        double at = m[0] * (corner & 1 ? width : 0) + m[1] * (corner & 2 ? height : 0) + m[2];
        least = fmin(least, at);
        most = fmax(most, at);
    }
    return (int64_t)(ceil(most) - floor(least));
}

void affine_expand(struct affine *affine, int64_t *width, int64_t *height)
{
    double *m = affine->m, x = (double)*width, y = (double)*height;
    *width = corners_reach(m, x, y);
    *height = corners_reach(m + 3, x, y);
    x = (x - (double)*width) / 2;
    y = (y - (double)*height) / 2;
    m[2] += m[0] * x + m[1] * y;
    m[5] += m[3] * x + m[4] * y;
}
