#include "store/file_cache.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fail.h"
#include "base/memory.h"
#include "store/file_open.h"

#define WAYS 8
#define LARGEST 1024
#define NO_OBJECT UINT32_MAX

struct place {
    uint32_t object; /* NO_OBJECT: free */
    uint32_t refs;   /* reads that use it now: it is not closed before 0 */
    int fd;
    int doomed; /* stale: the last one to give it back closes it; nobody finds it any more */
    uint64_t size;
    int64_t used, checked; /* clock_coarse */
};

/* An object can only lie in set number object % sets: a cache of fixed size whose threads rarely
 * meet, and where a table that fits never loses a file. */
struct set {
    pthread_mutex_t lock; /* of all that is in the set */
    struct place places[WAYS];
};

struct file_cache {
    const struct object_table *table;
    const struct store_fault *fault;
    int folder; /* the root, open; AT_FDCWD when there is none */
    uint32_t set_count;
    struct set *sets;
};

static uint32_t choose_sets(const struct object_table *table, uint32_t limit)
{
    struct rlimit files = {0};
    uint64_t count = limit;
    if (!limit) {
        getrlimit(RLIMIT_NOFILE, &files);
        count = files.rlim_cur / 4 < LARGEST ? files.rlim_cur / 4 : LARGEST;
    }
    count = count < table->count ? count : table->count;
    return count > WAYS ? (uint32_t)((count + WAYS - 1) / WAYS) : 1;
}

