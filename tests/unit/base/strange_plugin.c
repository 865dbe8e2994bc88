/* A plugin of a version that does not exist, for test_plugin_load.c. */
#include "stoker/plugin.h"

STK_API const struct stk_plugin stoker_plugin = {
    .version = STK_PLUGIN_VERSION + 99,
    .size = sizeof(struct stk_plugin),
    .name = "strange",
};
