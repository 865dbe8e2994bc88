/* remote_fixture.h -- objects that a web server on this machine has, the same as files in a folder,
 * a store over each, and reads that know what they should find.
 * Owns: the server, the folder and the stores, between remote_new and remote_free.   Threads: one
 * queue a thread.   Errors: a failed assertion.   Not here: any test. */
#ifndef TESTS_STORE_REMOTE_FIXTURE_H
#define TESTS_STORE_REMOTE_FIXTURE_H

#include "base/testing.h"

#include "base/clock.h"
#include "base/random.h"
#include "net/answering.h"
#include "net/site.h"
#include "store/block_cache.h"
#include "store/remote.h"
#include "store/scan.h"

#define REMOTE_OBJECTS 8
#define ETAG "ETag: \"one\"\r\n"

static const uint64_t remote_sizes[REMOTE_OBJECTS] = {
    0, 1, 1000, 65536, 700001, (uint64_t)2 << 20, ((uint64_t)3 << 20) + 17, 9000000};

struct remote_fixture {
    char folder[PATH_MAX];
    char names[REMOTE_OBJECTS][16], paths[REMOTE_OBJECTS][16];
    uint8_t *bodies[REMOTE_OBJECTS];
    struct answering_step steps[REMOTE_OBJECTS];
    struct answering *server;
    struct object_table table, files; /* there, and here */
    char root[64];
    struct store_options options;
    struct store *store, *local;
};

TESTING uint8_t remote_byte(uint32_t object, uint64_t offset)
{
    return (uint8_t)((offset * 2654435761u >> 7) + object * 41 + (offset >> 12));
}

TESTING void get_remote(const void *owner, uint32_t number, struct object *out)
{
    const struct remote_fixture *fixture = owner;
    *out = (struct object){fixture->names[number], remote_sizes[number],
                           site_version("\"one\"", 0, "")};
}

TESTING void get_file(const void *owner, uint32_t number, struct object *out)
{
    const struct remote_fixture *fixture = owner;
    struct scan *scan;
    assert_int_equal(scan_open(&scan, fixture->folder, fixture->names[number], NULL), STK_OK);
    *out = (struct object){fixture->names[number], scan_size(scan), scan_version(scan)};
    scan_close(scan);
}

TESTING void remote_fill(struct remote_fixture *fixture, uint32_t i)
{
    snprintf(fixture->names[i], sizeof fixture->names[i], "%u.bin", i);
    snprintf(fixture->paths[i], sizeof fixture->paths[i], "/%u.bin", i);
    fixture->bodies[i] = malloc(remote_sizes[i] + 1);
    for (uint64_t at = 0; at < remote_sizes[i]; at++)
        fixture->bodies[i][at] = remote_byte(i, at);
    file_write(path_in(fixture->folder, fixture->names[i]), fixture->bodies[i], remote_sizes[i]);
    fixture->steps[i] = (struct answering_step){.path = fixture->paths[i],
                                                .headers = ETAG,
                                                .body = fixture->bodies[i],
                                                .length = remote_sizes[i]};
}

TESTING void remote_reopen(struct remote_fixture *fixture)
{
    struct stk_error err;
    store_close(fixture->store);
    assert_int_equal(store_open(&fixture->store, &fixture->table, &fixture->options, &err), STK_OK);
}

/* cached: with a cache in a folder of its own. */
TESTING struct remote_fixture *remote_new(int cached)
{
    struct remote_fixture *fixture = calloc(1, sizeof *fixture);
    folder_new(fixture->folder);
    for (uint32_t i = 0; i < REMOTE_OBJECTS; i++)
        remote_fill(fixture, i);
    fixture->server = answering_start(fixture->steps, REMOTE_OBJECTS);
    snprintf(fixture->root, sizeof fixture->root, "%s", answering_url(fixture->server, ""));
    fixture->table = (struct object_table){fixture->root, REMOTE_OBJECTS, fixture, get_remote};
    fixture->files = (struct object_table){fixture->folder, REMOTE_OBJECTS, fixture, get_file};
    if (cached)
        fixture->options =
            (struct store_options){strdup(path_in(fixture->folder, "cache")), (uint64_t)256 << 20};
    remote_reopen(fixture);
    assert_int_equal(store_open(&fixture->local, &fixture->files, NULL, NULL), STK_OK);
    return fixture;
}

