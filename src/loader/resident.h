/* resident.h -- how much of the mapped files this process keeps resident, and letting go of it.
 * Owns: nothing.   Threads: any.   Errors: none; where it cannot be told, nothing happens.
 * Not here: the budget of what is allocated (work/budget.h).
 *
 * Pages of maps are the kernel's and can be taken back at any time; but they count as this
 * process's resident memory, and a user who set a budget looks at that. So they are kept within
 * what the budget leaves over. */
#ifndef LOADER_RESIDENT_H
#define LOADER_RESIDENT_H

#include "loader/loader_impl.h"

long resident_shared_pages(void);
/* Lets go of mapped pages when they are more than the budget leaves over. */
void resident_trim(struct stk_loader *loader);

#endif
