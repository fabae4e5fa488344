// What ARG_MAX and ARG_MIN look for: OP is GREATER or LESS. NaN loses to every number.
#define GREATER(a, b) ((a) > (b))
#define LESS(a, b) ((a) < (b))
#define WINS(x, best) (OP(x, best) || ((best) != (best) && (x) == (x)))
