// A thread that helps others run their regions: it waits at a door for the next run, takes part in it, and leaves if none
// comes (region.cl, delegate/opencl/crew.py). WORK_ALONG(address, region, worker) takes part in a run.
__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void assist(const ulong at_door, const int patience) {
    __global volatile int *door = (__global volatile int *)at_door;
    int last = 0;
    for (int waited = 0; waited < patience && !*DOOR(LEAVE); ++waited) {
        const int run = *DOOR(RUN);
        if (run % 2 && run != last) {
            atomic_inc(DOOR(INSIDE));
            if (*DOOR(RUN) == run)
                WORK_ALONG(*(__global ulong *)DOOR(FUNCTION), *(__global ulong *)DOOR(REGION), 1 + (int)get_group_id(0));
            mem_fence(CLK_GLOBAL_MEM_FENCE);
            atomic_dec(DOOR(INSIDE));
            last = run;
            waited = 0;
        }
        pause_worker(waited);
    }
    atomic_dec(DOOR(HELPERS));
}
