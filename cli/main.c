/* The plain binary: a context without a Parquet writer, and the command. */
#include <stdio.h>

#include "stoker_main.h"

int main(int argc, char **argv)
{
    struct stk_hooks hooks = {0};
    struct stk_context *context;
    struct stk_error err;

    stoker_hooks(&hooks);
    if (stk_context_new(&context, &hooks, &err)) {
        fprintf(stderr, "stoker: %s\n", err.what);
        return 1;
    }
    int status = stoker_main(argc, argv, context);
    stk_context_free(context);
    return status;
}
