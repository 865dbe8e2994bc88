/* sim_faults.c -- the way into and out of every function of the simulated driver: it counts calls,
 * fails the one that a test named, and knows what a lost device, a missing context and a fork are.
 */
#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "simulator.h"

struct simulator simulator = {.lock = PTHREAD_MUTEX_INITIALIZER,
                              .progress = PTHREAD_COND_INITIALIZER};

static uint64_t setting(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    if (!text || !*text)
        return otherwise;
    char *end;
    uint64_t value = strtoull(text, &end, 0);
    const char *units = "KMG", *unit = *end ? strchr(units, toupper((unsigned char)*end)) : NULL;
    return unit ? value << 10 * (unit - units + 1) : value;
}

static int fault_set(const char *text)
{
    struct sim_fault fault = {0};
    if (text && *text) {
        const char *colon = strchr(text, ':');
        if (!colon || (size_t)(colon - text) >= sizeof fault.name)
            return CUDA_ERROR_INVALID_VALUE;
        memcpy(fault.name, text, (size_t)(colon - text));
        if (sscanf(colon, ":%lu:%d", &fault.call, &fault.error) != 2 || !fault.call)
            return CUDA_ERROR_INVALID_VALUE;
    }
    simulator.fault = fault;
    simulator.calls = simulator.fault_calls = 0;
    for (int i = 0; i < SIM_DEVICES; i++)
        simulator.contexts[i].lost = 0;
    return CUDA_SUCCESS;
}

/* The child of a fork finds the lock free and a driver that answers 3, as CUDA's does. */
static void fork_prepare(void)
{
    pthread_mutex_lock(&simulator.lock);
}
static void fork_parent(void)
{
    pthread_mutex_unlock(&simulator.lock);
}
static void fork_child(void)
{
    simulator.forked = 1;
    pthread_mutex_unlock(&simulator.lock);
}

__attribute__((constructor)) static void simulator_open(void)
{
    simulator.devices = (int)setting("SIM_CUDA_DEVICES", 1);
    if (simulator.devices > SIM_DEVICES)
        simulator.devices = SIM_DEVICES;
    simulator.driver = (int)setting("SIM_CUDA_DRIVER", 13000);
    simulator.memory = setting("SIM_CUDA_MEMORY", (uint64_t)1 << 30);
    simulator.seed = setting("SIM_CUDA_SEED", 1);
    simulator.delay_us = setting("SIM_CUDA_DELAY_US", 50);
    simulator.report = (int)setting("SIM_CUDA_REPORT", 0);
    const char *ptx = getenv("SIM_CUDA_PTX");
    simulator.refuse_ptx = ptx && !strcmp(ptx, "refuse");
    for (int i = 0; i < SIM_DEVICES; i++)
        simulator.contexts[i].number = i;
    if (fault_set(getenv("SIM_CUDA_FAIL")))
        sim_complain("SIM_CUDA_FAIL is NAME:N:ERROR, not %s", getenv("SIM_CUDA_FAIL"));
    pthread_atfork(fork_prepare, fork_parent, fork_child);
}

__attribute__((destructor)) static void simulator_close(void)
{
    if (!simulator.report || simulator.forked)
        return;
    struct sim_cuda_counts c;
    sim_cuda_counts(&c);
    fprintf(stderr,
            "sim_cuda: alive: %lu contexts, %lu allocations (%lu bytes), %lu registrations "
            "(%lu bytes), %lu streams, %lu events, %lu modules, %lu operations; ever: %lu bytes at "
            "once, %lu copies in (%lu bytes), %lu out (%lu bytes), %lu of them pageable, "
            "%lu launches, %lu complaints\n",
            c.contexts, c.allocations, c.allocated_bytes, c.registrations, c.registered_bytes,
            c.streams, c.events, c.modules, c.queued, c.peak_bytes, c.copies_in, c.copied_in_bytes,
            c.copies_out, c.copied_out_bytes, c.pageable_copies, c.launches, c.complaints);
}

