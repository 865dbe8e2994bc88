/* fuzz_replay.c -- runs a fuzz target over files and folders, where there is no libFuzzer. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static unsigned replay_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    struct stat info;
    if (!file || fstat(fileno(file), &info)) {
        perror(path);
        exit(1);
    }
    /* Of exactly this size, so that the sanitizer sees one byte too far. */
    uint8_t *data = malloc(info.st_size ? (size_t)info.st_size : 1);
    size_t size = data ? fread(data, 1, (size_t)info.st_size, file) : 0;
    fclose(file);
    if (size != (size_t)info.st_size) {
        fprintf(stderr, "%s: cannot read it\n", path);
        exit(1);
    }
    LLVMFuzzerTestOneInput(data, size);
    free(data);
    return 1;
}

static unsigned replay_folder(const char *path)
{
    DIR *folder = opendir(path);
    struct dirent *entry;
    unsigned count = 0;
    if (!folder) {
        perror(path);
        exit(1);
    }
    while ((entry = readdir(folder))) {
        char name[4096];
        if (entry->d_name[0] == '.')
            continue;
        snprintf(name, sizeof(name), "%s/%s", path, entry->d_name);
        count += replay_file(name);
    }
    closedir(folder);
    return count;
}

int main(int argc, char **argv)
{
    unsigned count = 0;
    for (int i = 1; i < argc; i++) {
        struct stat info;
        if (!stat(argv[i], &info) && S_ISDIR(info.st_mode))
            count += replay_folder(argv[i]);
        else
            count += replay_file(argv[i]);
    }
    printf("%u inputs replayed\n", count);
    return count ? 0 : 1;
}
