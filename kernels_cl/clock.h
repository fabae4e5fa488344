// The processor's counter of cycles, which runs at one speed on all cores: x86-64's, where assembly is taken too.
#define CLOCK() ((long)__builtin_readcyclecounter())
