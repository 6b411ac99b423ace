/* Labels of 17 bits: 5 of exponent, 12 of mantissa behind a hidden one (Stoica, Zhang, SIGCOMM 1999, section 5.2).
 * Bit for bit what crates/core/src/label.rs writes and reads. */
#ifndef APPORTION_LABEL_H
#define APPORTION_LABEL_H

#include "fixed.h"

#define LABEL_MANTISSA 12
#define LABEL_BITS 17
#define LABEL_MAX ((1u << LABEL_BITS) - 1)

/* The place of the highest bit that is set. Without branches: the verifier walks each path of a loop. */
INLINE __u32 highest_bit(__u64 v)
{
    __u32 n = 0, step;
    step = (v >> 32 != 0) << 5, v >>= step, n += step;
    step = (v >> 16 != 0) << 4, v >>= step, n += step;
    step = (v >> 8 != 0) << 3, v >>= step, n += step;
    step = (v >> 4 != 0) << 2, v >>= step, n += step;
    step = (v >> 2 != 0) << 1, v >>= step, n += step;
    return n + (v >> 1 != 0);
}

/* The label nearest to `value` in Q16, half up; the largest for what is larger. */
INLINE __u32 label_encode(__u64 value)
{
    /* Below 2^12 the value itself, with exponent 0. A carry to 2^12 is the first code with an exponent. */
    if (value < 1ULL << (16 + LABEL_MANTISSA))
        return (value + (1 << 15)) >> 16;
    if (value >> 60)
        return LABEL_MAX;
    __u32 bit = highest_bit(value), shift = bit - LABEL_MANTISSA;
    /* 2^12 to 2^13: a carry makes the exponent one larger, which is what the sum says. */
    __u32 scaled = (value + (1ULL << (shift - 1))) >> shift;
    __u32 code = ((bit - 16 - LABEL_MANTISSA) << LABEL_MANTISSA) + scaled;
    return code < LABEL_MAX ? code : LABEL_MAX;
}

/* What it stands for: a whole number below 2^43. */
INLINE __u64 label_decode(__u32 code)
{
    __u32 exponent = (code & LABEL_MAX) >> LABEL_MANTISSA;
    __u64 mantissa = code & ((1u << LABEL_MANTISSA) - 1);
    return exponent ? (mantissa | 1u << LABEL_MANTISSA) << (exponent - 1) : mantissa;
}

#endif
