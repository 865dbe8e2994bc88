#include "state_file.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "message.h"
#include "output_file.h"

static int not_a_state(const char *path)
{
    return message_failed("%s is no state of stoker stream\n  make one with: stoker stream SRC "
                          "--save-state FILE",
                          path);
}

static int parse_header(const char *line, struct state_file *state)
{
    int used = 0;

    if (sscanf(line, "stoker-state 1 first_epoch %" SCNu64 "%n", &state->first_epoch, &used) != 1 ||
        used == 0)
        return 0;
    if (!strcmp(line + used, "\n"))
        return 1;
    line += used;
    used = 0;
    state->has_digest = 1;
    return sscanf(line, " digest %" SCNx64 " %" SCNx64 " %" SCNu64 "%n", &state->digest.state[0],
                  &state->digest.state[1], &state->digest.samples, &used) == 3 &&
           used && !strcmp(line + used, "\n");
}

int state_file_read(const char *path, struct state_file *state)
{
    char header[256], rest[2];
    FILE *stream = fopen(path, "re");
    int good;

    memset(state, 0, sizeof(*state));
    if (!stream)
        return message_failed("cannot read %s: %s", path, strerror(errno));
    good = fgets(header, sizeof(header), stream) && parse_header(header, state) &&
           fgets(state->text, sizeof(state->text), stream) && !fgets(rest, sizeof(rest), stream);
    fclose(stream);
    return good ? 0 : not_a_state(path);
}

int state_file_write(const char *path, const struct state_file *state)
{
    struct output_file file;
    int status = output_file_begin(&file, path);

    if (status)
        return status;
    fprintf(file.stream, "stoker-state 1 first_epoch %" PRIu64, state->first_epoch);
    if (state->has_digest)
        fprintf(file.stream, " digest %" PRIx64 " %" PRIx64 " %" PRIu64, state->digest.state[0],
                state->digest.state[1], state->digest.samples);
    fprintf(file.stream, "\n%s\n", state->text);
    return output_file_commit(&file);
}
