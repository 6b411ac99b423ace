/* Helpers of the kernel by number, and declarations of maps: bpf-helpers(7), linux/bpf.h. */
#ifndef APPORTION_HELPERS_H
#define APPORTION_HELPERS_H

#include <linux/bpf.h>
#include <linux/pkt_cls.h>
#include <linux/types.h>

#define SECTION(name) __attribute__((section(name), used))
#define INLINE static inline __attribute__((always_inline))

/* A map is declared by the types of the fields of a struct in `.maps`, which BTF describes. */
#define MAP_NUMBER(name, value) int (*name)[value]
#define MAP_TYPE(name, value) value *name
#define ARRAY_OF_ONE(kind, value_type)                                                                                  \
    struct {                                                                                                           \
        MAP_NUMBER(type, kind);                                                                                        \
        MAP_NUMBER(max_entries, 1);                                                                                    \
        MAP_TYPE(key, __u32);                                                                                          \
        MAP_TYPE(value, value_type);                                                                                   \
    }

/* Passes the packet on to further programs, which TC_ACT_OK would skip from Linux 6.6 on. */
#define PASSES TC_ACT_UNSPEC

static void *(*const bpf_map_lookup_elem)(void *map, const void *key) = (void *)BPF_FUNC_map_lookup_elem;
static __u64 (*const bpf_ktime_get_ns)(void) = (void *)BPF_FUNC_ktime_get_ns;
static __u32 (*const bpf_get_prandom_u32)(void) = (void *)BPF_FUNC_get_prandom_u32;
static long (*const bpf_skb_pull_data)(struct __sk_buff *skb, __u32 length) = (void *)BPF_FUNC_skb_pull_data;

/* The project's MIT licence is compatible with the GPL, which kernels require before programs may use some
 * helpers. */
char apportion_license[] SECTION("license") = "Dual MIT/GPL";

#endif