void sim_complain(const char *format, ...)
{
    char line[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    fprintf(stderr, "sim_cuda: %s\n", line);
    simulator.counts.complaints++;
}

int sim_is_lasting(int error)
{
    return error == CUDA_ERROR_ECC_UNCORRECTABLE || error == CUDA_ERROR_NVLINK_UNCORRECTABLE ||
           error == CUDA_ERROR_ILLEGAL_ADDRESS || error == CUDA_ERROR_LAUNCH_TIMEOUT ||
           error == CUDA_ERROR_ASSERT ||
           (error >= CUDA_ERROR_HARDWARE_STACK_ERROR && error <= CUDA_ERROR_LAUNCH_FAILED);
}

/* The injected error of this call, or 0. */
static int fault_of(const char *name)
{
    struct sim_fault *fault = &simulator.fault;
    simulator.calls++;
    if (!fault->call || (strcmp(fault->name, "*") && strcmp(fault->name, name)))
        return CUDA_SUCCESS;
    return ++simulator.fault_calls == fault->call ? fault->error : CUDA_SUCCESS;
}

/* What stands in the way whatever the arguments are, or 0. */
static int obstacle_of(const struct sim_call *call, unsigned needs)
{
    if (simulator.forked && simulator.initialised)
        return CUDA_ERROR_NOT_INITIALIZED;
    if ((needs & CALL_DEVICE) && !simulator.initialised)
        return CUDA_ERROR_NOT_INITIALIZED;
    if ((needs & CALL_CONTEXT) != CALL_CONTEXT)
        return CUDA_SUCCESS;
    if (!call->context)
        return CUDA_ERROR_INVALID_CONTEXT;
    return call->context->retained ? CUDA_SUCCESS : CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

int sim_enter(struct sim_call *call, const char *name, unsigned needs)
{
    *call = (struct sim_call){.name = name, .context = sim_current()};
    pthread_mutex_lock(&simulator.lock);
    call->fault = fault_of(name);
    if (sim_is_lasting(call->fault)) {
        struct cuda_context *lost = call->context ? call->context : &simulator.contexts[0];
        lost->lost = call->fault;
    }
    call->result = obstacle_of(call, needs);
    if (call->result)
        return 0;
    if ((needs & CALL_CONTEXT) == CALL_CONTEXT && !call->fault)
        call->fault = call->context->lost;
    if (call->fault)
        return !!(needs & CALL_FREES);
    if (needs & CALL_UNSAFE)
        call->result = sim_capture_forbids();
    return !call->result;
}

int sim_leave(struct sim_call *call)
{
    int result = call->fault ? call->fault : call->result;
    if (call->context && sim_is_lasting(result) && !call->context->lost)
        call->context->lost = result;
    pthread_mutex_unlock(&simulator.lock);
    return result;
}

int sim_cuda_fail(const char *text)
{
    pthread_mutex_lock(&simulator.lock);
    int result = fault_set(text);
    pthread_mutex_unlock(&simulator.lock);
    return result;
}

uint64_t sim_cuda_calls(void)
{
    pthread_mutex_lock(&simulator.lock);
    uint64_t calls = simulator.calls;
    pthread_mutex_unlock(&simulator.lock);
    return calls;
}

void sim_cuda_counts(struct sim_cuda_counts *out)
{
    pthread_mutex_lock(&simulator.lock);
    *out = simulator.counts;
    out->allocations = simulator.device_memory.count;
    out->allocated_bytes = simulator.device_memory.bytes;
    out->registrations = simulator.host_memory.count;
    out->registered_bytes = simulator.host_memory.bytes;
    out->contexts = out->streams = out->events = out->queued = 0;
    for (int i = 0; i < SIM_DEVICES; i++)
        out->contexts += simulator.contexts[i].retained;
    for (struct gpu_stream *stream = simulator.streams; stream; stream = stream->next) {
        out->streams += stream->made && !stream->closed;
        out->queued += stream->issued - stream->finished;
    }
    for (struct gpu_event *event = simulator.events; event; event = event->next)
        out->events++;
    pthread_mutex_unlock(&simulator.lock);
}
