/* sim_nvrtc.c -- a simulated NVRTC: "compiles" a kernel's source to an image that the simulated
 * driver takes.
 *   SIM_NVRTC=refuse  no source compiles
 *   SIM_NVRTC=ptx     it does not know the simulated device and makes PTX for an older one */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim_cuda.h"
#include "sim_image.h"

enum {
    NVRTC_OK = 0,
    NVRTC_NO_MEMORY = 1,
    NVRTC_BAD_INPUT = 3,
    NVRTC_BAD_PROGRAM = 4,
    NVRTC_COMPILATION = 6
};

struct nvrtc_program {
    char *source, *image;
    uint64_t size; /* of the image */
    char log[256];
};

SIM_API int nvrtcVersion(int *major, int *minor);
SIM_API int nvrtcGetNumSupportedArchs(int *count);
SIM_API int nvrtcGetSupportedArchs(int *archs);
SIM_API const char *nvrtcGetErrorString(int result);
SIM_API int nvrtcCreateProgram(struct nvrtc_program **program, const char *source, const char *name,
                               int count, const char *const *headers, const char *const *names);
SIM_API int nvrtcDestroyProgram(struct nvrtc_program **program);
SIM_API int nvrtcCompileProgram(struct nvrtc_program *program, int count,
                                const char *const *options);
SIM_API int nvrtcGetCUBINSize(struct nvrtc_program *program, size_t *size);
SIM_API int nvrtcGetCUBIN(struct nvrtc_program *program, char *out);
SIM_API int nvrtcGetPTXSize(struct nvrtc_program *program, size_t *size);
SIM_API int nvrtcGetPTX(struct nvrtc_program *program, char *out);
SIM_API int nvrtcGetProgramLogSize(struct nvrtc_program *program, size_t *size);
SIM_API int nvrtcGetProgramLog(struct nvrtc_program *program, char *out);

int nvrtcVersion(int *major, int *minor)
{
    *major = 13;
    *minor = 0;
    return NVRTC_OK;
}

static int mode_is(const char *name)
{
    const char *mode = getenv("SIM_NVRTC");
    return mode && !strcmp(mode, name);
}

/* The simulated device is a 9.0. */
int nvrtcGetNumSupportedArchs(int *count)
{
    *count = mode_is("ptx") ? 2 : 3;
    return NVRTC_OK;
}

int nvrtcGetSupportedArchs(int *archs)
{
    archs[0] = 75;
    archs[1] = 80;
    if (!mode_is("ptx"))
        archs[2] = 90;
    return NVRTC_OK;
}

const char *nvrtcGetErrorString(int result)
{
    static const char *const words[] = {"NVRTC_SUCCESS",
                                        "NVRTC_ERROR_OUT_OF_MEMORY",
                                        "NVRTC_ERROR_PROGRAM_CREATION_FAILURE",
                                        "NVRTC_ERROR_INVALID_INPUT",
                                        "NVRTC_ERROR_INVALID_PROGRAM",
                                        "NVRTC_ERROR_INVALID_OPTION",
                                        "NVRTC_ERROR_COMPILATION"};
    return result >= 0 && result <= NVRTC_COMPILATION ? words[result] : "NVRTC_ERROR unknown";
}

int nvrtcCreateProgram(struct nvrtc_program **program, const char *source, const char *name,
                       int count, const char *const *headers, const char *const *names)
{
    (void)name;
    (void)headers;
    (void)names;
    if (!program || !source || count < 0)
        return NVRTC_BAD_INPUT;
    *program = calloc(1, sizeof **program);
    if (!*program || !((*program)->source = strdup(source))) {
        free(*program);
        *program = NULL;
        return NVRTC_NO_MEMORY;
    }
    return NVRTC_OK;
}

int nvrtcDestroyProgram(struct nvrtc_program **program)
{
    if (!program || !*program)
        return NVRTC_BAD_PROGRAM;
    free((*program)->source);
    free((*program)->image);
    free(*program);
    *program = NULL;
    return NVRTC_OK;
}

int nvrtcCompileProgram(struct nvrtc_program *program, int count, const char *const *options)
{
    int named = 0; /* an architecture */
    for (int i = 0; i < count; i++)
        named |= strstr(options[i], "-arch") != NULL;
    const char *wrong = NULL;
    if (mode_is("refuse"))
        wrong = "refused on purpose";
    else if (!named)
        wrong = "no --gpu-architecture: the code would be for the oldest device";
    else if (!strstr(program->source, "__global__"))
        wrong = "the source has no kernel";
    if (wrong) {
        snprintf(program->log, sizeof program->log, "sim_nvrtc: error: %s\n", wrong);
        return NVRTC_COMPILATION;
    }
    free(program->image);
    program->image = sim_image_make(program->source, &program->size);
    return program->image ? NVRTC_OK : NVRTC_NO_MEMORY;
}

int nvrtcGetCUBINSize(struct nvrtc_program *program, size_t *size)
{
    if (!program->image)
        return NVRTC_BAD_PROGRAM;
    *size = program->size;
    return NVRTC_OK;
}

int nvrtcGetCUBIN(struct nvrtc_program *program, char *out)
{
    if (!program->image)
        return NVRTC_BAD_PROGRAM;
    memcpy(out, program->image, program->size);
    return NVRTC_OK;
}

int nvrtcGetPTXSize(struct nvrtc_program *program, size_t *size)
{
    if (!program->image)
        return NVRTC_BAD_PROGRAM;
    *size = program->size + 1; /* a text, with its zero */
    return NVRTC_OK;
}

int nvrtcGetPTX(struct nvrtc_program *program, char *out)
{
    if (!program->image)
        return NVRTC_BAD_PROGRAM;
    memcpy(out, program->image, program->size + 1);
    return NVRTC_OK;
}

int nvrtcGetProgramLogSize(struct nvrtc_program *program, size_t *size)
{
    *size = strlen(program->log) + 1;
    return NVRTC_OK;
}

int nvrtcGetProgramLog(struct nvrtc_program *program, char *out)
{
    strcpy(out, program->log);
    return NVRTC_OK;
}
