// A user's kernel in a region, where every work-item is a group of its own: OpenCL C's functions of groups, as macros.
// Local memory belongs to the work-item, and nobody waits at a barrier. Only users' kernels are passed the number of
// work-items by dimension (delegate/plan/region_program.py).
#define ITEM                                                \
    const int item_0, const int item_1, const int item_2,   \
    const int items_0, const int items_1, const int items_2,
#define get_global_id(d) ((size_t)ITEM_INDEX(d))
#define get_global_size(d) ((size_t)JOIN(items_, d))
#define get_global_offset(d) ((size_t)0)
#define get_group_id(d) get_global_id(d)
#define get_num_groups(d) get_global_size(d)
#define get_local_id(d) ((size_t)0)
#define get_local_size(d) ((size_t)1)
#define get_work_dim() the_number_of_dimensions_is_not_known_in_a_region  // which does not compile
#define barrier(flags) mem_fence(flags)

#define __local __private
#define local __private
#define LOCAL_MEMORY(i) __builtin_alloca_with_align(args[i], 512)  // in bits; the size is the argument
