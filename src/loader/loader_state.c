/* The state of a loader: a few integers, as JSON. */
#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "base/json.h"
#include "loader/device_decode.h"
#include "loader/loader_impl.h"

#define STATE_VERSION 1
#define SHARE_ONE 4294967296.0 /* a share of 1 in a state: there are integers alone */

static const char *order_name(const struct plan *plan)
{
    if (plan->chance)
        return "weighted";
    return plan->order == STK_ORDER_GLOBAL  ? "global"
           : plan->order == STK_ORDER_LOCAL ? "local"
           : plan->order == STK_ORDER_TIME  ? "time"
                                            : "sequential";
}

/* What must be the same for a state to mean the same samples. */
struct identity {
    char dataset[33], weights[17];
    const char *order;
    uint64_t seed, reach, samples, lanes;
};

static void identity_of(const struct stk_loader *loader, struct identity *out)
{
    uint8_t fingerprint[16];
    stk_dataset_fingerprint(loader->dataset, fingerprint);
    for (int i = 0; i < 16; i++)
        snprintf(out->dataset + 2 * i, 3, "%02x", fingerprint[i]);
    snprintf(out->weights, sizeof out->weights, "%016llx",
             (unsigned long long)loader->plan->weights_hash);
    out->order = order_name(loader->plan);
    out->seed = loader->plan->seed;
    out->reach = loader->plan->reach;
    out->samples = loader->plan->samples;
    out->lanes = loader->plan->lane_count > 1 ? loader->plan->lane_count : 0;
}

stk_status stk_loader_save(const struct stk_loader *loader, char *text, size_t cap, size_t *len,
                           struct stk_error *err)
{
    struct identity id;
    uint64_t epoch = loader->epoch, position = loader->position;
    char decode[64] = "", lanes[40] = "";
    identity_of(loader, &id);
    if (id.lanes)
        snprintf(lanes, sizeof lanes, ", \"lanes\": %llu", (unsigned long long)id.lanes);
    if (loader->decode) /* which decoder makes a sample's pixels must stay the same */
        snprintf(decode, sizeof decode, ", \"decode_share\": %llu",
                 (unsigned long long)(device_decode_share(loader->decode) * SHARE_ONE));
    if (position > 0 && plan_steps(loader->plan, position) == 0) {
        /* a finished epoch is the start of the next one */
        epoch++;
        position = 0;
    }
    int n = snprintf(text, cap,
                     "{\"version\": %d, \"dataset\": \"%s\", \"samples\": %llu, \"order\": \"%s\", "
                     "\"reach\": %llu, \"weights\": \"%s\", \"seed\": %llu, \"epoch\": %llu, "
                     "\"position\": %llu%s%s}",
                     STATE_VERSION, id.dataset, (unsigned long long)id.samples, id.order,
                     (unsigned long long)id.reach, id.weights, (unsigned long long)id.seed,
                     (unsigned long long)epoch, (unsigned long long)position, lanes, decode);
    *len = n < 0 ? 0 : (size_t)n;
    if (n < 0 || (size_t)n >= cap)
        return fail(err, STK_USAGE, "a state needs %d bytes, not %zu", n + 1, cap);
    return STK_OK;
}

static stk_status differs(struct stk_error *err, const char *name, const char *theirs,
                          const char *ours, const char *remedy)
{
    stk_status status =
        fail(err, STK_MISMATCH, "the state's %s is %s, this loader's is %s", name, theirs, ours);
    fail_remedy(err, "%s", remedy);
    return status;
}

static stk_status check_text(const struct json *json, const char *name, const char *ours,
                             const char *remedy, struct stk_error *err)
{
    const char *theirs;
    if (!json_get_text(json, name, &theirs))
        return fail(err, STK_MISMATCH, "the state has no \"%s\"", name);
    return strcmp(theirs, ours) ? differs(err, name, theirs, ours, remedy) : STK_OK;
}

static stk_status check_number(const struct json *json, const char *name, uint64_t ours,
                               const char *remedy, struct stk_error *err)
{
    uint64_t theirs;
    char a[24], b[24];
    if (!json_get_u64(json, name, &theirs))
        return fail(err, STK_MISMATCH, "the state has no \"%s\"", name);
    snprintf(a, sizeof a, "%llu", (unsigned long long)theirs);
    snprintf(b, sizeof b, "%llu", (unsigned long long)ours);
    return theirs != ours ? differs(err, name, a, b, remedy) : STK_OK;
}

/* Absent: none. */
static stk_status check_lanes(const struct json *json, uint64_t ours, struct stk_error *err)
{
    uint64_t theirs = 0;
    if (!json_get_u64(json, "lanes", &theirs))
        theirs = 0;
    if (theirs == ours)
        return STK_OK;
    stk_status status = fail(err, STK_MISMATCH, "the state's local order has %llu lanes, not %llu",
                             (unsigned long long)theirs, (unsigned long long)ours);
    fail_remedy(err, "it was saved by another version of Stoker");
    return status;
}

static stk_status check_identity(const struct stk_loader *loader, const struct json *json,
                                 struct stk_error *err)
{
    struct identity id;
    identity_of(loader, &id);
    stk_status status = check_number(json, "version", STATE_VERSION,
                                     "it was saved by another version of Stoker", err);
    if (!status)
        status = check_text(json, "dataset", id.dataset,
                            "open the same shards, in the same order, with the same subset", err);
    if (!status)
        status = check_number(json, "samples", id.samples, "open the same subset", err);
    if (!status)
        status = check_text(json, "order", id.order,
                            "give the same shuffle= and order=; data on the network is shuffled in "
                            "the local order unless order=\"global\" is given",
                            err);
    if (!status)
        status = check_lanes(json, id.lanes, err);
    if (!status)
        status = check_number(json, "reach", id.reach, "give the same reach=", err);
    if (!status)
        status = check_text(json, "weights", id.weights, "give the same weights=", err);
    if (!status)
        status = check_number(json, "seed", id.seed, "give the same seed=", err);
    return status;
}

stk_status stk_loader_load(struct stk_loader *loader, const char *text, struct stk_error *err)
{
    struct json *json;
    uint64_t epoch, position, stored;
    double share;
    stk_status status = json_parse(&json, text, strlen(text), err);
    if (status)
        return status;
    status = check_identity(loader, json, err);
    if (!status &&
        (!json_get_u64(json, "epoch", &epoch) || !json_get_u64(json, "position", &position)))
        status = fail(err, STK_MISMATCH, "the state has no epoch or no position");
    int shares = json_get_u64(json, "decode_share", &stored);
    share = shares ? (double)stored / SHARE_ONE : 0;
    if (!status)
        status = loader_seek(loader, epoch, position, shares ? &share : NULL, err);
    json_free(json);
    return status;
}
