// Heaps of candidates in global memory. Of equal ones libstdc++'s order decides, as in TensorFlow Lite, whose kernels use
// its push_heap, pop_heap and partial_sort (interpreter/kit/heaps.py). Macro: BELOW(a, b): a comes after b.
typedef struct {
    float score;
    int box;
    int compared;  // with so many of the selected boxes
} Candidate;

// Puts x at a hole, or above it, down to which its parents move.
inline void rise(__global Candidate *heap, int hole, int top, const Candidate x) {
    while (hole > top && BELOW(heap[(hole - 1) / 2], x)) {
        heap[hole] = heap[(hole - 1) / 2];
        hole = (hole - 1) / 2;
    }
    heap[hole] = x;
}

// Moves a hole down to a leaf, along the greater child, of equal ones the right; then puts x there.
inline void sink(__global Candidate *heap, const int top, const int size, const Candidate x) {
    int hole = top;
    for (int child; (child = 2 * hole + 2) <= size; hole = child) {
        if (child == size || BELOW(heap[child], heap[child - 1])) --child;
        heap[hole] = heap[child];
    }
    rise(heap, hole, top, x);
}
