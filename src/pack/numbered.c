#include "pack/numbered.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int numbered_digits(uint64_t count, int at_least)
{
    int digits = 1;

    for (uint64_t last = count ? count - 1 : 0; last >= 10; last /= 10)
        digits++;
    return digits > at_least ? digits : at_least;
}

void numbered_name(const struct numbered *numbered, uint64_t number, char *out, size_t cap)
{
    snprintf(out, cap, "%s%0*" PRIu64 "%s", numbered->prefix, numbered->digits, number,
             numbered->suffix);
}

static int matches(const struct numbered *numbered, const char *name)
{
    size_t prefix = strlen(numbered->prefix);

    if (strncmp(name, numbered->prefix, prefix))
        return 0;
    size_t digits = strspn(name + prefix, "0123456789");
    return digits >= (size_t)numbered->digits && !strcmp(name + prefix + digits, numbered->suffix);
}

static DIR *open_folder(int folder_fd)
{
    int fd = openat(folder_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *folder = fd < 0 ? NULL : fdopendir(fd);

    if (!folder && fd >= 0)
        close(fd);
    return folder;
}

int numbered_any(const struct numbered *numbered, int folder_fd)
{
    DIR *folder = open_folder(folder_fd);
    int found = 0;

    if (!folder)
        return 0;
    for (struct dirent *entry; !found && (entry = readdir(folder));)
        found = matches(numbered, entry->d_name);
    closedir(folder);
    return found;
}

void numbered_remove(const struct numbered *numbered, int folder_fd)
{
    DIR *folder = open_folder(folder_fd);

    if (!folder)
        return;
    for (struct dirent *entry; (entry = readdir(folder));)
        if (matches(numbered, entry->d_name))
            (void)unlinkat(folder_fd, entry->d_name, 0);
    closedir(folder);
}
