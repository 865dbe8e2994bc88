/* Any text as a chain of transforms: what is taken is written back, and read again as the same. */
#include <stdlib.h>
#include <string.h>

#include "transform/chain.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The caller frees it. */
static char *written(const struct chain *chain)
{
    size_t len = chain_text(chain, NULL, 0);
    char *text = malloc(len + 1);
    if (!text)
        abort();
    text[0] = 0;
    chain_text(chain, text, len + 1);
    return text;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct chain chain, again;
    struct stk_error err;
    char *text = malloc(size + 1); /* of this very size, so that reading past it is seen */
    if (!text)
        abort();
    if (size)
        memcpy(text, data, size);
    text[size] = 0;
    if (!chain_parse(&chain, text, NULL, &err)) {
        char *once = written(&chain);
        if (chain_parse(&again, once, NULL, &err))
            abort();
        char *twice = written(&again);
        if (strcmp(once, twice))
            abort();
        free(once);
        free(twice);
        chain_reset(&again);
        chain_reset(&chain);
    }
    free(text);
    return 0;
}
