/* no_injection.c -- a library that CUDA loads in place of another (CUDA_INJECTION64_PATH), and that
 * does nothing: for measuring what is left without the other. */
int InitializeInjection(void);

int InitializeInjection(void)
{
    return 1;
}
