// The processor's counter, which runs at the same rate on all cores. x86-64's counts cycles; elsewhere programs can
// read only a counter of time.
#ifdef __x86_64__
#define CLOCK() ((long)__builtin_readcyclecounter())
#else
#define CLOCK() ((long)__builtin_readsteadycounter())
#endif
