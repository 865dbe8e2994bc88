/* sim_image.h -- what the simulated NVRTC hands to the simulated driver in place of machine code: a
 * line "SIMCUBIN N" with the number of bytes of all, the source, and a mark at the end.
 * Owns: nothing.   Threads: any.   Errors: none.   Not here: what is done with it
 * (sim_module.c, sim_nvrtc.c). */
#ifndef SIM_CUDA_SIM_IMAGE_H
#define SIM_CUDA_SIM_IMAGE_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SIM_IMAGE_MARK "SIMCUBIN "
#define SIM_IMAGE_HEAD "SIMCUBIN %020lu\n"
#define SIM_IMAGE_END "\nSIMEND\n"
enum { SIM_IMAGE_HEAD_SIZE = 30, SIM_IMAGE_END_SIZE = 8 };

/* The caller's, to free; *size: of all, without a zero at the end. */
static inline char *sim_image_make(const char *source, uint64_t *size)
{
    *size = SIM_IMAGE_HEAD_SIZE + strlen(source) + SIM_IMAGE_END_SIZE;
    char *image = malloc(*size + 1);
    if (image)
        snprintf(image, *size + 1, SIM_IMAGE_HEAD "%s" SIM_IMAGE_END, *size, source);
    return image;
}

static inline int sim_image_is_whole(const char *image)
{
    uint64_t size;
    return sscanf(image, SIM_IMAGE_HEAD, &size) == 1 &&
           size >= SIM_IMAGE_HEAD_SIZE + SIM_IMAGE_END_SIZE && size <= (uint64_t)1 << 24 &&
           !memcmp(image + size - SIM_IMAGE_END_SIZE, SIM_IMAGE_END, SIM_IMAGE_END_SIZE);
}

#endif
