#include "watch/ring_set.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "watch/ring_read.h"

#define PATIENCE_NS UINT64_C(1500000000)       /* what is told, is told within this */
#define PATIENCE_MOST_NS UINT64_C(30000000000) /* for a writer that says it is behind */
#define FRESH_NS INT64_C(200000000) /* a folder's time of change is this coarse at worst */
#define RING_NAME 40

struct ring_entry {
    struct ring_read *ring; /* NULL: broken or no ring; kept so that it is told once */
    char name[RING_NAME];
    ino_t file;       /* a program that becomes another by exec makes a new one of the same name */
    int replaced;     /* by such a one: it has no more to say */
    uint64_t reached; /* as it said last; 0: it did not */
    uint64_t lost;    /* that were told */
};

struct ring_set {
    int folder;
    DIR *listing;
    struct watch_sink sink;
    struct timespec changed; /* the folder, when it was last listed */
    uint64_t listed;         /* when that change was first seen */
    int sure;                /* it was listed again long enough after */
    struct ring_entry *list;
    size_t count, room;
    struct ring_entry *current; /* that is being read */
    uint64_t records, lost;     /* of rings that are closed */
};

struct ring_set *ring_set_new(int folder, const struct watch_sink *sink)
{
    struct ring_set *set = memory_zero(1, sizeof *set);
    if (!set)
        return NULL;
    set->folder = folder;
    set->sink = *sink;
    int copy = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    set->listing = copy >= 0 ? fdopendir(copy) : NULL;
    if (!set->listing) {
        if (copy >= 0)
            close(copy);
        memory_free(set);
        return NULL;
    }
    return set;
}

void ring_set_free(struct ring_set *set)
{
    if (!set)
        return;
    for (size_t i = 0; i < set->count; i++)
        ring_read_close(set->list[i].ring);
    closedir(set->listing);
    memory_free(set->list);
    memory_free(set);
}

/* --- finding ---------------------------------------------------------------------------------- */

static int is_ring_name(const char *name)
{
    size_t len = strlen(name);
    return len < RING_NAME && !strncmp(name, "ring.", 5) && len > 8 &&
           (!strcmp(name + len - 4, ".gpu") || !strcmp(name + len - 3, ".py"));
}

static int known(const struct ring_set *set, const char *name, ino_t file)
{
    for (size_t i = 0; i < set->count; i++)
        if (set->list[i].file == file && !strcmp(set->list[i].name, name))
            return 1;
    return 0;
}

static void add_ring(struct ring_set *set, const char *name, ino_t file)
{
    struct stk_error err;
    if (set->count == set->room) {
        size_t room = set->room ? 2 * set->room : 16;
        void *grown = memory_grow(set->list, room * sizeof *set->list);
        if (!grown)
            return; /* it is found again next time */
        set->list = grown;
        set->room = room;
    }
    struct ring_entry *entry = &set->list[set->count];
    *entry = (struct ring_entry){.file = file};
    stk_status status = ring_read_open(&entry->ring, set->folder, name, &err);
    if (status == STK_NOT_FOUND || status == STK_MEMORY)
        return;
    for (size_t i = 0; i < set->count; i++)
        set->list[i].replaced |= !strcmp(set->list[i].name, name);
    snprintf(entry->name, sizeof entry->name, "%s", name);
    set->count++;
    if (status) {
        char words[1200];
        snprintf(words, sizeof words, "What a process told was left out: %s.", err.what);
        set->sink.notice(set->sink.user, words);
    } else {
        set->sink.ring(set->sink.user, ring_read_pid(entry->ring), ring_read_parent(entry->ring));
    }
}

static void find_rings(struct ring_set *set, uint64_t now)
{
    struct stat about;
    if (fstat(set->folder, &about))
        return;
    /* Listed anew when it changed, and some time after, since its time is coarse. */
    int is_same = about.st_mtim.tv_sec == set->changed.tv_sec &&
                  about.st_mtim.tv_nsec == set->changed.tv_nsec;
    if (is_same && set->sure)
        return;
    if (!is_same)
        set->listed = now;
    set->changed = about.st_mtim;
    set->sure = (int64_t)(now - set->listed) > FRESH_NS;
    rewinddir(set->listing);
    for (struct dirent *entry; (entry = readdir(set->listing));)
        if (is_ring_name(entry->d_name) && !known(set, entry->d_name, entry->d_ino))
            add_ring(set, entry->d_name, entry->d_ino);
}

/* --- reading ---------------------------------------------------------------------------------- */

