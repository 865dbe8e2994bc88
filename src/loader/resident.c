#include "loader/resident.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

long resident_shared_pages(void)
{
    char text[128];
    long size, resident, shared = 0;
    int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    ssize_t len = read(fd, text, sizeof text - 1);
    close(fd);
    if (len <= 0)
        return 0;
    text[len] = '\0';
    return sscanf(text, "%ld %ld %ld", &size, &resident, &shared) == 3 ? shared : 0;
}

void resident_trim(struct stk_loader *loader)
{
    const struct budget *budget = box_pool_budget(loader->pool);
    uint64_t held = atomic_load_explicit(&budget->held, memory_order_relaxed);
    uint64_t left = budget->limit > held ? budget->limit - held : 0;
    long pages = resident_shared_pages() - loader->base_pages;
    if (pages <= 0 || (uint64_t)pages * (uint64_t)sysconf(_SC_PAGESIZE) <= left)
        return;
    store_trim(dataset_store(loader->dataset));
    index_trim(dataset_index(loader->dataset));
}
