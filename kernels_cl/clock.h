// The processor's counter, which runs at one speed on all cores: x86-64's counts cycles; elsewhere programs may read that
// of time alone.
#ifdef __x86_64__
#define CLOCK() ((long)__builtin_readcyclecounter())
#else
#define CLOCK() ((long)__builtin_readsteadycounter())
#endif