/* When a record happened; 0: at no moment. */
static void record_times(const struct record *record, uint64_t *start, uint64_t *end)
{
    switch (record->type) {
    case RECORD_KERNEL:
    case RECORD_COPY:
    case RECORD_SYNC:
    case RECORD_COST:
    case RECORD_SPAN:
        *start = ((const struct record_kernel *)record)->start;
        *end = ((const struct record_kernel *)record)->end;
        break;
    case RECORD_GPU:
    case RECORD_LOST:
    case RECORD_REACHED:
    case RECORD_MARK:
    case RECORD_QUEUE:
        *start = *end = ((const struct record_reached *)record)->time;
        break;
    case RECORD_SAMPLE: {
        const struct record_sample *sample = (const struct record_sample *)record;
        *end = sample->time;
        *start = sample->weight < sample->time ? sample->time - sample->weight : 0;
        break;
    }
    default:
        *start = *end = 0;
    }
}

static stk_status take_record(void *user, const struct record *record, struct stk_error *err)
{
    struct ring_set *set = user;
    struct watch_event event = {
        .type = EVENT_RECORD, .pid = ring_read_pid(set->current->ring), .record = record};
    (void)err;
    record_times(record, &event.start, &event.end);
    if (record->type == RECORD_REACHED && event.end > set->current->reached)
        set->current->reached = event.end;
    set->sink.event(set->sink.user, &event);
    return STK_OK;
}

/* Records that a writer had no room for are told as its own RECORD_LOST. */
static void tell_lost(struct ring_set *set, struct ring_entry *entry, uint64_t now)
{
    uint64_t lost = ring_read_lost(entry->ring);
    if (lost <= entry->lost)
        return;
    struct record_lost record = {.head = {.type = RECORD_LOST, .size = sizeof record},
                                 .time = now,
                                 .count = lost - entry->lost,
                                 .why = 4};
    struct watch_event event = {.type = EVENT_RECORD,
                                .pid = ring_read_pid(entry->ring),
                                .start = now,
                                .end = now,
                                .record = &record.head};
    entry->lost = lost;
    set->sink.event(set->sink.user, &event);
}

/* Its file may have made room for another of the same name, which is not ours to remove. */
static void remove_file(struct ring_set *set, const struct ring_entry *entry)
{
    struct stat found;
    if (!fstatat(set->folder, entry->name, &found, AT_SYMLINK_NOFOLLOW) &&
        found.st_ino == entry->file)
        (void)unlinkat(set->folder, entry->name, 0);
}

static void close_ring(struct ring_set *set, struct ring_entry *entry)
{
    set->records += ring_read_taken(entry->ring);
    set->lost += entry->lost;
    ring_read_close(entry->ring);
    entry->ring = NULL;
}

static void read_ring(struct ring_set *set, struct ring_entry *entry, uint64_t now)
{
    struct stk_error err;
    set->current = entry;
    if (ring_read_drain(entry->ring, take_record, set, &err)) {
        char words[1200];
        snprintf(words, sizeof words, "What a process told was left out from there on: %s.",
                 err.what);
        close_ring(set, entry);
        set->sink.notice(set->sink.user, words);
        return;
    }
    tell_lost(set, entry, now);
}

void ring_set_read(struct ring_set *set, uint64_t now, int (*alive)(void *user, uint32_t pid))
{
    size_t kept = 0;
    find_rings(set, now);
    for (size_t i = 0; i < set->count; i++) {
        struct ring_entry *entry = &set->list[i];
        /* asked before it is read: what it wrote last is there then */
        int over = entry->ring && (entry->replaced || ring_read_closed(entry->ring) ||
                                   !alive(set->sink.user, ring_read_pid(entry->ring)));
        if (entry->ring)
            read_ring(set, entry, now);
        if (over && entry->ring) {
            close_ring(set, entry);
            remove_file(set, entry); /* it would fill the memory */
            continue;
        }
        set->list[kept++] = *entry;
    }
    set->count = kept;
}

uint64_t ring_set_settled(const struct ring_set *set, uint64_t now)
{
    uint64_t settled = now > PATIENCE_NS ? now - PATIENCE_NS : 0;
    uint64_t least = now > PATIENCE_MOST_NS ? now - PATIENCE_MOST_NS : 0;
    for (size_t i = 0; i < set->count; i++) {
        const struct ring_entry *entry = &set->list[i];
        if (!entry->ring || (ring_read_kind(entry->ring) != RING_GPU && !entry->reached))
            continue;
        uint64_t reached = entry->reached ? entry->reached : ring_read_born(entry->ring);
        if (reached < settled)
            settled = reached;
    }
    return settled > least ? settled : least;
}

uint64_t ring_set_records(const struct ring_set *set)
{
    uint64_t sum = set->records;
    for (size_t i = 0; i < set->count; i++)
        sum += set->list[i].ring ? ring_read_taken(set->list[i].ring) : 0;
    return sum;
}

uint64_t ring_set_lost(const struct ring_set *set)
{
    uint64_t sum = set->lost;
    for (size_t i = 0; i < set->count; i++)
        sum += set->list[i].ring ? set->list[i].lost : 0;
    return sum;
}

size_t ring_set_count(const struct ring_set *set)
{
    size_t count = 0;
    for (size_t i = 0; i < set->count; i++)
        count += set->list[i].ring != NULL;
    return count;
}
