// Compiles the function that gathers patches (gather_patches.h) once for all convolutions of a type, whatever their
// tiles.
#define GATHERS
#define MR 1
#define NV 1
#define PANEL 1
#include "gather_patches.h"
