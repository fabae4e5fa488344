// How one group of a GPU runs a region: a kernel, which does nothing where flags[flag] is 0.
__kernel void run(__global uchar *arena, __global uchar *constants, __global const Entry *works,
                  __global const ulong *args, __global ulong *shifts, __global int *counts, const int count,
                  __global const int *flags, const int flag OWN(ARGUMENT)) {
    const Region region = {(ulong)arena, works, args, shifts, counts, 0};
    if (flag >= 0 && !flags[flag]) return;
    if (FIRST_ITEM) {
        shifts[SHIFT_CONSTANTS] = (ulong)constants - (ulong)arena;
        OWN(SHIFT_OWN)
    }
    SYNC;
    run_entries(&region, 0, count);
}
