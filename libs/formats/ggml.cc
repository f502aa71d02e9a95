#include "formats/ggml.h"

#include "core/error.h"

namespace hark {
namespace {

struct Known {
    uint32_t type;
    Dtype dtype;
};
constexpr Known kTypes[] = {
    {0, Dtype::f32},   {1, Dtype::f16},   {2, Dtype::q4_0},  {3, Dtype::q4_1},  {6, Dtype::q5_0},
    {7, Dtype::q5_1},  {8, Dtype::q8_0},  {10, Dtype::q2_k}, {11, Dtype::q3_k}, {12, Dtype::q4_k},
    {13, Dtype::q5_k}, {14, Dtype::q6_k}, {30, Dtype::bf16}};

}  // namespace

Dtype ggml_dtype(uint32_t type, const std::string& where) {
    for (const Known& known : kTypes)
        if (known.type == type) return known.dtype;
    fail(where,
         ": expected a ggml type of f32, f16, bf16, q4_0 to q8_0 or q2_k to q6_k, found number ",
         type);
}

uint32_t ggml_type(Dtype dtype) {
    for (const Known& known : kTypes)
        if (known.dtype == dtype) return known.type;
    fail("expected a type that ggml has, found ", name_of(dtype));
}

}  // namespace hark
