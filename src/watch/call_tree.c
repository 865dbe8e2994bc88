#include "watch/call_tree.h"

#include <assert.h>
#include <string.h>

#include "base/fail.h"
#include "base/hash.h"
#include "base/memory.h"

#define NODES_MOST ((size_t)1 << 14)
#define PLACES_MOST ((size_t)1 << 13)
#define TEXTS_MOST ((size_t)1 << 13)
#define SLOTS ((size_t)1 << 15) /* of both tables: a quarter full at most */
#define FRAMES_MOST ((size_t)1 << 20)
#define TEXT_LENGTH 240

/* --- texts and places --------------------------------------------------------------------------*/

/* Makes room for one more. 0: there are as many as there may be. */
static stk_status room_make(void **items, size_t *cap, size_t count, size_t size,
                            struct stk_error *err)
{
    if (count < *cap)
        return STK_OK;
    size_t wanted = *cap ? *cap * 2 : 64;
    void *grown = memory_grow(*items, wanted * size);
    if (!grown)
        return fail_memory(err, wanted * size);
    *items = grown;
    *cap = wanted;
    return STK_OK;
}

static stk_status text_number(struct call_tree *tree, const char *text, size_t len, uint32_t *out,
                              struct stk_error *err)
{
    *out = 0;
    if (len > TEXT_LENGTH) { /* a file's name counts by its end */
        text += len - TEXT_LENGTH;
        len = TEXT_LENGTH;
    }
    uint64_t hash = hash_bytes(text, len, 1);
    size_t slot = hash % SLOTS;
    for (; tree->text_slots[slot]; slot = (slot + 1) % SLOTS) {
        const struct call_text *known = &tree->texts[tree->text_slots[slot]];
        if (known->hash == hash && strlen(known->text) == len && !memcmp(known->text, text, len)) {
            *out = tree->text_slots[slot];
            return STK_OK;
        }
    }
    if (!len || tree->text_count == TEXTS_MOST)
        return STK_OK;
    stk_status status = room_make((void **)&tree->texts, &tree->text_cap, tree->text_count,
                                  sizeof *tree->texts, err);
    if (status)
        return status;
    char *copy = memory_text(text, len);
    if (!copy)
        return fail_memory(err, len + 1);
    tree->texts[tree->text_count] = (struct call_text){copy, hash};
    *out = tree->text_slots[slot] = (uint32_t)tree->text_count++;
    return STK_OK;
}

static stk_status place_number(struct call_tree *tree, const struct call_place *place,
                               uint32_t *out, struct stk_error *err)
{
    *out = 0;
    size_t slot = hash_bytes(place, sizeof *place, 2) % SLOTS;
    for (; tree->place_slots[slot]; slot = (slot + 1) % SLOTS)
        if (!memcmp(&tree->places[tree->place_slots[slot]], place, sizeof *place)) {
            *out = tree->place_slots[slot];
            return STK_OK;
        }
    if (tree->place_count == PLACES_MOST)
        return STK_OK;
    stk_status status = room_make((void **)&tree->places, &tree->place_cap, tree->place_count,
                                  sizeof *tree->places, err);
    if (status)
        return status;
    tree->places[tree->place_count] = *place;
    *out = tree->place_slots[slot] = (uint32_t)tree->place_count++;
    return STK_OK;
}

/* --- nodes
 * --------------------------------------------------------------------------------------*/

stk_status call_tree_init(struct call_tree *tree, struct stk_error *err)
{
    *tree = (struct call_tree){0};
    tree->text_slots = memory_zero(SLOTS, sizeof *tree->text_slots);
    tree->place_slots = memory_zero(SLOTS, sizeof *tree->place_slots);
    char *empty = memory_text("", 0);
    stk_status status = STK_OK;
    if (!tree->text_slots || !tree->place_slots || !empty)
        status = fail_memory(err, SLOTS * sizeof *tree->text_slots);
    if (!status)
        status = room_make((void **)&tree->nodes, &tree->node_cap, 0, sizeof *tree->nodes, err);
    if (!status)
        status = room_make((void **)&tree->places, &tree->place_cap, 0, sizeof *tree->places, err);
    if (!status)
        status = room_make((void **)&tree->texts, &tree->text_cap, 0, sizeof *tree->texts, err);
    if (status) {
        memory_free(empty);
        call_tree_reset(tree);
        return status;
    }
    tree->nodes[0] = (struct call_node){0};
    tree->places[0] = (struct call_place){0};
    tree->texts[0] = (struct call_text){.text = empty};
    tree->node_count = tree->place_count = tree->text_count = 1;
    return STK_OK;
}

