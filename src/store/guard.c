#include "store/guard.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

#include "base/fail.h"

/* Where this thread goes on when a guarded copy meets a page that its file no longer has. Its place
 * is fixed when the library is loaded: a signal handler must not have it allocated. */
static _Thread_local sigjmp_buf *volatile landing __attribute__((tls_model("initial-exec")));

/* A signal's action belongs to the process, so what was there before us does too. Written under the
 * lock, only while our handler is not the one in place; the handler reads it after sigaction made it
 * the handler. */
static struct {
    pthread_mutex_t lock;
    struct sigaction before;
} guard = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Not ours: as if we had never been here. */
static void pass_on(int number, siginfo_t *info, void *context)
{
    const struct sigaction *before = &guard.before;
    if (before->sa_flags & SA_SIGINFO) {
        before->sa_sigaction(number, info, context);
    } else if (before->sa_handler != SIG_DFL && before->sa_handler != SIG_IGN) {
        before->sa_handler(number);
    } else {
        /* On return the instruction faults again, now under the default action. A SIGBUS that was
         * sent rather than met must be sent again. An ignored fault would kill as well. */
        sigaction(number, before, NULL);
        if (info->si_code <= 0)
            raise(number);
    }
}

static void on_bus_error(int number, siginfo_t *info, void *context)
{
    sigjmp_buf *to = landing;
    /* Only a fault lands: one that another process sent says nothing about our copy. */
    if (to && info->si_code > 0) {
        landing = NULL;
        siglongjmp(*to, 1);
    }
    pass_on(number, info, context);
}

stk_status guard_install(struct stk_error *err)
{
    /* SA_NODEFER: SIGBUS stays unblocked in the handler, so the jump out of it restores nothing, and
     * sigsetjmp need not save the mask (a system call a copy). */
    struct sigaction now, action = {.sa_sigaction = on_bus_error,
                                    .sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK};
    stk_status status = STK_OK;
    sigemptyset(&action.sa_mask);
    pthread_mutex_lock(&guard.lock);
    if (sigaction(SIGBUS, NULL, &now) != 0) {
        status = fail_errno(err, errno, "cannot handle SIGBUS");
    } else if (!(now.sa_flags & SA_SIGINFO) || now.sa_sigaction != on_bus_error) {
        guard.before = now; /* right by the time the handler can run */
        if (sigaction(SIGBUS, &action, NULL) != 0)
            status = fail_errno(err, errno, "cannot handle SIGBUS");
    }
    pthread_mutex_unlock(&guard.lock);
    return status;
}

stk_status guard_run(stk_status (*copy)(void *user), void *user)
{
    sigjmp_buf here;
    if (sigsetjmp(here, 0)) {
        landing = NULL;
        return STK_STALE;
    }
    landing = &here;
    atomic_signal_fence(memory_order_seq_cst); /* an inlined copy stays between the two stores */
    stk_status status = copy(user);
    atomic_signal_fence(memory_order_seq_cst);
    landing = NULL;
    return status;
}
