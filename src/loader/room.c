#include "loader/room.h"

#include "base/memory.h"

uint8_t *room_reserve(struct room *room, uint64_t size, struct budget *budget)
{
    if (room->data && size <= room->size)
        return room->data;
    room_reset(room, budget);
    if (size > INT64_MAX / 2)
        return NULL;
    room->data = memory_alloc(size + ROOM_SLACK);
    if (!room->data)
        return NULL;
    room->size = size;
    if (budget)
        budget_force(budget, size + ROOM_SLACK);
    return room->data;
}

void room_reset(struct room *room, struct budget *budget)
{
    if (room->data && budget)
        budget_give(budget, room->size + ROOM_SLACK);
    memory_free(room->data);
    *room = (struct room){0};
}
