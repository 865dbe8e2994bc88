#include "transform/mel_filters.h"

#include <math.h>

/* Slaney's scale: linear below 1000 Hz, logarithmic above. */
#define LINEAR_STEP (200.0 / 3)
#define LOG_HZ 1000.0
#define LOG_MEL 15.0 /* LOG_HZ / LINEAR_STEP */

static double mel_of(double hz, int htk)
{
    if (htk)
        return 2595 * log10(1 + hz / 700);
    return hz < LOG_HZ ? hz / LINEAR_STEP : LOG_MEL + log(hz / LOG_HZ) / (log(6.4) / 27);
}

static double hz_of(double mel, int htk)
{
    if (htk)
        return 700 * (pow(10, mel / 2595) - 1);
    return mel < LOG_MEL ? mel * LINEAR_STEP : LOG_HZ * exp((mel - LOG_MEL) * (log(6.4) / 27));
}

/* A bin lies in two triangles at most; on an edge its weight is 0. */
static uint64_t weight_count(uint32_t n_fft, uint32_t n_mels)
{
    return 2 * ((uint64_t)n_fft / 2 + 1) + n_mels;
}

uint64_t mel_filters_bytes(uint32_t n_fft, uint32_t n_mels)
{
    uint64_t edges = ((uint64_t)n_mels + 2) * sizeof(double);
    return edges + 2 * (uint64_t)n_mels * sizeof(uint32_t) +
           weight_count(n_fft, n_mels) * sizeof(float);
}

/* The weights of the bins strictly between the edges left and right. */
static float *fill_band(struct mel_filters *filters, uint32_t band, const double *edges, float *at)
{
    const struct mel_spec *spec = &filters->spec;
    double left = edges[band], middle = edges[band + 1], right = edges[band + 2];
    double step = spec->rate / spec->n_fft;
    double area = spec->norm == MEL_SLANEY ? 2 / (right - left) : 1;
    uint32_t bins = spec->n_fft / 2 + 1;
    uint32_t first = left < 0 ? 0 : (uint32_t)fmin(floor(left / step), bins);
    while (first < bins && first * step <= left)
        first++;
    filters->first[band] = first;
    uint32_t bin = first;
    for (; bin < bins && bin * step < right; bin++) {
        double up = (bin * step - left) / (middle - left);
        double down = (right - bin * step) / (right - middle);
        *at++ = (float)((up < down ? up : down) * area);
    }
    filters->count[band] = bin - first;
    return at;
}

void mel_filters_init(struct mel_filters *filters, const struct mel_spec *spec, void *memory)
{
    double *edges = memory; /* the widest first, so that all are aligned */
    filters->spec = *spec;
    filters->first = (uint32_t *)(edges + spec->n_mels + 2);
    filters->count = filters->first + spec->n_mels;
    filters->weights = (float *)(filters->count + spec->n_mels);
    double low = mel_of(spec->fmin, spec->htk);
    double high = mel_of(spec->fmax ? spec->fmax : spec->rate / 2, spec->htk);
    for (uint32_t i = 0; i < spec->n_mels + 2; i++)
        edges[i] = hz_of(low + (high - low) * i / (spec->n_mels + 1), spec->htk);
    float *at = filters->weights;
    for (uint32_t band = 0; band < spec->n_mels; band++)
        at = fill_band(filters, band, edges, at);
}
