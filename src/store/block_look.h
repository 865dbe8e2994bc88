/* block_look.h -- what block_folder.c and block_look.c share.
 * Owns: nothing.   Threads: see block_folder.h.   Errors: see there.   Not here: any contract for
 * others. */
#ifndef STORE_BLOCK_LOOK_H
#define STORE_BLOCK_LOOK_H

#include "store/block_folder.h"

void block_look_limit(struct block_folder *folder);
int block_room_lock(struct block_folder *folder);
void block_room_unlock(struct block_folder *folder);

#endif
