#include "loader/lanes.h"

#include <assert.h>

void lanes_find(uint32_t lanes, uint64_t position, uint64_t taken, uint64_t place, uint32_t most,
                struct lanes_run *out)
{
    uint64_t begin = position % lanes, whole = taken / lanes, rest = taken % lanes;
    assert(place < taken && most > 0);
    for (uint32_t lane = 0;; lane++) {
        /* how far behind the step's first position the lane's first one is */
        uint64_t behind = (lane + lanes - begin) % lanes;
        uint64_t count = whole + (behind < rest);
        if (place < count) {
            uint64_t left = count - place;
            *out = (struct lanes_run){
                .lane = lane,
                .first = (position + behind) / lanes + place,
                .count = left < most ? (uint32_t)left : most,
            };
            return;
        }
        place -= count;
    }
}
