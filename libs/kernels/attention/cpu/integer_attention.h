// Attention of many queries in integers, by VNNI instructions: those of 16 bits have as many
// products per instruction as bf16, and more bits; those of 8 bits have twice as many.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hark {

// The queries of one head, all of which see all of its keys.
struct HeadInputs {
    float* out;                    // row j, of `head` values, is at out + j * out_stride
    const float* q;                // and at q + j * q_stride
    const float *keys, *values;    // (keys_count, head)
    int64_t out_stride, q_stride;  // in values
    int64_t queries, keys_count, head;
    float scale;
    int bits;  // of queries and keys: 16 or 8
};

// Queries are rounded by their largest value, keys by the head's, to as many bits as their sums
// leave room for: 12 and a sign at D = 64. Weights are rounded to 15 bits of the row's largest,
// values to 9 bits and a sign of their channel's largest. Sums are exact within 128 keys, then
// float32.
struct IntegerAttention {
    int64_t (*scratch_bytes)(int64_t keys_count, int64_t head);
    // scratch: from a multiple of 64 on.
    void (*attend)(const HeadInputs& in, std::byte* scratch);
};

}  // namespace hark
