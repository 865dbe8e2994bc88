#include "watch/ring_making.h"

#include "watch/ring_set.h"

#define SECOND UINT64_C(1000000000)

struct heard {
    uint64_t marks, lost, processes;
    uint32_t pid;
    char notice[256];
    int dead; /* processes are over */
};

static void hear(void *user, const struct watch_event *event)
{
    struct heard *heard = user;
    heard->pid = event->pid;
    if (event->record->type == RECORD_MARK)
        heard->marks++;
    if (event->record->type == RECORD_LOST)
        heard->lost += ((const struct record_lost *)event->record)->count;
}

static void hear_notice(void *user, const char *sentence)
{
    struct heard *heard = user;
    snprintf(heard->notice, sizeof heard->notice, "%s", sentence);
}

static void hear_ring(void *user, uint32_t pid, uint32_t parent)
{
    struct heard *heard = user;
    (void)pid, (void)parent;
    heard->processes++;
}

static int alive(void *user, uint32_t pid)
{
    struct heard *heard = user;
    (void)pid;
    return !heard->dead;
}

struct fixture {
    char folder[PATH_MAX];
    int fd;
    struct heard heard;
    struct ring_set *set;
};

static int setup(void **state)
{
    static struct fixture fixture;
    fixture = (struct fixture){0};
    struct watch_sink sink = {hear, hear_notice, hear_ring, &fixture.heard};
    folder_new(fixture.folder);
    fixture.fd = open(fixture.folder, O_RDONLY | O_DIRECTORY);
    fixture.set = ring_set_new(fixture.fd, &sink);
    assert_non_null(fixture.set);
    *state = &fixture;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *fixture = *state;
    ring_set_free(fixture->set);
    close(fixture->fd);
    folder_remove(fixture->folder);
    return 0;
}

static void rings_are_found_as_they_appear_and_other_files_are_left_alone(void **state)
{
    struct fixture *fixture = *state;
    text_write(path_in(fixture->folder, "options.json"), "{}");
    text_write(path_in(fixture->folder, ".ring.9.py"), "half made");
    ring_set_read(fixture->set, SECOND, alive);
    assert_int_equal(fixture->heard.processes, 0);
    struct ring_header *ring =
        ring_make(path_in(fixture->folder, "ring.7.py"), RING_PYTHON, 7, SMALL_RING);
    ring_put_mark(ring, 3, 1);
    ring_set_read(fixture->set, SECOND + 1, alive);
    assert_int_equal(fixture->heard.processes, 1);
    assert_int_equal(fixture->heard.pid, 7);
    assert_int_equal(fixture->heard.marks, 1);
    ring_unmake(ring);
}

static void the_ring_of_a_process_that_is_over_is_read_and_removed(void **state)
{
    struct fixture *fixture = *state;
    const char *path = path_in(fixture->folder, "ring.7.gpu");
    struct ring_header *ring = ring_make(path, RING_GPU, 7, SMALL_RING);
    ring_set_read(fixture->set, SECOND, alive);
    assert_int_equal(ring_set_count(fixture->set), 1);
    ring_put_mark(ring, 3, 1);
    fixture->heard.dead = 1;
    ring_set_read(fixture->set, 2 * SECOND, alive);
    assert_int_equal(fixture->heard.marks, 1);
    assert_int_equal(ring_set_count(fixture->set), 0);
    assert_int_not_equal(access(path, F_OK), 0);
    assert_int_equal(ring_set_records(fixture->set), 1);
    ring_unmake(ring);
}

static void a_file_that_is_no_ring_gives_one_notice(void **state)
{
    struct fixture *fixture = *state;
    text_write(path_in(fixture->folder, "ring.8.py"), "nonsense");
    ring_set_read(fixture->set, SECOND, alive);
    assert_non_null(strstr(fixture->heard.notice, "ring.8.py is no ring"));
    fixture->heard.notice[0] = '\0';
    ring_set_read(fixture->set, SECOND + 1, alive);
    assert_string_equal(fixture->heard.notice, "");
}

static void a_broken_ring_is_left_with_a_notice_and_others_go_on(void **state)
{
    struct fixture *fixture = *state;
    struct ring_header *bad =
        ring_make(path_in(fixture->folder, "ring.7.py"), RING_PYTHON, 7, SMALL_RING);
    struct ring_header *good =
        ring_make(path_in(fixture->folder, "ring.8.py"), RING_PYTHON, 8, SMALL_RING);
    bad->head = 3;
    ring_put_mark(good, 3, 1);
    ring_set_read(fixture->set, SECOND, alive);
    assert_non_null(strstr(fixture->heard.notice, "process 7"));
    ring_put_mark(good, 4, 1);
    ring_set_read(fixture->set, SECOND + 1, alive);
    assert_int_equal(fixture->heard.marks, 2);
    assert_int_equal(ring_set_count(fixture->set), 1);
    ring_unmake(bad);
    ring_unmake(good);
}

