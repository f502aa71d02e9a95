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

// Types that are not read, by their names.
struct Unread {
    uint32_t type;
    const char* name;
};
constexpr Unread kUnread[] = {
    {16, "iq2_xxs"}, {17, "iq2_xs"}, {18, "iq3_xxs"}, {19, "iq1_s"}, {21, "iq3_s"}, {22, "iq2_s"},
    {29, "iq1_m"},   {34, "tq1_0"},  {35, "tq2_0"},   {40, "nvfp4"}, {41, "q1_0"},
};

std::string text_of_type(uint32_t type) {
    for (const Unread& unread : kUnread)
        if (unread.type == type) return concat(unread.name, " (", type, ")");
    return concat("number ", type);
}

}  // namespace

Dtype ggml_dtype(uint32_t type, const std::string& where) {
    for (const Known& known : kTypes)
        if (known.type == type) return known.dtype;
    std::string names;
    for (const Known& known : kTypes)
        names += concat(names.empty() ? "" : ", ", name_of(known.dtype));
    fail(where, ": expected a ggml type of ", names, ", found ", text_of_type(type));
}

uint32_t ggml_type(Dtype dtype) {
    for (const Known& known : kTypes)
        if (known.dtype == dtype) return known.type;
    fail("expected a type that ggml has, found ", name_of(dtype));
}

}  // namespace hark
