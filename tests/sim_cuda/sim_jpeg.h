/* sim_jpeg.h -- JPEGs for the simulated nvJPEG, by libjpeg.
 * Owns: nothing.   Threads: any.   Errors: not 0.   Not here: nvJPEG's functions (sim_nvjpeg.c). */
#ifndef SIM_CUDA_SIM_JPEG_H
#define SIM_CUDA_SIM_JPEG_H

#include <stddef.h>
#include <stdint.h>

struct sim_jpeg_header {
    int width, height, components;
    int plain; /* baseline, one scan, grey or YCbCr */
    int whole; /* the mark of its end is there */
};
int sim_jpeg_read_header(const uint8_t *data, size_t len, struct sim_jpeg_header *out);

struct sim_jpeg_task {
    const uint8_t *data;
    size_t len;
    int x, y, width, height; /* of the image */
    int channels;
    uint8_t *out;
    size_t pitch;
};
/* What cannot be decoded is left as it was. */
void sim_jpeg_decode(const struct sim_jpeg_task *task, int interpolates);

#endif
