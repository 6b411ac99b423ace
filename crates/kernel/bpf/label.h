/* Labels of 17 bits: 5 bits of exponent, 12 bits of mantissa with a hidden leading one (Stoica, Zhang,
 * SIGCOMM 1999, section 5.2). Bit for bit the encoding of crates/core/src/label.rs. */
#ifndef APPORTION_LABEL_H
#define APPORTION_LABEL_H

#include "fixed.h"

#define LABEL_MANTISSA 12
#define LABEL_BITS 17
#define LABEL_MAX ((1u << LABEL_BITS) - 1)

/* The position of the highest bit set. Without branches: the verifier walks each path of a loop. */
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

/* The label nearest to `value` in Q16, ties rounded up; the largest label for larger values. */
INLINE __u32 label_encode(__u64 value)
{
    /* Below 2^12 the value itself, with exponent 0. A carry to 2^12 is the first code with an exponent. */
    if (value < 1ULL << (16 + LABEL_MANTISSA))
        return (value + (1 << 15)) >> 16;
    if (value >> 60)
        return LABEL_MAX;
    __u32 bit = highest_bit(value), shift = bit - LABEL_MANTISSA;
    /* 2^12 to 2^13: a carry increments the exponent, which the sum does by itself. */
    __u32 scaled = (value + (1ULL << (shift - 1))) >> shift;
    __u32 code = ((bit - 16 - LABEL_MANTISSA) << LABEL_MANTISSA) + scaled;
    return code < LABEL_MAX ? code : LABEL_MAX;
}

/* The value of a label: an integer below 2^43. */
INLINE __u64 label_decode(__u32 code)
{
    __u32 exponent = (code & LABEL_MAX) >> LABEL_MANTISSA;
    __u64 mantissa = code & ((1u << LABEL_MANTISSA) - 1);
    return exponent ? (mantissa | 1u << LABEL_MANTISSA) << (exponent - 1) : mantissa;
}

#endif
