/* mel_filters.h -- the triangles that gather the bins of a spectrum into mel bands, as librosa's
 * filters.mel makes them.
 * Owns: nothing; tables lie in memory that the caller gives.   Threads: immutable once made.
 * Errors: none.   Not here: the spectrum (log_mel_transform.c). */
#ifndef TRANSFORM_MEL_FILTERS_H
#define TRANSFORM_MEL_FILTERS_H

#include <stdint.h>

enum mel_norm { MEL_SLANEY, MEL_PLAIN }; /* slaney: every triangle has the same area */

struct mel_spec {
    double rate, fmin, fmax; /* fmax 0: half the rate */
    uint32_t n_fft, n_mels;
    int htk;
    enum mel_norm norm;
};

/* Band b is the sum of weights[i] * bin[first[b] + i], i < count[b]; weights of all bands follow
 * one another. */
struct mel_filters {
    struct mel_spec spec;
    uint32_t *first, *count;
    float *weights;
};

/* Bytes of memory that the tables take, with room for mel_filters_init's own work. */
uint64_t mel_filters_bytes(uint32_t n_fft, uint32_t n_mels);
void mel_filters_init(struct mel_filters *filters, const struct mel_spec *spec, void *memory);

#endif
