// Heaps of candidates in global memory. Equal candidates keep libstdc++'s order, since TensorFlow Lite uses its
// push_heap, pop_heap and partial_sort (interpreter/kit/heaps.py). Macro: BELOW(a, b): a comes after b.
typedef struct {
    float score;
    int box;
    int compared;  // the number of selected boxes that it was compared with
} Candidate;

// Inserts x at a hole or above it, moving its parents down.
inline void rise(__global Candidate *heap, int hole, int top, const Candidate x) {
    while (hole > top && BELOW(heap[(hole - 1) / 2], x)) {
        heap[hole] = heap[(hole - 1) / 2];
        hole = (hole - 1) / 2;
    }
    heap[hole] = x;
}

// Moves a hole down to a leaf, along the greater child (the right one of equals), then inserts x there.
inline void sink(__global Candidate *heap, const int top, const int size, const Candidate x) {
    int hole = top;
    for (int child; (child = 2 * hole + 2) <= size; hole = child) {
        if (child == size || BELOW(heap[child], heap[child - 1])) --child;
        heap[hole] = heap[child];
    }
    rise(heap, hole, top, x);
}
