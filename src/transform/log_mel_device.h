/* log_mel_device.h -- LogMel on devices: log_mel_kernel.cu around cuFFT.
 * Owns: a struct log_mel_devices holds, for each device it ran on, a plan of cuFFT and the tables
 * in device memory; it keeps the gpu open until it is reset.   Threads: run from any that entered
 * the gpu, in any stream: runs that share a plan wait for each other on the device.   Errors: those
 * of gpu.h; STK_UNSUPPORTED without cuFFT.   Not here: arguments (log_mel_transform.c). */
#ifndef TRANSFORM_LOG_MEL_DEVICE_H
#define TRANSFORM_LOG_MEL_DEVICE_H

#include <pthread.h>

#include "transform/log_mel_kernel.h"
#include "transform/mel_filters.h"
#include "transform/transform.h"

struct log_mel_devices {
    pthread_mutex_t lock;
    struct log_mel_device *first; /* under lock */
};

/* What LogMel's arguments come to. */
struct log_mel_setting {
    struct mel_spec spec;
    const float *window; /* n_fft */
    int64_t hop;
    uint32_t side; /* values that are padded in front and behind */
    enum mel_pad pad;
    float power, amin, offset, top_db; /* top_db 0: all are kept */
};

void log_mel_devices_init(struct log_mel_devices *devices);
void log_mel_devices_reset(struct log_mel_devices *devices); /* waits for the devices */

/* Not 0: there is no cuFFT, or the sample is too large. out: of one sample. */
int log_mel_device_refuses(const struct stk_flow *out);
uint64_t log_mel_device_scratch(const struct log_mel_setting *setting, const struct stk_flow *out,
                                uint32_t count);
STK_CHECK stk_status log_mel_device_run(struct log_mel_devices *devices,
                                        const struct log_mel_setting *setting,
                                        const struct transform_device_step *step,
                                        struct stk_error *err);

#endif
