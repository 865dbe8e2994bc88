#include "watch/trace_stages.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/parse.h"

#define LINE 4096 /* a longer line is none of ours */
#define TAIL 512

/* "stages.7.3.json" */
static int read_name(const char *name, struct stage_event *out)
{
    unsigned pid, number;
    int len = 0;
    if (sscanf(name, "stages.%u.%u.json%n", &pid, &number, &len) != 2 || !len || name[len])
        return 0;
    *out = (struct stage_event){.pid = pid, .number = number};
    return 1;
}

/* The times count from a moment that stands at the file's end. */
static int read_begun(FILE *file, uint64_t *out)
{
    static const char key[] = "\"begun_ns\":";
    char tail[TAIL + 1];
    if (fseek(file, -TAIL, SEEK_END) != 0)
        rewind(file); /* it is shorter than that */
    tail[fread(tail, 1, TAIL, file)] = '\0';
    rewind(file);
    const char *found = strstr(tail, key);
    if (!found)
        return 0;
    found += sizeof key - 1;
    return parse_u64(found, strspn(found, "0123456789"), out);
}

static void read_events(FILE *file, struct stage_event *stage,
                        void (*take)(void *user, const struct stage_event *event), void *user)
{
    char line[LINE];
    while (fgets(line, sizeof line, file)) { /* an event a line */
        struct json *event;
        size_t len = strcspn(line, "\n");
        if (len && line[len - 1] == ',')
            len--;
        if (line[0] != '{' || line[len] == '\0' || json_parse(&event, line, len, NULL))
            continue;
        stage->event = event;
        take(user, stage);
        json_free(event);
    }
}

void trace_stages_read(int folder, void (*take)(void *user, const struct stage_event *event),
                       void *user)
{
    struct stage_event stage;
    int copy = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *list = copy < 0 ? NULL : fdopendir(copy);
    if (!list && copy >= 0)
        close(copy);
    for (struct dirent *entry; list && (entry = readdir(list));) {
        if (!read_name(entry->d_name, &stage))
            continue;
        int fd = openat(folder, entry->d_name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
        FILE *file = fd < 0 ? NULL : fdopen(fd, "r");
        if (file && read_begun(file, &stage.begun))
            read_events(file, &stage, take, user);
        if (file)
            fclose(file);
        else if (fd >= 0)
            close(fd);
    }
    if (list)
        closedir(list);
}
