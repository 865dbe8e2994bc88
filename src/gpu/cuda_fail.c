#include "gpu/cuda_fail.h"

#include "base/fail.h"

/* Where no row stands: STK_RESOURCE, with the driver's own words and no remedy. */
static const struct fault {
    int result;
    stk_status status;
    const char *words;
    const char *remedy;
} faults[] = {
    {CUDA_ERROR_OUT_OF_MEMORY, STK_MEMORY, "the GPU has no memory left",
     "give a smaller device_memory= or batch_size=; torch.cuda.empty_cache() gives back what "
     "PyTorch "
     "only keeps"},
    {CUDA_ERROR_STUB_LIBRARY, STK_UNSUPPORTED,
     "libcuda.so.1 is the CUDA toolkit's stub, not the driver",
     "take the toolkit's folder `stubs` out of LD_LIBRARY_PATH"},
    {CUDA_ERROR_INSUFFICIENT_DRIVER, STK_UNSUPPORTED, "the NVIDIA driver is too old",
     "install a newer driver"},
    {CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER, STK_UNSUPPORTED, "the NVIDIA driver is too old",
     "install a newer driver"},
    {CUDA_ERROR_DEVICE_UNAVAILABLE, STK_RESOURCE, "another process has the GPU for itself",
     "end that process (nvidia-smi lists it), or allow sharing: nvidia-smi -c DEFAULT"},
    {CUDA_ERROR_NO_DEVICE, STK_UNSUPPORTED, "there is no GPU that CUDA can use",
     "see what nvidia-smi says, and that CUDA_VISIBLE_DEVICES does not hide it"},
    {CUDA_ERROR_INVALID_DEVICE, STK_UNSUPPORTED, "there is no GPU of that number",
     "nvidia-smi -L lists the GPUs; CUDA_VISIBLE_DEVICES hides and numbers them anew"},
    {CUDA_ERROR_SYSTEM_NOT_READY, STK_UNSUPPORTED, "the GPU system is not ready",
     "start nvidia-fabricmanager (systemctl start nvidia-fabricmanager), or wait until it is up"},
    {CUDA_ERROR_SYSTEM_DRIVER_MISMATCH, STK_UNSUPPORTED,
     "the NVIDIA driver's library and its kernel module are not of one version",
     "restart the machine after an update of the driver; in a container, do not install another "
     "libcuda"},
    {CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE, STK_UNSUPPORTED,
     "CUDA's compatibility library does not serve this GPU",
     "take the folder `compat` out of LD_LIBRARY_PATH, or install a newer driver"},
    {CUDA_ERROR_NO_BINARY_FOR_GPU, STK_UNSUPPORTED, "the kernel was not compiled for this GPU", ""},
    {CUDA_ERROR_DEINITIALIZED, STK_RESOURCE, "the process is ending: CUDA is shut down",
     "close loaders before the process ends"},
};

int cuda_lost(int result)
{
    switch (result) {
    case CUDA_ERROR_ECC_UNCORRECTABLE:
    case CUDA_ERROR_NVLINK_UNCORRECTABLE:
    case CUDA_ERROR_CONTAINED:
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case CUDA_ERROR_LAUNCH_TIMEOUT:
    case CUDA_ERROR_CONTEXT_IS_DESTROYED:
    case CUDA_ERROR_ASSERT:
    case CUDA_ERROR_HARDWARE_STACK_ERROR:
    case CUDA_ERROR_ILLEGAL_INSTRUCTION:
    case CUDA_ERROR_MISALIGNED_ADDRESS:
    case CUDA_ERROR_INVALID_ADDRESS_SPACE:
    case CUDA_ERROR_INVALID_PC:
    case CUDA_ERROR_LAUNCH_FAILED:
    case CUDA_ERROR_UNKNOWN:
        return 1;
    default:
        return 0;
    }
}

stk_status cuda_fail_fork(struct stk_error *err)
{
    (void)fail(err, STK_UNSUPPORTED, "CUDA cannot be used in a forked process");
    fail_remedy(err,
                "start workers with the method spawn (multiprocessing.set_start_method(\"spawn\")"
                "), or open the loader in the process that first used CUDA");
    return STK_UNSUPPORTED;
}

static const struct fault *fault_of(int result)
{
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++)
        if (faults[i].result == result)
            return &faults[i];
    return NULL;
}

stk_status cuda_status(const struct cuda_api *api, int result, const char *doing,
                       struct stk_error *err)
{
    const char *name = NULL, *words = NULL;
    if (result == CUDA_SUCCESS)
        return STK_OK;
    if (api->cuGetErrorName(result, &name) || !name)
        name = "an unknown error";
    if (cuda_lost(result)) {
        (void)fail(err, STK_RESOURCE, "%s: the GPU is lost to this process (CUDA says %s, %d)",
                   doing, name, result);
        fail_remedy(err, "restart the process; the cause may be any kernel that ran before "
                         "(CUDA_LAUNCH_BLOCKING=1 finds it). If it comes again, see dmesg for Xid");
        return STK_RESOURCE;
    }
    const struct fault *fault = fault_of(result);
    if (fault) {
        (void)fail(err, fault->status, "%s: %s (CUDA says %s, %d)", doing, fault->words, name,
                   result);
        fail_remedy(err, "%s", fault->remedy);
        return fault->status;
    }
    if (api->cuGetErrorString(result, &words) || !words)
        words = "no words for it";
    return fail(err, STK_RESOURCE, "%s failed: %s (CUDA says %s, %d)", doing, words, name, result);
}
