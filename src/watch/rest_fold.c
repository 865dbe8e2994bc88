#include "watch/rest_fold.h"

/* Causes that only the device's records show; the others are what the loop waits for. */
static int is_devices(uint32_t slot)
{
    return slot == CAUSE_COPY || slot == CAUSE_LAUNCH || slot == CAUSE_SYNC || slot == CAUSE_RANK ||
           slot == CAUSE_OVERHEAD || slot == CAUSE_OTHER;
}

static double sum_of(const struct account *account, int devices)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i <= ACCOUNT_WORKER_CPU; i++)
        sum += is_devices(i) == devices ? account->ns[i] : 0;
    return (double)sum;
}

static double not_judged(const struct account *account)
{
    return (double)(account->ns[ACCOUNT_PROFILED] + account->ns[ACCOUNT_COMPILED] +
                    account->ns[ACCOUNT_SET_UP]);
}

static double least(double a, double b)
{
    return a < b ? a : b;
}

/* How many steps there were in the rest for each one before; without steps, batches; without
 * either, the time says. */
static double steps_ratio(const struct rank_line *rank, double recorded, double rested)
{
    uint64_t all = rank->steps ? rank->steps : rank->batches;
    uint64_t in_rest = rank->steps ? rank->rest_steps : rank->rest_batches;
    if (all > in_rest)
        return (double)in_rest / (double)(all - in_rest);
    return recorded > 0 ? rested / recorded : 0;
}

stk_status rest_fold(struct rank_line *rank, double *counts, struct stk_error *err)
{
    struct account *seen = &rank->account, *rest = &rank->rest_account;
    *counts = 1;
    if (!rank->rested_ns)
        return STK_OK;
    double rested = (double)rank->rested_ns - not_judged(rest);
    double recorded = (double)(rank->judged_to - rank->judged_from) - (double)rank->rested_ns;
    recorded -= not_judged(seen);
    double devices = sum_of(seen, 1), loops = sum_of(rest, 0);
    double ratio = steps_ratio(rank, recorded, rested);
    double busy = least(rested, (recorded - devices - sum_of(seen, 0)) * ratio);
    double idle_devices = least(rested - busy, devices * ratio);
    double idle_loops = least(rested - busy - idle_devices, loops);
    idle_devices = rested - busy - idle_loops; /* steps may have become slower */
    stk_status status = STK_OK;
    for (uint32_t i = 0; !status && i < ACCOUNT_SLOTS; i++) {
        if (i > ACCOUNT_WORKER_CPU)
            status = account_add(seen, i, rest, i == ACCOUNT_RESTED ? 0 : 1, err);
        else if (!is_devices(i))
            status = account_add(seen, i, rest, loops > 0 ? idle_loops / loops : 0, err);
        else if (devices > 0)
            account_scale(seen, i, 1 + idle_devices / devices);
    }
    if (devices <= 0)
        seen->ns[CAUSE_OTHER] += (uint64_t)idle_devices;
    *counts = 1 + ratio;
    return status;
}
