/* lane_fft.h -- the Fourier transform of eight signals at once: one in each lane of a vector.
 * Owns: nothing; tables lie in memory that the caller gives.   Threads: tables are immutable once
 * made.   Errors: none.   Not here: windows, spectra (log_mel_transform.c).
 *
 * Every size is taken: factors 4, 2, 3 and 5 are quick, another prime p costs p times its share. */
#ifndef TRANSFORM_LANE_FFT_H
#define TRANSFORM_LANE_FFT_H

#include <stdint.h>

#define LANES 8
typedef float lanes __attribute__((vector_size(4 * LANES)));
struct lane_cell {
    lanes re, im;
};

enum lane_width { LANE_PLAIN, LANE_WIDE }; /* the same results, bit for bit */
enum lane_width lane_width(void);          /* what this processor can */

#define LANE_FFT_FACTORS 24
struct lane_fft {
    uint32_t size, factor_count;
    uint32_t factors[LANE_FFT_FACTORS];
    const float *roots; /* (cos, -sin) in the order they are used */
    enum lane_width width;
};

/* Floats of memory that the tables of a size take. */
uint64_t lane_fft_floats(uint32_t size);
void lane_fft_init(struct lane_fft *fft, uint32_t size, enum lane_width width, float *memory);
/* data, work: size cells each. Returns the one that holds the result: sums of
 * data[k] exp(-2 pi i j k / size). */
struct lane_cell *lane_fft_run(const struct lane_fft *fft, struct lane_cell *data,
                               struct lane_cell *work);

#endif
