#include "device_options.h"

#include <string.h>

#include "exit_status.h"
#include "message.h"
#include "option_value.h"

static int parse_device(const char *name, enum stk_device *device, uint32_t *number)
{
    uint64_t typed = 0;

    *number = 0;
    *device = STK_DEVICE_CUDA;
    if (!name || !strcmp(name, "cpu"))
        *device = STK_DEVICE_CPU;
    else if (!strcmp(name, "auto"))
        *device = STK_DEVICE_AUTO;
    else if (!strncmp(name, "cuda:", 5)) {
        if (!option_value_number(name + 5, INT32_MAX, &typed))
            return 0;
        *number = (uint32_t)typed;
    } else if (strcmp(name, "cuda") != 0)
        return 0;
    return 1;
}

int device_options_check(const char *command, const struct device_arguments *arguments)
{
    enum stk_device device;
    uint32_t number;

    if (!parse_device(arguments->name, &device, &number))
        return message_usage(command, "--device is \"%s\": it may be cpu, cuda, cuda:N or auto",
                             arguments->name);
    if (device != STK_DEVICE_CPU)
        return EXIT_DONE;
    const char *needs = arguments->memory                     ? "--device-memory"
                        : arguments->resident                 ? "--resident"
                        : arguments->decode == STK_DECODE_GPU ? "--decode gpu"
                                                              : NULL;
    if (needs)
        return message_usage(command, "%s needs --device cuda", needs);
    return EXIT_DONE;
}

void device_options_put(const struct device_arguments *arguments,
                        struct stk_loader_options *options)
{
    parse_device(arguments->name, &options->device, &options->device_number);
    options->device_memory = arguments->memory;
    options->resident = (enum stk_resident)arguments->resident;
    options->decode = (enum stk_decode)arguments->decode;
}
