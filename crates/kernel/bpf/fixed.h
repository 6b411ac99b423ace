/* Fixed-point arithmetic: BPF has neither floating point nor 128-bit products.
 *
 * Qn is a number with n fractional bits, in 64 bits. Products are truncated, never rounded up: each is off
 * by less than one unit in the last place.
 */
#ifndef APPORTION_FIXED_H
#define APPORTION_FIXED_H

#include "helpers.h"

/* (a b) / 2^64. */
INLINE __u64 mul_64(__u64 a, __u64 b)
{
    __u64 a0 = (__u32)a, a1 = a >> 32, b0 = (__u32)b, b1 = b >> 32;
    __u64 middle = a1 * b0 + (a0 * b0 >> 32);
    __u64 other = a0 * b1 + (__u32)middle;
    return a1 * b1 + (middle >> 32) + (other >> 32);
}

/* (a b) / 2^32 for b below 2^32, exact except for the last bit; b is a factor of at most 1, so that the
 * result fits. */
INLINE __u64 mul_32(__u64 a, __u64 b)
{
    return (a >> 32) * b + ((__u32)a * b >> 32);
}

/* (a b) / 2^32, saturating at 2^64 - 1. */
INLINE __u64 mul_32_saturating(__u64 a, __u64 b)
{
    __u64 high = mul_64(a, b);
    return high >> 32 ? ~0ULL : high << 32 | a * b >> 32;
}

/* e^-n in Q64, n up to 44: e^-45 is less than 2^-64. 1 is represented by 1 - 2^-64. */
static const __u64 EXP_WHOLE[64] = {
    0xffffffffffffffff, 0x5e2d58d8b3bcdf1b, 0x22a555477f039740, 0x0cbed86667585765,
    0x04b0556e084f3d1e, 0x01b993fe00d53762, 0x00a2728f889ea6af, 0x003bc2d73849531d,
    0x0015fc21041027ad, 0x0008167912932a2d, 0x0002f9af36ac8f93, 0x000118354238f676,
    0x0000671530ed0ef2, 0x000025ec0a77303b, 0x00000df3637ed80b, 0x00000521d72889fb,
    0x000001e355bbaee8, 0x000000b1cf18bad3, 0x00000041698a31a6, 0x000000181056ff2c,
    0x00000008da432afa, 0x0000000341b61a1c, 0x0000000132b48bf1, 0x0000000070d49f91,
    0x0000000029820f20, 0x000000000f451bd2, 0x00000000059e14aa, 0x0000000002110a53,
    0x0000000000c29f81, 0x000000000047990b, 0x00000000001a56e1, 0x000000000009b091,
    0x000000000003908d, 0x0000000000014fb5, 0x0000000000007b80, 0x0000000000002d6f,
    0x00000000000010b7, 0x0000000000000626, 0x0000000000000243, 0x00000000000000d5,
    0x000000000000004e, 0x000000000000001d, 0x000000000000000b, 0x0000000000000004,
    0x0000000000000001, 0x0000000000000000, 0x0000000000000000, 0x0000000000000000,
    0x0000000000000000, 0x0000000000000000, 0x0000000000000000, 0x0000000000000000,
    0x0000000000000000, 0x0000000000000000, 0x0000000000000000, 0x0000000000000000,
    0x0000000000000000, 0x0000000000000000, 0x0000000000000000, 0x0000000000000000,
    0x0000000000000000, 0x0000000000000000, 0x0000000000000000, 0x0000000000000000,
};

/* e^(-j/16) in Q64. */
static const __u64 EXP_SIXTEENTHS[16] = {
    0xffffffffffffffff, 0xf07d5fde38151e73, 0xe1eb51276c110c3c, 0xd43b4096043bde03,
    0xc75f7cf564105743, 0xbb4b296f917bf09a, 0xaff230af4c747554, 0xa54938c9b7e846b1,
    0x9b4597e37cb04ff4, 0x91dd49860ab457fe, 0x8906e49a4c9f3d59, 0x80b991fec8010361,
    0x78ed03afbf35f94c, 0x71996c787c783410, 0x6ab7782576b52d01, 0x6440442f81a5d838,
};

/* A gap T in units of a time constant K, x = T/K, as averages use it. */
struct gap {
    /* 1 - e^-x, Q64. */
    __u64 less;
    /* 1 - (1 - e^-x)/x, Q32, where x is below 1/16. */
    __u64 deficit;
    /* Whether x is below 1/16. */
    __u32 is_short;
};

/* 1 - (1 - e^-y)/y in Q32 for y below 1/16 in Q64: the series y/2 - y^2/6 + y^3/24 - y^4/120. The
 * truncation error is below y^5/720 < 1.4e-9; products of 32 bits lose up to 5 2^-32 = 1.2e-9. */
INLINE __u64 deficit(__u64 y64)
{
    /* 1/2, 1/6, 1/24, 1/120 in Q32. */
    const __u64 c1 = 1ULL << 31, c2 = 715827883, c3 = 178956971, c4 = 35791394;
    __u64 y = y64 >> 32;
    return y * (c1 - (y * (c2 - (y * (c3 - (y * c4 >> 32)) >> 32)) >> 32)) >> 32;
}

/* `k` in nanoseconds, `inverse` = 2^64 / k. The relative error of `less` is below 3e-9. */
INLINE struct gap gap_of(__u64 t, __u64 k, __u64 inverse)
{
    struct gap gap = {};
    __u64 whole = 0;
    if (t >= k) {
        whole = t / k;
        t -= whole * k;
    }
    /* x = whole + j/16 + y. */
    __u64 x = t * inverse, j = x >> 60, y = x & ((1ULL << 60) - 1);
    gap.deficit = deficit(y);
    gap.less = y - mul_32(y, gap.deficit);
    gap.is_short = !(whole | j);
    if (whole > 44) {
        gap.less = ~0ULL;
    } else if (!gap.is_short) {
        /* At least 2^-64: 1 - 0 does not fit into 64 bits. */
        __u64 e = mul_64(EXP_WHOLE[whole & 63], EXP_SIXTEENTHS[j & 15]) | 1;
        gap.less = mul_64(e, gap.less) - e;
    }
    return gap;
}

#endif
