/* inject.h -- libstoker_inject.so: what CUDA's driver and the Python hook call in it. The driver
 * loads the library named by CUDA_INJECTION64_PATH when it is initialised; without the variable
 * STOKER_WATCH the library does nothing.
 * Owns: one ring, one thread, CUPTI's callbacks while it records.   Threads: any.   Errors: told in
 * the ring; the program never hears of them.   Not here: how records are made
 * (inject_recorder.h). */
#ifndef INJECT_H
#define INJECT_H

#define INJECT_API __attribute__((visibility("default")))

/* Called by the driver, once. Always 1: there is nothing that it could do about a fault. */
INJECT_API int InitializeInjection(void);

/* For a process into which nothing was injected. 0: it records, or will after a yield; -1: not, and
 * the ring, if there is one, says why. A machine without a driver gets no ring. A second start does
 * nothing. */
INJECT_API int stoker_inject_start(const char *folder);
/* Before the program's own profiler starts, and after it ended. A yield waits for the work of the
 * calling thread's device, so that nothing is lost, and then CUPTI is not touched until the
 * resume. Legal at any time but while the thread captures a graph, which the wait would spoil: a
 * yield before the driver was initialised is remembered. */
INJECT_API void stoker_inject_yield(void);
INJECT_API void stoker_inject_resume(void);
/* The program launches a CUDA graph now: kernels of it must be recorded. */
INJECT_API void stoker_inject_graph(void);
/* What is complete goes to the ring now. */
INJECT_API void stoker_inject_flush(void);
/* Ends recording and closes the ring; another start may follow. */
INJECT_API void stoker_inject_stop(void);

#endif
