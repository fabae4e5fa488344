// How Python calls a region's function: by builtin functions without arguments, whose object is a capsule that holds the
// numbers of NativeCall (delegate/native/methods.py). A call by ctypes takes longer than the smallest regions do.
#include <delegate.plan.region_tables.NativeCall>

#define EXPORTED __attribute__((visibility("default")))
typedef unsigned long long ulong;

// Functions of Python's, and None. The host sets them before the first call.
EXPORTED struct {
    ulong *(*pointer)(void *capsule, const char *name);  // PyCapsule_GetPointer
    void *(*release)(void);                               // PyEval_SaveThread
    void (*take)(void *thread);                           // PyEval_RestoreThread
    void *(*refer)(void *object);                         // Py_NewRef
    void *none;
} python;

static void run(ulong *call) { ((void (*)(ulong *))(__UINTPTR_TYPE__)call[NATIVE_CALL_REGION])(call); }

// Runs a region with the GIL held.
EXPORTED void *run_locked(void *capsule, void *nothing) {
    run(python.pointer(capsule, 0));
    return python.refer(python.none);
}

// Runs a region with the GIL released.
EXPORTED void *run_freely(void *capsule, void *nothing) {
    ulong *call = python.pointer(capsule, 0);
    void *thread = python.release();
    run(call);
    python.take(thread);
    return python.refer(python.none);
}
