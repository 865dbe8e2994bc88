/* export.h -- marks what the library exports, and what a caller must not ignore.
 * Owns: nothing.   Threads: any.   Errors: none.   Not here: everything else. */
#ifndef STOKER_EXPORT_H
#define STOKER_EXPORT_H

#if defined(__GNUC__)
#define STK_API __attribute__((visibility("default")))
#define STK_CHECK __attribute__((warn_unused_result))
#define STK_PRINTF(text, first) __attribute__((format(printf, text, first)))
#else
#define STK_API
#define STK_CHECK
#define STK_PRINTF(text, first)
#endif

#endif
