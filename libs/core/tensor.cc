#include "core/tensor.h"

#include <iterator>

#include "core/error.h"

namespace hark {

namespace {

struct Kind {
    const char* name;
    const char* safetensors;  // nullptr: the format has none of it
    BlockSize block;
};

constexpr Kind kDtypes[] = {
    {"f32", "F32", {1, 4}}, {"f16", "F16", {1, 2}},     {"bf16", "BF16", {1, 2}},
    {"int8", "I8", {1, 1}}, {"fp8", "F8_E4M3", {1, 1}}, {"i32", "I32", {1, 4}},
    {"i64", "I64", {1, 8}}, {"u8", "U8", {1, 1}},
#define HARK_QUANTIZED(name, block, values, bytes, ...) {#name, nullptr, {values, bytes}},
#include "core/quantized_types.def"
#undef HARK_QUANTIZED
};

const Kind& kind_of(Dtype dtype) { return kDtypes[static_cast<size_t>(dtype)]; }

}  // namespace

BlockSize block_size(Dtype dtype) { return kind_of(dtype).block; }

size_t row_bytes(Dtype dtype, int64_t n) {
    const BlockSize block = block_size(dtype);
    require(n % block.values == 0, "expected whole blocks of ", block.values, " values of ",
            name_of(dtype), ", found ", n);
    return static_cast<size_t>(n / block.values * block.bytes);
}

size_t size_of(Dtype dtype) {
    require(!is_quantized(dtype), name_of(dtype), " has blocks, and no single values");
    return static_cast<size_t>(block_size(dtype).bytes);
}

const char* name_of(Dtype dtype) { return kind_of(dtype).name; }

Dtype dtype_named(std::string_view name) {
    for (size_t i = 0; i < std::size(kDtypes); ++i)
        if (name == kDtypes[i].name) return static_cast<Dtype>(i);
    fail("no type is named '", name, "'");
}

const char* safetensors_name(Dtype dtype) {
    require(!is_quantized(dtype), "safetensors has no ", name_of(dtype));
    return kind_of(dtype).safetensors;
}

Tensor::Tensor(void* data, Dtype dtype, std::initializer_list<int64_t> dims, Device device)
    : data(data), dtype(dtype), device(device), rank(static_cast<int>(dims.size())) {
    require(rank <= kMaxRank, "a tensor has at most ", kMaxRank, " dimensions, found ", rank);
    int i = 0;
    for (int64_t dim : dims) shape[i++] = dim;
}

int64_t Tensor::size() const {
    int64_t n = 1;
    for (int i = 0; i < rank; ++i) n *= shape[i];
    return n;
}

int64_t Tensor::rows() const {
    int64_t n = 1;
    for (int i = 0; i + 1 < rank; ++i) n *= shape[i];
    return n;
}

size_t Tensor::bytes() const {
    return rank == 0 ? row_bytes(dtype, 1)
                     : static_cast<size_t>(rows()) * row_bytes(dtype, shape[rank - 1]);
}

Tensor Tensor::slice(int64_t begin, int64_t end) const {
    require(rank > 0 && 0 <= begin && begin <= end && end <= shape[0], "slice ", begin, "..", end,
            " of ", *this);
    Tensor part = *this;
    part.shape[0] = end - begin;
    const size_t stride = shape[0] == 0 ? 0 : bytes() / static_cast<size_t>(shape[0]);
    part.data = static_cast<std::byte*>(data) + static_cast<size_t>(begin) * stride;
    return part;
}

Tensor Tensor::reshaped(std::initializer_list<int64_t> dims) const {
    Tensor view(data, dtype, dims, device);
    require(view.size() == size(), "cannot see ", *this, " as ", view);
    return view;
}

void Tensor::fail_dtype(Dtype wanted) const {
    fail("expected ", name_of(wanted), ", found ", *this);
}

std::string describe(const Tensor& tensor) {
    std::string text = concat(name_of(tensor.dtype), " (");
    for (int i = 0; i < tensor.rank; ++i) text += concat(i ? ", " : "", tensor.shape[i]);
    return text + ")";
}

}  // namespace hark
