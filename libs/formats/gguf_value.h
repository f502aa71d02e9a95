// Numbers that stand for the types of a GGUF file's values. Source: ggml's docs/gguf.md.
#pragma once

#include <cstdint>

namespace hark::gguf_value {

enum Type : uint32_t { u8, i8, u16, i16, u32, i32, f32, boolean, text, array, u64, i64, f64 };

}  // namespace hark::gguf_value
