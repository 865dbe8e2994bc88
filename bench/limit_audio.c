/* limit_audio.c -- libsndfile's own decode: recordings from RAM to float32 in a reused buffer, each
 * opened, read to its end and closed, a thread a core.
 *
 *     limit_audio EXTENTS THREADS SECONDS
 *
 * EXTENTS is a text file with a line "offset length path" for each one. Prints one JSON object. */
#include "limit_crew.h"

#include <sndfile.h>

struct reader {
    const struct sample *sample;
    sf_count_t at;
    float *values;
    size_t room; /* of values, in bytes */
};

static sf_count_t memory_length(void *state)
{
    return (sf_count_t)((struct reader *)state)->sample->len;
}

static sf_count_t memory_seek(sf_count_t offset, int whence, void *state)
{
    struct reader *reader = state;
    sf_count_t from = whence == SEEK_CUR   ? reader->at
                      : whence == SEEK_END ? memory_length(state)
                                           : 0;
    reader->at = from + offset;
    return reader->at;
}

static sf_count_t memory_read(void *to, sf_count_t wanted, void *state)
{
    struct reader *reader = state;
    sf_count_t left = memory_length(state) - reader->at;
    sf_count_t taken = wanted < left ? wanted : left > 0 ? left : 0;
    memcpy(to, reader->sample->data + reader->at, (size_t)taken);
    reader->at += taken;
    return taken;
}

static sf_count_t memory_write(const void *from, sf_count_t count, void *state)
{
    (void)from, (void)count, (void)state;
    return 0;
}

static sf_count_t memory_tell(void *state)
{
    return ((struct reader *)state)->at;
}

static void *reader_open(const void *about)
{
    (void)about;
    void *reader = calloc(1, sizeof(struct reader));
    if (!reader)
        limit_fail("memory");
    return reader;
}

static uint64_t audio_decode(void *state, const struct sample *sample)
{
    static SF_VIRTUAL_IO memory = {memory_length, memory_seek, memory_read, memory_write,
                                   memory_tell};
    struct reader *reader = state;
    SF_INFO info = {0};
    reader->sample = sample;
    reader->at = 0;
    SNDFILE *file = sf_open_virtual(&memory, SFM_READ, &info, reader);
    if (!file)
        limit_fail(sf_strerror(NULL));
    size_t size = (size_t)info.frames * (size_t)info.channels * sizeof(float);
    if (size > reader->room) {
        free(reader->values);
        reader->values = malloc(size);
        reader->room = size;
        if (!reader->values)
            limit_fail("memory");
    }
    if (sf_readf_float(file, reader->values, info.frames) != info.frames)
        limit_fail("a recording is shorter than it says");
    sf_close(file);
    return size;
}

int main(int argc, char **argv)
{
    return crew_main(argc, argv, &(struct limit_job){reader_open, audio_decode, NULL});
}
