#include "core/ggml.h"

#include <map>

#include "core/error.h"

namespace hark {

Dtype ggml_dtype(uint32_t type, const std::string& where) {
    static const std::map<uint32_t, Dtype> kTypes = {
        {0, Dtype::f32},   {1, Dtype::f16},   {2, Dtype::q4_0},  {3, Dtype::q4_1},
        {6, Dtype::q5_0},  {7, Dtype::q5_1},  {8, Dtype::q8_0},  {10, Dtype::q2_k},
        {11, Dtype::q3_k}, {12, Dtype::q4_k}, {13, Dtype::q5_k}, {14, Dtype::q6_k},
        {30, Dtype::bf16}};
    const auto found = kTypes.find(type);
    require(found != kTypes.end(), where,
            ": expected a ggml type of f32, f16, bf16, q4_0 to q8_0 or q2_k to q6_k, found number ",
            type);
    return found->second;
}

}  // namespace hark
