/* memory.h -- the one door to the heap, so that a test can fail the Nth call.
 * Owns: nothing.   Threads: any; the hook is set while nothing else runs.   Errors: NULL.
 * Not here: budgets (work/budget.h). */
#ifndef BASE_MEMORY_H
#define BASE_MEMORY_H

#include <stddef.h>
#include <stdint.h>

void *memory_alloc(size_t size);                 /* not cleared; size 0 is 1 */
void *memory_zero(size_t count, size_t size);    /* cleared; the product is checked */
void *memory_grow(void *old, size_t size);       /* realloc; old stays valid on NULL */
void memory_free(void *block);                   /* NULL is fine */
char *memory_text(const char *text, size_t len); /* a copy ended by NUL */

/* Large blocks for batches and chunks: whole pages, aligned to 2 MiB when that large and then
 * advised to use huge pages (first touch is what a fresh buffer costs). */
void *memory_map(size_t size);
void memory_unmap(void *block, size_t size);

/* For tests: called before every allocation; not 0 makes that allocation fail. NULL: none. */
void memory_set_hook(int (*hook)(void *user, size_t size), void *user);

#endif
