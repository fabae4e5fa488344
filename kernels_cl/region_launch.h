// How an OpenCL device of the processor's runs a region: a kernel, each of whose groups is a worker.
__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void run(__global uchar *arena, __global uchar *constants, __global const Entry *works, __global const ulong *args,
         __global ulong *shifts, __global int *counts, __global volatile int *progress, const int count OWN(ARGUMENT)) {
    const Region region = {(ulong)arena, works, args, shifts, counts, progress};
    shifts[SHIFT_CONSTANTS] = (ulong)constants - (ulong)arena;  // every worker writes the same values
    OWN(SHIFT_OWN)
#ifdef LITECL_SOLO
    run_entries(&region, 0, count);
#else
    work_through(&region, progress + LAUNCH_LINES * LINE, count, get_group_id(0), get_num_groups(0));
#endif
}
