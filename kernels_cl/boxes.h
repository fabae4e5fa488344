// Boxes and their overlaps, a vector of boxes at a time. Corners and areas of selected boxes are in rows of `room`
// floats. Every operation is rounded by itself and has TensorFlow Lite's order of operands, which decides what NaN
// does.
#pragma OPENCL FP_CONTRACT OFF

typedef struct {
    floatv top, left, bottom, right, area;
} Boxes;

#define BOX_ROWS 5

// C++'s std::min and std::max: the first of NaN and a number.
#define LESSER(a, b) ((b) < (a) ? (b) : (a))
#define GREATER(a, b) ((a) < (b) ? (b) : (a))
#define EITHER(a, b) ((a) | (b))

inline void keep_box(__global float *kept, const int room, const float4 corners, const float area) {
    kept[0] = corners.s0;
    kept[room] = corners.s1;
    kept[2 * room] = corners.s2;
    kept[3 * room] = corners.s3;
    kept[4 * room] = area;
}

inline Boxes kept_boxes(__global const float *kept, const int room) {
    return (Boxes){LOAD(kept), LOAD(kept + room), LOAD(kept + 2 * room), LOAD(kept + 3 * room), LOAD(kept + 4 * room)};
}

// A box in all lanes.
inline Boxes same_boxes(const float4 corners, const float area) {
    return (Boxes){(floatv)(corners.s0), (floatv)(corners.s1), (floatv)(corners.s2), (floatv)(corners.s3), (floatv)(area)};
}

inline float area_of(const float4 corners) {
    const float height = corners.s2 - corners.s0, width = corners.s3 - corners.s1;
    return height * width;
}

// Intersection over union; 0 of a box without an area.
inline floatv overlaps(const Boxes a, const Boxes b) {
    const floatv zero = 0.0f;
    const floatv height = LESSER(a.bottom, b.bottom) - GREATER(a.top, b.top);
    const floatv width = LESSER(a.right, b.right) - GREATER(a.left, b.left);
    const floatv shared = GREATER(height, zero) * GREATER(width, zero);
    const floatv both = a.area + b.area;
    const floatv iou = shared / (both - shared);
    return a.area <= 0.0f ? zero : b.area <= 0.0f ? zero : iou;
}

inline int any_lane(const intv lanes) {
    int any;
    FOLD(int, lanes, EITHER, any)
    return any;
}
