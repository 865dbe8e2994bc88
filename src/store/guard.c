#include "store/guard.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>
#include <ucontext.h>

#include "base/fail.h"

/* Where this thread goes on when a guarded copy meets a page that its file no longer has. Its place
 * is fixed when the library is loaded: a signal handler must not have it allocated. */
static _Thread_local sigjmp_buf *volatile landing __attribute__((tls_model("initial-exec")));
/* This thread is in the handler that was there before us. */
static _Thread_local volatile int passing __attribute__((tls_model("initial-exec")));

/* A signal's action belongs to the process, so what was there before us does too. Written under the
 * lock, only while our handler is not the one in place; the handler reads it after sigaction made
 * it the handler. */
static struct {
    pthread_mutex_t lock;
    struct sigaction before;
} guard = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* On return the instruction faults again, now under the default action. A SIGBUS that was sent
 * rather than met must be sent again. */
static void die_of_it(int number, const siginfo_t *info)
{
    struct sigaction action = {.sa_handler = SIG_DFL};
    sigaction(number, &action, NULL);
    if (info->si_code <= 0)
        raise(number);
}

/* Not ours: as if we had never been here. A handler that took the signal after us and hands it on
 * to us would go round in a circle: the second time it is nobody's. */
static void pass_on(int number, siginfo_t *info, void *context)
{
    const struct sigaction *before = &guard.before;
    int plain = !(before->sa_flags & SA_SIGINFO);
    if (passing || (plain && (before->sa_handler == SIG_DFL || before->sa_handler == SIG_IGN))) {
        die_of_it(number, info); /* an ignored fault would kill as well */
        return;
    }
    passing = 1;
    if (plain)
        before->sa_handler(number);
    else
        before->sa_sigaction(number, info, context);
    passing = 0;
}

static void on_bus_error(int number, siginfo_t *info, void *context)
{
    sigjmp_buf *to = landing;
    /* Only a fault lands: one that another process sent says nothing about our copy. */
    if (to && info->si_code > 0) {
        landing = NULL;
        /* The mask as it was before the fault: sigsetjmp need not save it then, which would be a
         * system call a copy. */
        pthread_sigmask(SIG_SETMASK, &((const ucontext_t *)context)->uc_sigmask, NULL);
        siglongjmp(*to, 1);
    }
    pass_on(number, info, context);
}

stk_status guard_install(struct stk_error *err)
{
    /* SA_NODEFER: what the handler before us meets or raises reaches us again, see pass_on. */
    struct sigaction now,
        action = {.sa_sigaction = on_bus_error, .sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK};
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
