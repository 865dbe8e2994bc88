#include "index/sample_name.h"

#include <string.h>

static size_t base_start(const char *name, size_t len)
{
    const char *slash = memrchr(name, '/', len);
    return slash ? (size_t)(slash - name) + 1 : 0;
}

int sample_name_split(const char *name, size_t len, size_t *key_len)
{
    *key_len = 0;
    size_t base = base_start(name, len);
    const char *dot = memchr(name + base, '.', len - base);
    if (!dot)
        return 0;
    size_t before = (size_t)(dot - name);
    if (before == base) { /* a hidden name: its folder is the key, when that has no dot */
        if (base == 0)
            return 0;
        size_t folder = base_start(name, base - 1);
        if (memchr(name + folder, '.', base - folder))
            return 0;
    }
    *key_len = before;
    return 1;
}

int sample_name_is_meta(const char *name, size_t len)
{
    const char *slash = memchr(name, '/', len);
    size_t first = slash ? (size_t)(slash - name) : len;
    if (first < 4) /* "__" and "___" have no dot and are passed over anyway */
        return 0;
    return !memcmp(name, "__", 2) && !memcmp(name + first - 2, "__", 2);
}