static void a_ring_that_took_the_place_of_another_is_read_too(void **state)
{
    struct fixture *fixture = *state;
    const char *path = path_in(fixture->folder, "ring.7.py");
    struct ring_header *first = ring_make(path, RING_PYTHON, 7, SMALL_RING);
    ring_set_read(fixture->set, SECOND, alive);
    ring_put_mark(first, 3, 1);
    struct ring_header *second =
        ring_make(path_in(fixture->folder, "making"), RING_PYTHON, 7, SMALL_RING);
    assert_int_equal(rename(path_in(fixture->folder, "making"), path), 0);
    ring_put_mark(second, 4, 1);
    ring_set_read(fixture->set, SECOND + 1, alive);
    assert_int_equal(fixture->heard.marks, 2); /* what the first had said, too */
    assert_int_equal(ring_set_count(fixture->set), 1);
    assert_int_equal(access(path, F_OK), 0);
    ring_unmake(first);
    ring_unmake(second);
}

/* The time of a folder is coarse, and the next look may be late. */
static void a_ring_made_just_after_a_look_is_found_by_the_next_however_late(void **state)
{
    struct fixture *fixture = *state;
    struct stat before;
    struct ring_header *first =
        ring_make(path_in(fixture->folder, "ring.7.py"), RING_PYTHON, 7, SMALL_RING);
    ring_set_read(fixture->set, SECOND, alive);
    assert_int_equal(fstat(fixture->fd, &before), 0);
    struct ring_header *second =
        ring_make(path_in(fixture->folder, "ring.8.py"), RING_PYTHON, 8, SMALL_RING);
    struct timespec times[2] = {before.st_atim, before.st_mtim};
    assert_int_equal(futimens(fixture->fd, times), 0);
    ring_set_read(fixture->set, 2 * SECOND, alive);
    assert_int_equal(fixture->heard.processes, 2);
    ring_unmake(first);
    ring_unmake(second);
}

static void losses_are_told_once(void **state)
{
    struct fixture *fixture = *state;
    struct ring_header *ring =
        ring_make(path_in(fixture->folder, "ring.7.py"), RING_PYTHON, 7, SMALL_RING);
    ring->lost = 5;
    ring_set_read(fixture->set, SECOND, alive);
    ring_set_read(fixture->set, SECOND + 1, alive);
    assert_int_equal(fixture->heard.lost, 5);
    ring->lost = 7;
    ring_set_read(fixture->set, SECOND + 2, alive);
    assert_int_equal(fixture->heard.lost, 7);
    assert_int_equal(ring_set_lost(fixture->set), 7);
    ring_unmake(ring);
}

static void put_reached(struct ring_header *ring, uint64_t time)
{
    struct record_reached reached = {.head = {.type = RECORD_REACHED, .size = sizeof reached},
                                     .time = time};
    assert_true(ring_put(ring, &reached, sizeof reached));
}

static void what_is_settled_waits_for_the_gpu_but_not_for_ever(void **state)
{
    struct fixture *fixture = *state;
    struct ring_header *ring =
        ring_make(path_in(fixture->folder, "ring.7.gpu"), RING_GPU, 7, SMALL_RING);
    assert_int_equal(ring_set_settled(fixture->set, 100 * SECOND), 98 * SECOND + SECOND / 2);
    put_reached(ring, 95 * SECOND);
    ring_set_read(fixture->set, 100 * SECOND, alive);
    assert_int_equal(ring_set_settled(fixture->set, 100 * SECOND), 95 * SECOND);
    put_reached(ring, 99 * SECOND);
    ring_set_read(fixture->set, 100 * SECOND, alive);
    assert_int_equal(ring_set_settled(fixture->set, 100 * SECOND), 98 * SECOND + SECOND / 2);
    assert_int_equal(ring_set_settled(fixture->set, 200 * SECOND), 170 * SECOND);
    ring_unmake(ring);
}

#define SET_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        SET_TEST(rings_are_found_as_they_appear_and_other_files_are_left_alone),
        SET_TEST(the_ring_of_a_process_that_is_over_is_read_and_removed),
        SET_TEST(a_file_that_is_no_ring_gives_one_notice),
        SET_TEST(a_broken_ring_is_left_with_a_notice_and_others_go_on),
        SET_TEST(a_ring_that_took_the_place_of_another_is_read_too),
        SET_TEST(a_ring_made_just_after_a_look_is_found_by_the_next_however_late),
        SET_TEST(losses_are_told_once),
        SET_TEST(what_is_settled_waits_for_the_gpu_but_not_for_ever),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
