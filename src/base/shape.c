#include "base/shape.h"

#include <stdio.h>

static int same_from(const struct stk_tensor *a, const struct stk_tensor *b, int32_t axis)
{
    if (a->dtype != b->dtype || a->rank != b->rank)
        return 0;
    for (; axis < a->rank; axis++)
        if (a->shape[axis] != b->shape[axis])
            return 0;
    return 1;
}

int shape_same(const struct stk_tensor *a, const struct stk_tensor *b)
{
    return same_from(a, b, 0);
}

int shape_same_rows(const struct stk_tensor *a, const struct stk_tensor *b)
{
    return same_from(a, b, 1);
}

void shape_text(const struct stk_tensor *shape, char *out, size_t cap)
{
    size_t len = (size_t)snprintf(out, cap, "%s (", stk_dtype_name(shape->dtype));
    for (int32_t axis = 0; axis < shape->rank && len < cap; axis++)
        len += (size_t)snprintf(out + len, cap - len, "%s%lld", axis ? ", " : "",
                                (long long)shape->shape[axis]);
    if (len < cap)
        snprintf(out + len, cap - len, ")");
}
