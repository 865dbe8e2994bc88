/* Which devices a run uses, and how busy they were by NVML's samples. */
#include "base/fail.h"
#include "watch/attribution_state.h"

#define ALL_DEVICES UINT32_MAX

/* --- whose kernels nobody recorded --------------------------------------------------------------
 */

int device_use_unrecorded(const struct process_line *line)
{
    const struct rank_line *rank = line->rank;
    if (line->facts.role == PROCESS_WORKER ||
        (rank && (rank->kernels || (rank->recorded && !rank->absent_at))))
        return 0;
    /* CUDA starts in a script that merely asks for it; one that trains on it sets it up. */
    return line->device_from || (rank && rank->absent_at && !rank->steps);
}

/* Of those that still run: devices that NVML names them on; *more: how many it names nowhere. */
static uint32_t devices_named(const struct attribution *attribution, int ended, uint32_t *more)
{
    uint32_t devices = 0;
    *more = 0;
    for (size_t i = 0; i < attribution->process_count; i++) {
        const struct process_line *line = attribution->processes[i];
        if (!device_use_unrecorded(line) || (line->ended && !ended))
            continue;
        devices |= line->devices;
        *more += !line->devices;
    }
    return devices;
}

/* --- how busy -----------------------------------------------------------------------------------
 */

/* A share for each device; < 0: NVML did not say. */
struct device_shares {
    double of[DEVICES_MOST];
};

static struct device_shares shares_find(const struct attribution *attribution, uint64_t start,
                                        uint64_t end)
{
    struct device_shares shares;
    for (uint32_t i = 0; i < DEVICES_MOST; i++)
        shares.of[i] = series_mean(&attribution->devices[i].series, SERIES_GPU_NVML, start, end);
    return shares;
}

/* Adds to some devices as many others, the busiest. */
static uint32_t shares_busiest(const struct device_shares *shares, uint32_t devices, uint32_t more)
{
    for (; more > 0; more--) {
        uint32_t most = DEVICES_MOST;
        for (uint32_t i = 0; i < DEVICES_MOST; i++)
            if (!(devices >> i & 1) && shares->of[i] >= 0 &&
                (most == DEVICES_MOST || shares->of[i] > shares->of[most]))
                most = i;
        if (most == DEVICES_MOST)
            break;
        devices |= 1u << most;
    }
    return devices;
}

static double shares_mean(const struct device_shares *shares, uint32_t devices)
{
    double sum = 0, count = 0;
    for (uint32_t i = 0; i < DEVICES_MOST; i++)
        if (devices >> i & 1 && shares->of[i] >= 0) {
            sum += shares->of[i];
            count++;
        }
    return count > 0 ? sum / count : -1;
}

double device_use_busy(const struct attribution *attribution, const struct process_line *line,
                       uint64_t start, uint64_t end)
{
    struct device_shares shares = shares_find(attribution, start, end);
    uint32_t more, devices = line->devices;
    if (!devices) {
        (void)devices_named(attribution, 1, &more);
        devices = shares_busiest(&shares, 0, more);
    }
    return shares_mean(&shares, devices);
}

double device_use_now(const struct attribution *attribution)
{
    struct device_shares shares;
    uint32_t more, devices = devices_named(attribution, 0, &more);
    for (uint32_t i = 0; i < DEVICES_MOST; i++)
        shares.of[i] = attribution->devices[i].busy;
    return shares_mean(&shares, shares_busiest(&shares, devices, more));
}

/* --- at the end ---------------------------------------------------------------------------------
 */

stk_status device_use_judge(struct attribution *attribution, struct stk_error *err)
{
    for (size_t i = 0; i < attribution->process_count; i++) {
        const struct rank_line *rank = attribution->processes[i]->rank;
        if (rank && (rank->kernels || rank->first_point))
            return STK_OK;
    }
    for (size_t i = 0; i < attribution->process_count; i++) {
        struct process_line *line = attribution->processes[i];
        if (!device_use_unrecorded(line))
            continue;
        struct rank_line *rank = attribution_rank(attribution, line);
        if (!rank)
            return fail_memory(err, sizeof *rank);
        uint64_t from = line->device_from ? line->device_from : rank->absent_at;
        uint64_t upto = line->device_to > from ? line->device_to : attribution->latest;
        if (upto > from && device_use_busy(attribution, line, from, upto) >= 0) {
            rank->first_point = from;
            rank->last_point = upto;
        }
    }
    return STK_OK;
}

/* Those that ranks use; where no rank uses any, all. */
static uint32_t devices_find(const struct attribution *attribution)
{
    struct device_shares shares = shares_find(attribution, 0, attribution->latest);
    uint32_t more, devices = devices_named(attribution, 1, &more);
    for (size_t i = 0; i < attribution->process_count; i++) {
        const struct process_line *line = attribution->processes[i];
        if (line->rank && line->rank->kernels && line->devices)
            devices |= line->devices;
        else if (line->rank && line->rank->device_known && line->rank->device < DEVICES_MOST)
            devices |= 1u << line->rank->device;
    }
    devices = shares_busiest(&shares, devices, more);
    return devices ? devices : ALL_DEVICES;
}

stk_status device_use_series(struct attribution *attribution, struct stk_error *err)
{
    uint32_t devices = devices_find(attribution);
    stk_status status = STK_OK;
    for (uint32_t i = 0; !status && i < DEVICES_MOST; i++)
        if (devices >> i & 1)
            status = series_add(&attribution->series, &attribution->devices[i].series, err);
    return status;
}
