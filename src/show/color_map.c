#include "show/color_map.h"

#include <math.h>

#define NO_NUMBER 0x9a9a9a

static color mix(color from, color to, double share)
{
    color mixed = 0;
    for (int shift = 16; shift >= 0; shift -= 8) {
        double a = (double)(from >> shift & 0xff), b = (double)(to >> shift & 0xff);
        mixed |= (color)lrint(a + (b - a) * share) << shift;
    }
    return mixed;
}

color color_of_share(double share)
{
    static const color stops[] = {0x440154, 0x472d7b, 0x3b528b, 0x2c728e, 0x21918c,
                                  0x28ae80, 0x5ec962, 0xaddc30, 0xfde725};
    const int last = sizeof stops / sizeof stops[0] - 1;
    if (isnan(share))
        return NO_NUMBER;
    double at = (share < 0 ? 0 : share > 1 ? 1 : share) * last;
    int stop = at < last ? (int)at : last - 1;
    return mix(stops[stop], stops[stop + 1], at - stop);
}

color color_of_class(uint64_t number)
{
    static const color classes[] = {0x1f6fb4, 0xe07b1a, 0x2d9a48, 0xcc3a36, 0x7f5fb5, 0x87564a,
                                    0xd15fa8, 0x6f7378, 0x9c9a1f, 0x17a0b0, 0x2f3e9e, 0x5a7d2a};
    return classes[number % (sizeof classes / sizeof classes[0])];
}
