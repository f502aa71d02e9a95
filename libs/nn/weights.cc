#include "nn/weights.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <span>
#include <vector>

#include "core/error.h"
#include "core/half.h"
#include "kernels/checks.h"
#include "kernels/cpu/cpu.h"
#include "kernels/quant/fp8_rows.h"
#include "nn/finite_weights.h"
#include "nn/stored_rows.h"
#include "nn/weight_pieces.h"

namespace hark {
namespace {

using Kind = WeightPrecision;

// Reads rows [first, first + count) of one part, (count, size) floats.
using ReadRows = std::function<void(int64_t first, int64_t count, float* rows)>;

void check_stored(const char* what, const Tensor& stored, int rank) {
    require(stored.rank == rank && is_float(stored.dtype) && (stored || stored.size() == 0), what,
            ": expected a tensor of ", rank, rank == 1 ? " dimension" : " dimensions",
            " of f32, f16 or bf16, found ", stored);
}

void check_fits_f16(std::span<const float> row) {
    const auto fits = [](float value) { return std::abs(value) < 65520.0f; };
    int beyond = 0;
    for (const float value : row) beyond |= !fits(value);
    if (!beyond) return;
    fail("weights: found ", *std::find_if_not(row.begin(), row.end(), fits),
         ", which is beyond f16; use f32 or bf16");
}

Dtype dtype_of_kind(Kind kind) {
    switch (kind) {
        case Kind::f16:
        case Kind::quantized_or_f16:
            return Dtype::f16;
        case Kind::bf16:
        case Kind::quantized_or_bf16:
            return Dtype::bf16;
        case Kind::int8:
            return Dtype::i8;
        case Kind::fp8:
            return Dtype::fp8;
        default:
            return Dtype::f32;
    }
}

bool keeps_blocks(Kind kind) {
    return kind == Kind::as_stored || kind == Kind::quantized_or_f16 ||
           kind == Kind::quantized_or_bf16;
}

bool are_of_one_quantized_type(const std::vector<Tensor>& stored) {
    return std::all_of(stored.begin(), stored.end(), [&](const Tensor& tensor) {
        return is_quantized(tensor.dtype) && tensor.dtype == stored.begin()->dtype;
    });
}

// The n matrices of one shape that are stacked in `all`.
std::vector<Matrix> split_stacked(const Matrix& all, int64_t n) {
    std::vector<Matrix> each;
    const int64_t rows = all.values.dim(0) / n;
    for (int64_t i = 0; i < n; ++i) each.push_back(rows_of(all, i * rows, (i + 1) * rows));
    return each;
}

// The length along `dim` that all of the matrices share; `what`: along which they are stacked.
int64_t common_length(const char* what, const std::vector<Tensor>& stored, int dim) {
    require(stored.size() > 0, "weights: expected a tensor to take ", what, " from, found none");
    const int64_t length = stored.begin()->shape[dim];
    for (const Tensor& tensor : stored) {
        if (dim == 0 || !is_quantized(tensor.dtype)) check_stored("weights", tensor, 2);
        require(tensor.dim(dim) == length, "weights: expected ", what, " of ", length,
                " to stack, found ", tensor);
    }
    return length;
}

}  // namespace

// Consecutive rows of a matrix.
struct WeightStore::Part {
    int64_t rows;
    ReadRows read;
    Dtype dtype;    // as it is stored
    Tensor stored;  // the rows in the final layout, in their stored type; or none
};

int64_t WeightStore::rows_in(const std::vector<Part>& parts) {
    int64_t rows = 0;
    for (const Part& part : parts) rows += part.rows;
    return rows;
}

Matrix rows_of(const Matrix& all, int64_t begin, int64_t end) {
    return {all.values.slice(begin, end), all.scales ? all.scales.slice(begin, end) : Tensor(),
            all.exact_x};
}

Tensor zeros_of(int64_t n) { return Tensor(nullptr, Dtype::f32, {n}); }

// Rows [first, first + count) of a part, from row `at` of the matrix on.
struct WeightStore::Rows {
    const Part& part;
    int64_t first, count, at;
};

// All rows of the parts, `most` at a time.
std::vector<WeightStore::Rows> WeightStore::pieces_of(const std::vector<Part>& parts,
                                                      int64_t most) {
    std::vector<Rows> pieces;
    int64_t at = 0;
    for (const Part& part : parts) {
        for (int64_t first = 0; first < part.rows; first += most)
            pieces.push_back({part, first, std::min(most, part.rows - first), at + first});
        at += part.rows;
    }
    return pieces;
}

// Calls use(n, row) for row n of the matrix that consists of the parts, in any order, on the
// threads.
void WeightStore::for_rows(const std::vector<Part>& parts, int64_t size,
                           const std::function<void(int64_t, std::span<const float>)>& use) const {
    const std::vector<Rows> pieces = pieces_of(parts, kRowsAtOnce);
    std::vector<std::vector<float>> buffers(static_cast<size_t>(std::max(threads_, 1)));
    for_pieces(threads_, std::ssize(pieces), [&](int64_t worker, int64_t i) {
        const auto& [part, first, count, at] = pieces[static_cast<size_t>(i)];
        std::vector<float>& rows = buffers[static_cast<size_t>(worker)];
        rows.resize(static_cast<size_t>(kRowsAtOnce * size));
        part.read(first, count, rows.data());
        for (int64_t k = 0; k < count; ++k)
            use(at + k, {rows.data() + k * size, static_cast<size_t>(size)});
    });
}

// The type of `as_stored`: bf16 if all parts have it, else f16 if all values fit it
// exactly, else f32.
WeightPrecision WeightStore::resolve_precision(const std::vector<Part>& parts, int64_t size) const {
    const auto are = [&](Dtype dtype) {
        return std::all_of(parts.begin(), parts.end(),
                           [&](const Part& part) { return part.dtype == dtype; });
    };
    if (are(Dtype::bf16)) return Kind::bf16;
    if (are(Dtype::f16)) return Kind::f16;
    std::atomic<bool> fits = true;
    for_rows(parts, size, [&](int64_t, std::span<const float> row) {
        if (!std::all_of(row.begin(), row.end(), fits_f16)) fits = false;
    });
    return fits ? Kind::f16 : Kind::f32;
}

// Whether the kernels can read the tensor where it is.
bool WeightStore::is_usable_in_place(const Tensor& stored) const {
    if (memory_.device != Device::cpu || !is_mapped(stored)) return false;
    const size_t aligned = is_quantized(stored.dtype) ? 1 : size_of(stored.dtype);
    return reinterpret_cast<uintptr_t>(stored.data) % aligned == 0;
}

bool WeightStore::stays_in_place(const Tensor& stored) const {
    if (!is_usable_in_place(stored)) return false;
    if (is_quantized(stored.dtype)) return keeps_blocks(precision_);
    // as_stored: f32 becomes f16 where all values fit it.
    if (precision_ == Kind::as_stored) return stored.dtype != Dtype::f32;
    return dtype_of_kind(precision_) == stored.dtype;
}

bool WeightStore::are_stored(const std::vector<Part>& parts, Dtype dtype) {
    return std::all_of(parts.begin(), parts.end(),
                       [&](const Part& part) { return part.stored && part.stored.dtype == dtype; });
}

// The parts, of one type, stacked unchanged; one that is usable in place is only checked.
Matrix WeightStore::as_stored(const std::vector<Part>& parts, int64_t size) {
    const Tensor& stored = parts.front().stored;
    const Dtype dtype = stored.dtype;
    const bool in_place = parts.size() == 1 && is_usable_in_place(stored);
    const Tensor values =
        in_place ? stored : take(memory_, Tensor(nullptr, dtype, {rows_in(parts), size}));
    auto* to = static_cast<std::byte*>(values.data);
    const auto bytes = static_cast<int64_t>(row_bytes(dtype, size));
    const int64_t most = std::max(kPieceBytes / std::max(bytes, int64_t{1}), int64_t{1});
    std::vector<Piece> pieces;
    for (const auto& [part, first, count, at] : pieces_of(parts, most))
        pieces.push_back({in_place ? nullptr : to + at * bytes,
                          static_cast<const std::byte*>(part.stored.data) + first * bytes,
                          static_cast<size_t>(count * bytes), dtype, count * size,
                          memory_.device != Device::cpu && is_mapped(part.stored)});
    copy(pieces);
    if (in_place) {
        bytes_ += values.bytes();
        tensors_.push_back(values);
    }
    return {values, {}, false};
}

Matrix WeightStore::converted(const std::vector<Part>& parts, int64_t size, WeightPrecision kind) {
    const bool keeps = kind == Kind::as_stored;
    if (keeps) kind = resolve_precision(parts, size);
    if (kind == Kind::quantized_or_f16) kind = Kind::f16;
    if (kind == Kind::quantized_or_bf16) kind = Kind::bf16;
    const Dtype dtype = dtype_of_kind(kind);
    if (are_stored(parts, dtype)) {
        Matrix matrix = as_stored(parts, size);
        matrix.exact_x = keeps;
        return matrix;
    }
    const int64_t rows = rows_in(parts);
    Matrix matrix;
    matrix.values = empty(dtype, {rows, size});
    if (has_row_scales(dtype)) matrix.scales = empty(Dtype::f32, {rows});
    auto* to = static_cast<std::byte*>(matrix.values.data);
    const CpuKernels& cpu = cpu_kernels();
    for_rows(parts, size, [&](int64_t n, std::span<const float> row) {
        check_finite(row);
        if (kind == Kind::int8) {
            matrix.scales.as<float>()[n] =
                cpu.quantize(matrix.values.as<int8_t>() + n * size, row.data(), size);
            return;
        }
        if (kind == Kind::fp8) {
            matrix.scales.as<float>()[n] =
                quantize_fp8(matrix.values.as<fp8_t>() + n * size, row.data(), size);
            return;
        }
        if (kind == Kind::f16) check_fits_f16(row);
        cpu.narrow(to + n * size * static_cast<int64_t>(size_of(dtype)), dtype, row.data(), size);
    });
    return {to_device(matrix.values), to_device(matrix.scales), keeps};
}

Matrix WeightStore::matrix(const std::vector<Tensor>& stored, WeightPrecision precision) {
    const int64_t size = common_length("rows", stored, 1);
    std::vector<Part> parts;
    for (const Tensor& tensor : stored)
        parts.push_back({tensor.dim(0),
                         [tensor](int64_t first, int64_t count, float* rows) {
                             widen_rows(rows, tensor, first, count);
                         },
                         tensor.dtype, tensor});
    if (keeps_blocks(precision) && are_of_one_quantized_type(stored)) return as_stored(parts, size);
    return converted(parts, size, precision);
}

std::vector<Matrix> WeightStore::matrices(const std::vector<Tensor>& stored) {
    if (memory_.device == Device::cpu) {
        std::vector<Matrix> each;
        for (const Tensor& part : stored) each.push_back(matrix({part}));
        return each;
    }
    return split_stacked(matrix(stored), std::ssize(stored));
}

std::vector<Matrix> WeightStore::transposed_matrices(const std::vector<Tensor>& stored) {
    return split_stacked(transposed(stored), std::ssize(stored));
}

Matrix WeightStore::transposed(const std::vector<Tensor>& stored, WeightPrecision precision) {
    std::vector<std::vector<float>> widened;  // those that were quantised
    std::vector<Tensor> numbers;
    for (const Tensor& tensor : stored)
        numbers.push_back(is_quantized(tensor.dtype) ? widened_copy(tensor, widened) : tensor);
    const int64_t size = common_length("columns", numbers, 0);
    std::vector<Part> parts;
    for (const Tensor& tensor : numbers)
        parts.push_back({tensor.dim(1),
                         [tensor](int64_t first, int64_t count, float* rows) {
                             widen_columns(rows, tensor, first, count);
                         },
                         tensor.dtype,
                         {}});
    return converted(parts, size, precision);
}

Matrix WeightStore::convolution(Tensor stored, WeightPrecision precision) {
    check_stored("weights", stored, 3);
    const int64_t channels = stored.dim(1), taps = stored.dim(2), size = channels * taps;
    const Tensor flat(stored.data, stored.dtype, {stored.dim(0), size});
    const auto read = [&](int64_t first, int64_t count, float* rows) {
        std::vector<float> row(static_cast<size_t>(size));
        for (int64_t n = first; n < first + count; ++n, rows += size) {
            widen_rows(row.data(), flat, n, 1);
            for (int64_t c = 0; c < channels; ++c)
                for (int64_t tap = 0; tap < taps; ++tap)
                    rows[tap * channels + c] = row[static_cast<size_t>(c * taps + tap)];
        }
    };
    return converted({{stored.dim(0), read, stored.dtype, {}}}, size, precision);
}

Tensor WeightStore::vector(const std::vector<Tensor>& parts, float offset) {
    int64_t size = 0;
    for (const Tensor& part : parts) {
        if (part) check_stored("weights", part, 1);
        require(part.rank == 1, "weights: expected a vector, found ", part);
        size += part.dim(0);
    }
    Tensor joined = empty(Dtype::f32, {size});
    float* to = joined.as<float>();
    for (const Tensor& part : parts) {
        if (part)
            cpu_kernels().widen(to, part.data, part.dtype, part.dim(0));
        else
            std::fill_n(to, part.dim(0), 0.0f);
        for (int64_t i = 0; offset != 0 && i < part.dim(0); ++i) to[i] += offset;
        check_finite({to, static_cast<size_t>(part.dim(0))});
        to += part.dim(0);
    }
    return to_device(joined);
}

Tensor WeightStore::table(Tensor stored) {
    require(stored && is_float(stored.dtype),
            "weights: expected a table of f32, f16 or bf16, found ", stored);
    Tensor copy = empty(Dtype::f32, {stored.size()});
    cpu_kernels().widen(copy.as<float>(), stored.data, stored.dtype, stored.size());
    check_finite({copy.as<float>(), static_cast<size_t>(stored.size())});
    copy.rank = stored.rank;
    copy.shape = stored.shape;
    return to_device(copy);
}

Tensor WeightStore::empty(Dtype dtype, std::initializer_list<int64_t> shape) {
    return take(cpu_memory(), Tensor(nullptr, dtype, shape));
}

Tensor WeightStore::take(const MemorySource& memory, Tensor view) {
    view.data = memory.allocate(std::max<size_t>(view.bytes(), 1));
    view.device = memory.device;
    blocks_.emplace_back(view.data, memory.release);
    tensors_.push_back(view);
    bytes_ += view.bytes();
    return view;
}

}  // namespace hark
