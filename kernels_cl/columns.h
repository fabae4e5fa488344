// Stores four columns of a row of floats; the last ones may not exist, or may belong to other work-items. aligned: rows
// begin at multiples of 16 bytes, so that four columns are one store.
inline void store_columns(__global float *out, const float4 y, const int columns, const int aligned) {
    if (columns >= 4 && aligned) {
        *(__global float4 *)out = y;
        return;
    }
    if (columns > 0) out[0] = y.s0;
    if (columns > 1) out[1] = y.s1;
    if (columns > 2) out[2] = y.s2;
    if (columns > 3) out[3] = y.s3;
}

inline float4 load_columns(__global const float *from, const int columns, const int aligned) {
    if (columns >= 4 && aligned) return *(__global const float4 *)from;
    return (float4)(columns > 0 ? from[0] : 0.0f, columns > 1 ? from[1] : 0.0f, columns > 2 ? from[2] : 0.0f,
                    columns > 3 ? from[3] : 0.0f);
}
