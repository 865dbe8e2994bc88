/* store_fixture.h -- a folder of files with known bytes, a store over them, and reads that know
 * what they should find. Owns: the folder and the store, between fixture_new and fixture_free.
 * Threads: run_jobs and read_one on one queue at a time each.   Errors: a failed assertion.   Not
 * here: any test. */
#ifndef TESTS_STORE_STORE_FIXTURE_H
#define TESTS_STORE_STORE_FIXTURE_H

#include "base/testing.h"

#include "base/random.h"
#include "store/scan.h"
#include "store/store_parts.h"

#define OBJECTS 40

TESTING char folder[PATH_MAX];

struct fixture {
    char names[OBJECTS][16];
    struct object objects[OBJECTS];
    struct object_table table;
    struct store *store;
};

TESTING uint8_t byte_at(uint32_t object, uint64_t offset)
{
    return (uint8_t)((offset * 2654435761u >> 7) + object * 41 + (offset >> 12));
}

TESTING uint64_t size_of(uint32_t object)
{
    return object == 0 ? 0 : 1000 + (uint64_t)object * 7919 % 60000;
}

TESTING void get_object(const void *owner, uint32_t number, struct object *out)
{
    *out = ((const struct fixture *)owner)->objects[number];
}

TESTING void write_object(uint32_t object)
{
    uint64_t size = size_of(object);
    uint8_t *data = malloc(size + 1);
    char name[16];
    for (uint64_t i = 0; i < size; i++)
        data[i] = byte_at(object, i);
    snprintf(name, sizeof name, "%u.bin", object);
    file_write(path_in(folder, name), data, size);
    free(data);
}

TESTING void fill_table(struct fixture *fixture)
{
    for (uint32_t i = 0; i < OBJECTS; i++) {
        struct scan *scan;
        snprintf(fixture->names[i], sizeof fixture->names[i], "%u.bin", i);
        assert_int_equal(scan_open(&scan, folder, fixture->names[i], NULL), STK_OK);
        fixture->objects[i] =
            (struct object){fixture->names[i], scan_size(scan), scan_version(scan)};
        scan_close(scan);
    }
    fixture->table = (struct object_table){folder, OBJECTS, fixture, get_object};
}

/* Takes the files out of the page cache, where there is a disk behind it. */
TESTING void make_cold(struct fixture *fixture)
{
    for (uint32_t i = 0; i < OBJECTS; i++) {
        int fd = open(path_in(folder, fixture->names[i]), O_RDONLY);
        assert_true(fd >= 0);
        fsync(fd);
        posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
        close(fd);
    }
}

TESTING struct fixture *fixture_new(void)
{
    struct fixture *fixture = calloc(1, sizeof *fixture);
    folder_new(folder);
    for (uint32_t i = 0; i < OBJECTS; i++)
        write_object(i);
    fill_table(fixture);
    assert_int_equal(store_open(&fixture->store, &fixture->table, NULL, NULL), STK_OK);
    return fixture;
}

TESTING void fixture_free(struct fixture *fixture)
{
    store_close(fixture->store);
    folder_remove(folder);
    free(fixture);
}

/* A queue of the kind that this run of the test is for; a machine without io_uring skips it. */
TESTING struct store_queue *queue_of(void **state, struct fixture *fixture, uint32_t depth)
{
    enum store_queue_kind kind = *(enum store_queue_kind *)*state;
    struct store_queue *queue;
    struct stk_error err;
    stk_status status = store_queue_open(fixture->store, kind, depth, &queue, &err);
    if (status == STK_UNSUPPORTED && kind == STORE_QUEUE_URING) {
        fixture_free(fixture);
        skip();
    }
    assert_int_equal(status, STK_OK);
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

TESTING int job_is_right(const struct job *job)
{
    for (uint64_t i = 0; i < job->length; i++) {
        if (job->data[i] != byte_at(job->read.object, job->offset + i))
            return 0;
    }
    return job->data[job->length] == 0xee;
}

TESTING void job_random(struct job *job, uint64_t key, uint64_t number)
{
    uint32_t object = (uint32_t)random_below(key, number * 4, OBJECTS);
    uint64_t size = size_of(object), offset = random_below(key, number * 4 + 1, size + 1);
    uint64_t length = random_below(key, number * 4 + 2, size - offset + 1);
    uint32_t parts = 1 + (uint32_t)random_below(key, number * 4 + 3, 9);
    job_init(job, object, offset, length, number % 50 == 0 ? STORE_MAX_PARTS : parts);
}

/* Reads one range through the queue and waits for it. */
TESTING stk_status read_one(struct store_queue *queue, struct job *job)
{
    struct store_read *read = &job->read, *back = NULL;
    assert_int_equal(store_submit(queue, &read, 1), 1);
    assert_int_equal(store_in_flight(queue), 1);
    while (store_reap(queue, &back, 1, -1) == 0)
        ;
    assert_ptr_equal(back, read);
    assert_int_equal(store_in_flight(queue), 0);
    return read->status;
}

TESTING void run_jobs(struct store_queue *queue, uint64_t key, uint32_t count, int64_t wait_ns)
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
            assert_true(job_is_right(job));
            free(job->data);
        }
        reaped += got;
    }
    free(jobs);
}

TESTING int open_files(void)
{
    int count = 0;
    for (int fd = 0; fd < 1024; fd++)
        count += fcntl(fd, F_GETFD) != -1;
    return count;
}

/* The same test over both kinds of queue; main has the two variables. */
#define BOTH(test)                                                                                 \
    {#test " (pread)", test, NULL, NULL, &pread_kind},                                             \
    {                                                                                              \
#test " (io_uring)", test, NULL, NULL, &uring_kind                                         \
    }

#endif