static stk_status node_number(struct call_tree *tree, uint32_t parent,
                              const struct call_place *place, uint32_t *out, struct stk_error *err)
{
    for (uint32_t i = tree->nodes[parent].first_child; i; i = tree->nodes[i].next_sibling)
        if (tree->nodes[i].function == place->function && tree->nodes[i].file == place->file) {
            *out = i;
            return STK_OK;
        }
    *out = parent;
    if (tree->node_count == NODES_MOST)
        return STK_OK;
    stk_status status = room_make((void **)&tree->nodes, &tree->node_cap, tree->node_count,
                                  sizeof *tree->nodes, err);
    if (status)
        return status;
    uint32_t number = (uint32_t)tree->node_count++;
    tree->nodes[number] = (struct call_node){.parent = parent,
                                             .next_sibling = tree->nodes[parent].first_child,
                                             .function = place->function,
                                             .file = place->file,
                                             .line = place->line};
    tree->nodes[parent].first_child = number;
    *out = number;
    return STK_OK;
}

/* The hook shortens what is installed to "site-packages/..." and "python3.11/...". */
int call_file_is_users(const char *file)
{
    static const char *const inside[] = {"/site-packages/", "/dist-packages/", "/lib/python3",
                                         "/lib64/python3", "/stoker_watch/"};
    static const char *const first[] = {"<", "site-packages/", "dist-packages/", "python3."};
    if (!file[0])
        return 0;
    for (size_t i = 0; i < sizeof inside / sizeof inside[0]; i++)
        if (strstr(file, inside[i]))
            return 0;
    for (size_t i = 0; i < sizeof first / sizeof first[0]; i++)
        if (!strncmp(file, first[i], strlen(first[i])))
            return 0;
    return 1;
}

/* Loading data is torch's too, but not what a GPU waits to be given. */
static int file_is_torchs(const char *file)
{
    const char *torch = strstr(file, "/torch/");
    return torch && strncmp(torch, "/torch/utils/data/", 18) != 0;
}

static int file_waits(const char *file)
{
    const char *slash = strrchr(file, '/');
    return slash && !call_file_is_users(file) &&
           (!strcmp(slash, "/queue.py") || !strcmp(slash, "/threading.py"));
}

/* Where Stoker's Loader calls the user's map and sample_map. */
static int file_maps(const char *file)
{
    static const char name[] = "stoker/_map_stage.py";
    size_t len = strlen(file), least = sizeof name - 1;
    return len >= least && !strcmp(file + len - least, name);
}

static stk_status frames_room(struct call_frames *frames, uint32_t number, struct stk_error *err)
{
    if (number < frames->count)
        return STK_OK;
    size_t count = frames->count ? frames->count : 64;
    while (count <= number)
        count *= 2;
    struct call_frame *grown = memory_grow(frames->frames, count * sizeof *grown);
    if (!grown)
        return fail_memory(err, count * sizeof *grown);
    memset(grown + frames->count, 0, (count - frames->count) * sizeof *grown);
    frames->frames = grown;
    frames->count = count;
    return STK_OK;
}

stk_status call_tree_frame(struct call_tree *tree, struct call_frames *frames,
                           const struct record_frame *record, struct stk_error *err)
{
    if (record->id >= FRAMES_MOST)
        return STK_OK;
    stk_status status = frames_room(frames, record->id, err);
    struct call_frame parent = call_tree_find(frames, record->parent);
    struct call_frame frame = {.node = parent.node, .flags = parent.flags & ~(uint32_t)FRAME_WAITS};
    struct call_place place = {.line = record->line};
    uint32_t number = 0;
    if (!status)
        status = text_number(tree, record->text, record->function_len, &place.function, err);
    if (!status)
        status = text_number(tree, record->text + record->function_len, record->file_len,
                             &place.file, err);
    if (!status)
        status = node_number(tree, parent.node, &place, &frame.node, err);
    if (!status)
        status = place_number(tree, &place, &number, err);
    if (status)
        return status;
    const char *file = call_tree_text(tree, place.file);
    int users = call_file_is_users(file);
    frame.flags |= (users ? FRAME_USER : 0u) | (file_is_torchs(file) ? FRAME_TORCH : 0u);
    frame.flags |= (file_waits(file) ? FRAME_WAITS : 0u) | (file_maps(file) ? FRAME_MAP : 0u);
    if ((record->head.flags & FRAME_IS_SOURCE) && !(frame.flags & FRAME_TORCH))
        frame.flags |= FRAME_SOURCE;
    frame.place = users || !(parent.flags & FRAME_USER) ? number : parent.place;
    frames->frames[record->id] = frame;
    return STK_OK;
}

