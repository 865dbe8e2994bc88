/* old_cuda.c -- a driver from before everything that Stoker calls: libcuda.so.1 with one function.
 */
__attribute__((visibility("default"))) int cuInit(unsigned flags);

int cuInit(unsigned flags)
{
    (void)flags;
    return 0;
}
