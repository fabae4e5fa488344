// As many bytes as a vector of floats has, at any address.
typedef uchar bytesv __attribute__((ext_vector_type(4 * VW)));
typedef bytesv bytesv_u __attribute__((aligned(1)));