struct call_frame call_tree_find(const struct call_frames *frames, uint32_t number)
{
    return number && number < frames->count ? frames->frames[number] : (struct call_frame){0};
}

void call_tree_count(struct call_tree *tree, enum call_side side, uint32_t node, uint64_t ns,
                     uint64_t cpu_ns)
{
    assert(node < tree->node_count);
    tree->nodes[node].ns[side] += ns;
    tree->nodes[node].cpu_ns[side] += cpu_ns;
}

const char *call_tree_text(const struct call_tree *tree, uint32_t number)
{
    return number < tree->text_count ? tree->texts[number].text : "";
}

void call_frames_reset(struct call_frames *frames)
{
    memory_free(frames->frames);
    *frames = (struct call_frames){0};
}

void call_tree_reset(struct call_tree *tree)
{
    for (size_t i = 0; i < tree->text_count; i++)
        memory_free(tree->texts[i].text);
    memory_free(tree->nodes);
    memory_free(tree->places);
    memory_free(tree->texts);
    memory_free(tree->text_slots);
    memory_free(tree->place_slots);
    *tree = (struct call_tree){0};
}

/* --- the summary -------------------------------------------------------------------------------*/

/* A node's time with that of its children. Children have higher numbers than their parents. */
static void sums_make(const struct call_tree *tree, enum call_side side, uint64_t *ns,
                      uint64_t *cpu_ns)
{
    for (size_t i = 0; i < tree->node_count; i++) {
        ns[i] = tree->nodes[i].ns[side];
        cpu_ns[i] = tree->nodes[i].cpu_ns[side];
    }
    for (size_t i = tree->node_count; i-- > 1;) {
        ns[tree->nodes[i].parent] += ns[i];
        cpu_ns[tree->nodes[i].parent] += cpu_ns[i];
    }
}

static char *text_copy(const struct call_tree *tree, uint32_t number)
{
    const char *text = call_tree_text(tree, number);
    return memory_text(text, strlen(text));
}

/* Copies nodes[i] as the number it was given; links it before its siblings that came earlier. */
static stk_status node_copy(const struct call_tree *tree, size_t from, uint32_t to, uint32_t parent,
                            struct summary_tree *out, struct stk_error *err)
{
    struct summary_node *node = &out->nodes[to];
    node->function = text_copy(tree, tree->nodes[from].function);
    node->file = text_copy(tree, tree->nodes[from].file);
    node->line = tree->nodes[from].line;
    if (to) {
        node->next_sibling = out->nodes[parent].first_child;
        out->nodes[parent].first_child = to;
    }
    return node->function && node->file ? STK_OK : fail_memory(err, TEXT_LENGTH);
}

stk_status call_tree_summary(const struct call_tree *tree, enum call_side side,
                             struct summary_tree *out, struct stk_error *err)
{
    *out = (struct summary_tree){0};
    size_t count = tree->node_count;
    uint64_t *ns = memory_zero(count, sizeof *ns), *cpu_ns = memory_zero(count, sizeof *cpu_ns);
    uint32_t *numbers = memory_zero(count, sizeof *numbers);
    stk_status status = ns && cpu_ns && numbers ? STK_OK : fail_memory(err, count * sizeof *ns);
    if (status)
        goto done;
    sums_make(tree, side, ns, cpu_ns);
    if (!ns[0])
        goto done;
    uint64_t least = ns[0] / 1000; /* narrower than that is no more than a line in the picture */
    size_t kept = 0;
    for (size_t i = 0; i < count; i++)
        kept += ns[i] > least;
    out->nodes = memory_zero(kept, sizeof *out->nodes);
    if (!out->nodes) {
        status = fail_memory(err, kept * sizeof *out->nodes);
        goto done;
    }
    for (size_t i = 0; !status && i < count; i++) {
        if (ns[i] <= least)
            continue;
        numbers[i] = (uint32_t)out->count++;
        out->nodes[numbers[i]].ns = ns[i];
        out->nodes[numbers[i]].cpu_ns = cpu_ns[i];
        status = node_copy(tree, i, numbers[i], numbers[tree->nodes[i].parent], out, err);
    }
done:
    memory_free(ns);
    memory_free(cpu_ns);
    memory_free(numbers);
    return status;
}
