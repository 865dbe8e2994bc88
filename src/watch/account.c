#include "watch/account.h"

#include <assert.h>
#include <string.h>

#include "base/fail.h"
#include "base/memory.h"

#define PLACE_SLOTS ((size_t)1 << 12)
#define PLACES_MOST (PLACE_SLOTS / 2)

stk_status account_place_add(struct account *account, uint32_t slot, uint32_t place, uint64_t ns,
                             struct stk_error *err)
{
    if (!place || !ns)
        return STK_OK;
    if (!account->places) {
        account->places = memory_zero(PLACE_SLOTS, sizeof *account->places);
        if (!account->places)
            return fail_memory(err, PLACE_SLOTS * sizeof *account->places);
    }
    size_t at = (place * UINT32_C(2654435761) + slot * 97u) % PLACE_SLOTS;
    for (;; at = (at + 1) % PLACE_SLOTS) {
        struct account_place *entry = &account->places[at];
        if (!entry->place) {
            if (account->place_count == PLACES_MOST)
                return STK_OK;
            *entry = (struct account_place){place, slot, ns};
            account->place_count++;
            return STK_OK;
        }
        if (entry->place == place && entry->slot == slot) {
            entry->ns += ns;
            return STK_OK;
        }
    }
}

stk_status account_move(struct account *account, uint32_t from, uint32_t to, struct stk_error *err)
{
    account->ns[to] += account->ns[from];
    account->ns[from] = 0;
    struct account_place *old = account->places;
    account->places = NULL;
    account->place_count = 0;
    stk_status status = STK_OK;
    for (size_t i = 0; old && !status && i < PLACE_SLOTS; i++)
        if (old[i].place)
            status = account_place_add(account, old[i].slot == from ? to : old[i].slot,
                                       old[i].place, old[i].ns, err);
    memory_free(old);
    return status;
}

stk_status account_add(struct account *account, uint32_t slot, const struct account *other,
                       double share, struct stk_error *err)
{
    stk_status status = STK_OK;
    account->ns[slot] += (uint64_t)((double)other->ns[slot] * share);
    for (size_t i = 0; other->places && !status && i < PLACE_SLOTS; i++) {
        const struct account_place *entry = &other->places[i];
        if (entry->slot == slot)
            status = account_place_add(account, slot, entry->place,
                                       (uint64_t)((double)entry->ns * share), err);
    }
    return status;
}

void account_scale(struct account *account, uint32_t slot, double scale)
{
    account->ns[slot] = (uint64_t)((double)account->ns[slot] * scale);
    for (size_t i = 0; account->places && i < PLACE_SLOTS; i++)
        if (account->places[i].slot == slot)
            account->places[i].ns = (uint64_t)((double)account->places[i].ns * scale);
}

/* A function, with the line of it that most time went to. */
struct function_sum {
    uint32_t function, file, line;
    uint64_t ns, line_ns;
};

static size_t functions_sum(const struct account *account, uint32_t slot,
                            const struct call_tree *tree, struct function_sum *sums)
{
    size_t count = 0;
    for (size_t i = 0; i < PLACE_SLOTS; i++) {
        const struct account_place *entry = &account->places[i];
        if (!entry->place || entry->slot != slot)
            continue;
        assert(entry->place < tree->place_count);
        const struct call_place *place = &tree->places[entry->place];
        size_t at = 0;
        while (at < count && (sums[at].function != place->function || sums[at].file != place->file))
            at++;
        if (at == count)
            sums[count++] = (struct function_sum){.function = place->function, .file = place->file};
        sums[at].ns += entry->ns;
        if (entry->ns > sums[at].line_ns) {
            sums[at].line_ns = entry->ns;
            sums[at].line = place->line;
        }
    }
    return count;
}

static stk_status function_copy(const struct function_sum *sum, const struct call_tree *tree,
                                struct summary_function *out, struct stk_error *err)
{
    const char *function = call_tree_text(tree, sum->function);
    const char *file = call_tree_text(tree, sum->file);
    out->function = memory_text(function, strlen(function));
    out->file = memory_text(file, strlen(file));
    out->line = sum->line;
    out->ns = sum->ns;
    return out->function && out->file ? STK_OK : fail_memory(err, strlen(file));
}

stk_status account_functions(const struct account *account, uint32_t slot,
                             const struct call_tree *tree, struct summary_function out[3],
                             struct stk_error *err)
{
    if (!account->places || !account->place_count)
        return STK_OK;
    struct function_sum *sums = memory_alloc(account->place_count * sizeof *sums);
    if (!sums)
        return fail_memory(err, account->place_count * sizeof *sums);
    size_t count = functions_sum(account, slot, tree, sums);
    uint64_t all = 0;
    for (size_t i = 0; i < count; i++)
        all += sums[i].ns;
    for (size_t i = 0; all > account->ns[slot] && i < count; i++) /* samples are not exact */
        sums[i].ns = (uint64_t)((double)sums[i].ns * (double)account->ns[slot] / (double)all);
    stk_status status = STK_OK;
    for (int k = 0; !status && k < 3; k++) {
        size_t best = count;
        for (size_t i = 0; i < count; i++)
            if (sums[i].ns && (best == count || sums[i].ns > sums[best].ns))
                best = i;
        if (best == count)
            break;
        status = function_copy(&sums[best], tree, &out[k], err);
        sums[best].ns = 0;
    }
    memory_free(sums);
    return status;
}

void account_reset(struct account *account)
{
    memory_free(account->places);
    *account = (struct account){0};
}
