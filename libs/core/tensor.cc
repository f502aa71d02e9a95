#include "core/tensor.h"

#include <ostream>

#include "core/error.h"

namespace hark {

size_t size_of(Dtype dtype) {
    switch (dtype) {
        case Dtype::i8:
        case Dtype::u8:
            return 1;
        case Dtype::f16:
        case Dtype::bf16:
            return 2;
        case Dtype::f32:
        case Dtype::i32:
            return 4;
        case Dtype::i64:
            return 8;
    }
    fail("unknown dtype ", static_cast<int>(dtype));
}

const char* name_of(Dtype dtype) {
    constexpr const char* kNames[] = {"f32", "f16", "bf16", "int8", "i32", "i64", "u8"};
    return kNames[static_cast<int>(dtype)];
}

const char* safetensors_name(Dtype dtype) {
    constexpr const char* kNames[] = {"F32", "F16", "BF16", "I8", "I32", "I64", "U8"};
    return kNames[static_cast<int>(dtype)];
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

std::ostream& operator<<(std::ostream& out, const Tensor& tensor) {
    out << name_of(tensor.dtype) << " (";
    for (int i = 0; i < tensor.rank; ++i) out << (i ? ", " : "") << tensor.shape[i];
    return out << ")";
}

std::string describe(const Tensor& tensor) { return concat(tensor); }

}  // namespace hark
