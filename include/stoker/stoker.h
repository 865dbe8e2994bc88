/* stoker.h -- everything, for those who do not want to choose.
 * Owns: nothing.   Threads, Errors: see each header.   Not here: any contract. */
#ifndef STOKER_STOKER_H
#define STOKER_STOKER_H

#include "stoker/activity.h"
#include "stoker/arrow.h"
#include "stoker/bytes.h"
#include "stoker/cache.h"
#include "stoker/check.h"
#include "stoker/context.h"
#include "stoker/dataset.h"
#include "stoker/device.h"
#include "stoker/digest.h"
#include "stoker/error.h"
#include "stoker/loader.h"
#include "stoker/media.h"
#include "stoker/pack.h"
#include "stoker/pipeline.h"
#include "stoker/plugin.h"
#include "stoker/remote.h"
#include "stoker/report.h"
#include "stoker/series.h"
#include "stoker/show.h"
#include "stoker/status.h"
#include "stoker/tensor.h"
#include "stoker/version.h"
#include "stoker/watch.h"

#endif
