/* plugin_transform.h -- the transforms of loaded plugins, as rows beside those of transforms.c.
 * Owns: a registry owns its plugins' libraries and the rows made of them.   Threads: filled by one
 * thread before it is used; then read-only and shared.   Errors: status; words name the plugin.
 * Not here: the public contract (stoker/plugin.h), opening (base/plugin_load.h). */
#ifndef TRANSFORM_PLUGIN_TRANSFORM_H
#define TRANSFORM_PLUGIN_TRANSFORM_H

#include "base/plugin_load.h"
#include "transform/transform.h"

struct transform_registry;

STK_CHECK stk_status transform_registry_new(struct transform_registry **out, struct stk_error *err);
/* Closes the libraries: nothing of theirs may be in use. NULL is fine. */
void transform_registry_free(struct transform_registry *registry);

/* Takes the library over when STK_OK (*library is zeroed); else it stays the caller's, and no row
 * of it is kept. A name that is taken, by Stoker or by another plugin, is refused. */
STK_CHECK stk_status transform_registry_add(struct transform_registry *registry,
                                            struct plugin_library *library, struct stk_error *err);

/* NULL: none; the registry may be NULL. */
const struct transform_ops *transform_registry_find(const struct transform_registry *registry,
                                                    const char *name);
/* In the order of loading; NULL past the last. */
const struct transform_ops *transform_registry_at(const struct transform_registry *registry,
                                                  uint32_t row);

#endif
