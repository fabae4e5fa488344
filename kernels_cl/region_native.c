// The function of a region's library that the host calls (delegate/native/execution.py): with helpers where they are
// free (crew.c), else alone. It is C, which has pointers to functions; the rest of a region is OpenCL C.
#include "float_mode.h"
#include "gate.h"
#include <NativeCall>

typedef unsigned long long ulong;
typedef void (*WorkAlong)(const ulong *call, int worker);
typedef int (*Take)(void);
typedef void (*Lead)(WorkAlong function, ulong *call, ulong *number);

extern void run_alone(const ulong *call);
extern void clear_progress(const ulong *call);
extern void work_along(const ulong *call, int worker);

static void run(ulong *call) {
    if (call[NATIVE_CALL_WORKERS] == 1 || !((Take)(__UINTPTR_TYPE__)call[NATIVE_CALL_TAKE])()) {
        run_alone(call);
        return;
    }
    clear_progress(call);
    ((Lead)(__UINTPTR_TYPE__)call[NATIVE_CALL_LEAD])(work_along, call, call + NATIVE_CALL_NUMBER);
}

__attribute__((visibility("default"))) void run_region(ulong *call) {
    int *gate = (int *)(__UINTPTR_TYPE__)call[NATIVE_CALL_GATE];
    const FloatMode before = enter_float_mode();
    leave_gate(gate);
    run(call);
    if (float_mode() != before) set_float_mode(before);
    enter_gate(gate);
}
