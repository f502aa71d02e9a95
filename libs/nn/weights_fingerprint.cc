#include <algorithm>
#include <vector>

#include "kernels/runtime/transfer.h"
#include "nn/weights.h"

namespace hark {

void WeightStore::add_to(Fingerprint& fingerprint, Context& ctx) const {
    constexpr size_t kSampled = 4096;  // bytes, from a tensor's beginning
    std::vector<std::byte> values(kSampled);
    for (const Tensor& tensor : tensors_) {
        fingerprint.add(tensor.dtype);
        for (int i = 0; i < tensor.rank; ++i) fingerprint.add(tensor.dim(i));
        const size_t bytes = std::min(tensor.bytes(), kSampled);
        read_bytes(ctx, values.data(), tensor.data, bytes);
        fingerprint.add(values.data(), bytes);
    }
}

}  // namespace hark
