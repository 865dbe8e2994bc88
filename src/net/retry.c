#include "net/retry.h"

void retry_budget_init(struct retry_budget *budget, int64_t now_ns)
{
    *budget = (struct retry_budget){.tokens = RETRY_TOKENS, .filled_ns = now_ns};
}

void retry_earn(struct retry_budget *budget, double tokens)
{
    budget->tokens += tokens;
    if (budget->tokens > RETRY_TOKENS)
        budget->tokens = RETRY_TOKENS;
}

int retry_pay(struct retry_budget *budget, int64_t now_ns, double cost)
{
    if (now_ns > budget->filled_ns) {
        retry_earn(budget, (double)(now_ns - budget->filled_ns) * 1e-9 * RETRY_TOKENS_A_SECOND);
        budget->filled_ns = now_ns;
    }
    if (budget->tokens < cost)
        return 0;
    budget->tokens -= cost;
    return 1;
}

int64_t retry_wait(const struct retry_cause *cause)
{
    const int64_t base = cause->is_throttle ? RETRY_BASE_THROTTLED_NS : RETRY_BASE_NS;
    if (cause->retry_after_ms >= 0) {
        /* A day is as good as any longer time: the deadline ends it. */
        const int64_t most_ms = 86400000;
        const int64_t asked_ms = cause->retry_after_ms < most_ms ? cause->retry_after_ms : most_ms;
        const int64_t asked = asked_ms * 1000000;
        return asked + (int64_t)(cause->random * (double)(asked / 10 + RETRY_BASE_NS));
    }
    int64_t most = base;
    for (uint32_t i = 1; i < cause->tries && most < RETRY_CAP_NS; i++)
        most *= 2;
    if (most > RETRY_CAP_NS)
        most = RETRY_CAP_NS;
    return (int64_t)(cause->random * (double)most);
}