stk_status file_cache_new(struct file_cache **out, const struct object_table *table, uint32_t limit,
                          const struct store_fault *fault, struct stk_error *err)
{
    *out = NULL;
    struct file_cache *cache = memory_zero(1, sizeof *cache);
    if (!cache)
        return fail_memory(err, sizeof *cache);
    uint32_t count = choose_sets(table, limit);
    *cache = (struct file_cache){.table = table, .fault = fault, .folder = AT_FDCWD};
    cache->sets = memory_zero(count, sizeof *cache->sets);
    if (!cache->sets) {
        file_cache_free(cache);
        return fail_memory(err, count * sizeof *cache->sets);
    }
    for (; cache->set_count < count; cache->set_count++) {
        struct set *set = &cache->sets[cache->set_count];
        pthread_mutex_init(&set->lock, NULL);
        for (int i = 0; i < WAYS; i++)
            set->places[i].object = NO_OBJECT;
    }
    if (table->root && table->root[0]) {
        cache->folder = open(table->root, O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (cache->folder < 0) {
            stk_status status = fail_errno(err, errno, "cannot open the dataset's folder");
            fail_at(err, table->root, STK_NOWHERE);
            file_cache_free(cache);
            return status;
        }
    }
    *out = cache;
    return STK_OK;
}

/* The set's lock is held. */
static void empty_place(struct place *place)
{
    close(place->fd);
    place->object = NO_OBJECT;
    place->doomed = 0;
}

/* Closes every file that nobody uses: for when the process may open no more. */
static void close_idle(struct file_cache *cache)
{
    for (uint32_t i = 0; i < cache->set_count; i++) {
        struct set *set = &cache->sets[i];
        pthread_mutex_lock(&set->lock);
        for (int way = 0; way < WAYS; way++) {
            if (set->places[way].object != NO_OBJECT && set->places[way].refs == 0)
                empty_place(&set->places[way]);
        }
        pthread_mutex_unlock(&set->lock);
    }
}

void file_cache_free(struct file_cache *cache)
{
    if (!cache)
        return;
    close_idle(cache);
    for (uint32_t i = 0; i < cache->set_count; i++)
        pthread_mutex_destroy(&cache->sets[i].lock);
    if (cache->folder >= 0)
        close(cache->folder);
    memory_free(cache->sets);
    memory_free(cache);
}

static int try_open(struct file_cache *cache, const char *name, struct file_facts *facts)
{
    if (cache->fault->call) {
        int64_t result = cache->fault->call(cache->fault->user, STORE_CALL_OPEN, 0);
        if (result < 0)
            return (int)result;
    }
    return file_open(cache->folder, name, facts);
}

/* Another folder has taken the name of the one that is open. */
static int folder_was_exchanged(const struct file_cache *cache)
{
    struct stat ours, now;
    return cache->folder >= 0 && !fstat(cache->folder, &ours) && !stat(cache->table->root, &now) &&
           (ours.st_dev != now.st_dev || ours.st_ino != now.st_ino);
}

static stk_status open_object(struct file_cache *cache, uint32_t number, struct file_ref *ref,
                              int *error_number)
{
    struct object object;
    struct file_facts facts;
    cache->table->get(cache->table->owner, number, &object);
    int fd = try_open(cache, object.name, &facts);
    if (fd == -EMFILE || fd == -ENFILE) {
        close_idle(cache);
        fd = try_open(cache, object.name, &facts);
    }
    if (fd == -EISDIR || fd == -EINVAL)
        return STK_STALE; /* it was a file once */
    if (fd == -ENOENT && folder_was_exchanged(cache))
        return STK_STALE; /* the folder we hold is gone, and not the data */
    if (fd < 0) {
        *error_number = -fd;
        return fail_errno(NULL, -fd, "cannot open it");
    }
    if (facts.size != object.size || facts.version != object.version) {
        close(fd);
        return STK_STALE;
    }
    *ref = (struct file_ref){.fd = fd, .size = facts.size, .taken = 1};
    return STK_OK;
}

stk_status file_cache_check(struct file_cache *cache, uint32_t object, const struct file_ref *ref)
{
    struct object known;
    struct file_facts facts;
    cache->table->get(cache->table->owner, object, &known);
    if (file_facts(ref->fd, &facts) != 0 || !facts.linked || facts.size != known.size ||
        facts.version != known.version)
        return STK_STALE;
    return STK_OK;
}

static struct place *find_place(struct set *set, uint32_t object)
{
    for (int i = 0; i < WAYS; i++) {
        if (set->places[i].object == object && !set->places[i].doomed)
            return &set->places[i];
    }
    return NULL;
}

/* The free place, else the one whose file was used longest ago; NULL when all are in use. */
static struct place *choose_place(struct set *set)
{
    struct place *best = NULL;
    for (int i = 0; i < WAYS; i++) {
        struct place *place = &set->places[i];
        if (place->object == NO_OBJECT)
            return place;
        if (place->refs == 0 && (!best || place->used < best->used))
            best = place;
    }
    return best;
}

/* The set's lock is held. A hit that has not been looked at for a while is asked whether it still
 * is the file that was indexed. */
static stk_status take_place(struct file_cache *cache, struct place *place, struct file_ref *ref)
{
    int64_t now = clock_coarse();
    *ref = (struct file_ref){.fd = place->fd, .size = place->size, .place = place, .taken = 1};
    if (now - place->checked >= FILE_CACHE_RECHECK_NS) {
        if (file_cache_check(cache, place->object, ref) != STK_OK) {
            *ref = (struct file_ref){.fd = -1};
            place->doomed = 1;
            if (place->refs == 0)
                empty_place(place);
            return STK_STALE;
        }
        place->checked = now;
    }
    place->used = now;
    place->refs++;
    return STK_OK;
}

/* Puts a file just opened into the cache, when there is a place; else it stays the caller's alone.
 */
static void keep_file(struct set *set, uint32_t object, struct file_ref *ref)
{
    int64_t now = clock_coarse();
    pthread_mutex_lock(&set->lock);
    struct place *place = find_place(set, object) ? NULL : choose_place(set);
    if (place) {
        if (place->object != NO_OBJECT)
            empty_place(place);
        *place = (struct place){object, 1, ref->fd, 0, ref->size, now, now};
        ref->place = place;
    }
    pthread_mutex_unlock(&set->lock);
}

stk_status file_cache_take(struct file_cache *cache, uint32_t object, struct file_ref *ref,
                           int *error_number)
{
    *ref = (struct file_ref){.fd = -1};
    *error_number = 0;
    if (object >= cache->table->count)
        return STK_NOT_FOUND;
    struct set *set = &cache->sets[object % cache->set_count];
    pthread_mutex_lock(&set->lock);
    struct place *place = find_place(set, object);
    stk_status status = place ? take_place(cache, place, ref) : STK_OK;
    pthread_mutex_unlock(&set->lock);
    if (place)
        return status;
    status = open_object(cache, object, ref, error_number); /* may be slow: no lock is held */
    if (!status)
        keep_file(set, object, ref);
    return status;
}

void file_cache_give(struct file_cache *cache, struct file_ref *ref)
{
    if (!ref->taken)
        return;
    struct place *place = ref->place;
    if (!place) {
        close(ref->fd);
    } else {
        struct set *set = &cache->sets[place->object % cache->set_count];
        pthread_mutex_lock(&set->lock);
        if (--place->refs == 0 && place->doomed)
            empty_place(place);
        pthread_mutex_unlock(&set->lock);
    }
    *ref = (struct file_ref){.fd = -1};
}