TESTING void remote_free(struct remote_fixture *fixture)
{
    store_close(fixture->store);
    store_close(fixture->local);
    answering_stop(fixture->server);
    for (uint32_t i = 0; i < REMOTE_OBJECTS; i++)
        free(fixture->bodies[i]);
    folder_remove(fixture->folder);
    free((char *)fixture->options.cache);
    free(fixture);
}

TESTING struct store_queue *remote_queue_of(struct remote_fixture *fixture, uint32_t depth)
{
    struct store_queue *queue;
    assert_int_equal(store_queue_open(fixture->store, STORE_QUEUE_PREAD, depth, &queue, NULL),
                     STK_OK);
    return queue;
}

/* One read with memory of its own, cut into parts. */
struct job {
    struct store_read read;
    struct iovec parts[STORE_MAX_PARTS];
    uint8_t *data;
    uint64_t offset, length;
};

TESTING void job_init(struct job *job, uint32_t object, uint64_t offset, uint64_t length,
                      uint32_t part_count)
{
    uint64_t done = 0;
    job->data = malloc(length + 1);
    memset(job->data, 0xee, length + 1);
    for (uint32_t i = 0; i < part_count; i++) {
        uint64_t len = i + 1 == part_count ? length - done : (length - done) * (i % 3) / 4;
        job->parts[i] = (struct iovec){job->data + done, len};
        done += len;
    }
    job->offset = offset;
    job->length = length;
    job->read = (struct store_read){.object = object,
                                    .part_count = part_count,
                                    .offset = offset,
                                    .length = length,
                                    .parts = job->parts,
                                    .owner = job,
                                    .status = STK_BUSY};
}

TESTING void job_random(struct job *job, uint64_t key, uint64_t number)
{
    uint32_t object = (uint32_t)random_below(key, number * 4, REMOTE_OBJECTS);
    uint64_t size = remote_sizes[object], offset = random_below(key, number * 4 + 1, size + 1);
    uint64_t most = size - offset < 1500000 || number % 10 == 0 ? size - offset : 1500000;
    uint32_t parts = 1 + (uint32_t)random_below(key, number * 4 + 3, 9);
    job_init(job, object, offset, random_below(key, number * 4 + 2, most + 1),
             number % 50 == 0 ? STORE_MAX_PARTS : parts);
}

/* What the file store reads there is the same. */
TESTING int job_is_right(const struct job *job, struct store *local)
{
    struct job same;
    job_init(&same, job->read.object, job->offset, job->length, 1);
    int right = !store_read_now(local, &same.read) && !memcmp(same.data, job->data, job->length) &&
                job->data[job->length] == 0xee;
    free(same.data);
    return right;
}

/* Random reads through a queue. */
TESTING void run_jobs(struct remote_fixture *fixture, struct store_queue *queue, uint64_t key,
                      uint32_t count, int64_t wait_ns)
{
    struct job *jobs = calloc(count, sizeof *jobs);
    uint32_t submitted = 0, reaped = 0;
    for (uint32_t i = 0; i < count; i++)
        job_random(&jobs[i], key, i);
    while (reaped < count) {
        struct store_read *some[16];
        uint32_t want = count - submitted < 16 ? count - submitted : 16;
        for (uint32_t i = 0; i < want; i++)
            some[i] = &jobs[submitted + i].read;
        submitted += store_submit(queue, some, want);
        assert_int_equal(store_in_flight(queue), submitted - reaped);
        uint32_t got = store_reap(queue, some, 7, wait_ns);
        for (uint32_t i = 0; i < got; i++) {
            struct job *job = some[i]->owner;
            assert_int_equal(some[i]->status, STK_OK);
            assert_true(job_is_right(job, fixture->local));
            free(job->data);
        }
        reaped += got;
    }
    free(jobs);
}

/* Reads one range and waits for it. */
TESTING stk_status read_one(struct store_queue *queue, struct job *job)
{
    struct store_read *read = &job->read, *back = NULL;
    assert_int_equal(store_submit(queue, &read, 1), 1);
    while (store_reap(queue, &back, 1, -1) == 0)
        ;
    assert_ptr_equal(back, read);
    return read->status;
}

/* A thread with a queue of its own: so many jobs. */
struct remote_reader {
    struct remote_fixture *fixture;
    uint64_t key;
    uint32_t jobs;
};

TESTING void *read_many(void *user)
{
    struct remote_reader *reader = user;
    struct store_queue *queue = remote_queue_of(reader->fixture, 8);
    run_jobs(reader->fixture, queue, reader->key, reader->jobs, -1);
    store_queue_close(queue);
    return NULL;
}

#endif
