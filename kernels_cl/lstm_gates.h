// The gates of an LSTM cell, and how the work-items of its group wait for each other. Macro: NV, the number of gates.
#include <delegate.recurrent.time_loop.Gate>
#include <delegate.recurrent.time_loop.Peephole>

#ifdef LITECL_CPU
#define ALL_ITEMS_DONE
#else
#define ALL_ITEMS_DONE barrier(CLK_GLOBAL_MEM_FENCE)
#endif

// The index of a gate among those that are present.
#define INDEX_OF(gate) (gate - (GATES - NV))
#define INPUT INDEX_OF(GATE_INPUT)
#define FORGET INDEX_OF(GATE_FORGET)
#define CELL INDEX_OF(GATE_CELL)
#define OUTPUT INDEX_OF(GATE_OUTPUT)
