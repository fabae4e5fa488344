// The processor's counter of cycles, which runs at one speed on all cores: x86-64's, where assembly is taken too. The
// processor's own back end reads Arm's counter of time, as programs may not read that of cycles there.
#if defined(LITECL_NATIVE) && !defined(__x86_64__)
#define CLOCK() ((long)__builtin_readsteadycounter())
#else
#define CLOCK() ((long)__builtin_readcyclecounter())
#endif
