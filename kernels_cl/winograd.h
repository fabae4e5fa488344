// The transforms of Winograd's F(4x4, 3x3) along one side of a patch, with the interpolation points 0, +-1/sqrt(2),
// +-sqrt(2) and infinity. Results that a caller does not use are not computed.
#define ROOT_OF_HALF 0.70710678f
#define ROOT_OF_TWO 1.41421356f

// B^T x: for every point, the coefficients of the polynomial that vanishes at the others.
__attribute__((always_inline)) inline void transform_input(const floatv x[6], floatv y[6]) {
    const floatv even_a = x[4] - 2.0f * x[2], odd_a = ROOT_OF_HALF * (x[3] - 2.0f * x[1]);
    const floatv even_b = x[4] - 0.5f * x[2], odd_b = ROOT_OF_TWO * (x[3] - 0.5f * x[1]);
    y[0] = x[0] - 2.5f * x[2] + x[4];
    y[1] = even_a + odd_a;
    y[2] = even_a - odd_a;
    y[3] = even_b + odd_b;
    y[4] = even_b - odd_b;
    y[5] = x[1] - 2.5f * x[3] + x[5];
}

// A^T x: the powers of the points.
__attribute__((always_inline)) inline void transform_output(const floatv x[6], floatv y[4]) {
    const floatv even_a = x[1] + x[2], odd_a = ROOT_OF_HALF * (x[1] - x[2]);
    const floatv even_b = x[3] + x[4], odd_b = ROOT_OF_TWO * (x[3] - x[4]);
    y[0] = x[0] + even_a + even_b;
    y[1] = odd_a + odd_b;
    y[2] = 0.5f * even_a + 2.0f * even_b;
    y[3] = 0.5f * odd_a + 2.0f * odd_b + x[5];
}
