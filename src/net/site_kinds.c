#include "net/site_kinds.h"

#include <string.h>
#include <strings.h>

static const struct site_ops *const kinds[] = {&http_site, &s3_site, &azure_site, &gs_site};

static int has_scheme(const struct site_ops *kind, const char *scheme, size_t length)
{
    for (const char *const *own = kind->schemes; *own; own++)
        if (strlen(*own) == length && !strncasecmp(*own, scheme, length))
            return 1;
    return 0;
}

const struct site_ops *site_kind_of(const char *uri)
{
    const char *end = uri ? strstr(uri, "://") : NULL;
    if (!end)
        return NULL;
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        if (has_scheme(kinds[i], uri, (size_t)(end - uri)))
            return kinds[i];
    return NULL;
}

int site_is_remote(const char *uri)
{
    return site_kind_of(uri) != NULL;
}
