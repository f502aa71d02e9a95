#include "formats/ggml.h"

#include "core/error.h"

namespace hark {
namespace {

struct Known {
    uint32_t type;
    Dtype dtype;
};
constexpr Known kTypes[] = {
    {0, Dtype::f32},
    {1, Dtype::f16},
    {30, Dtype::bf16},
#define HARK_QUANTIZED(name, block, values, bytes, type, ...) {type, Dtype::name},
#include "core/quantized_types.def"
#undef HARK_QUANTIZED
};

}  // namespace

Dtype ggml_dtype(uint32_t type, const std::string& where) {
    for (const Known& known : kTypes)
        if (known.type == type) return known.dtype;
    std::string names;
    for (const Known& known : kTypes)
        names += concat(names.empty() ? "" : ", ", name_of(known.dtype));
    fail(where, ": expected a ggml type of ", names, ", found number ", type);
}

uint32_t ggml_type(Dtype dtype) {
    for (const Known& known : kTypes)
        if (known.dtype == dtype) return known.type;
    fail("expected a type that ggml has, found ", name_of(dtype));
}

}  // namespace hark
