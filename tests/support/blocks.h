// Quantised weights of random bits, whose scales are small numbers.
#pragma once

#include <cstring>
#include <string>
#include <vector>

#include "core/half.h"
#include "kernels/quant/quantize.h"
#include "support/recordings.h"

namespace hark::test {

// Where a block's f16 are.
inline std::vector<size_t> places_of_halves(Dtype dtype) {
    switch (dtype) {
        case Dtype::q4_1:
        case Dtype::q5_1:
        case Dtype::q4_k:
        case Dtype::q5_k:
            return {0, 2};
        case Dtype::q2_k:
            return {80, 82};
        case Dtype::q3_k:
            return {108};
        case Dtype::q6_k:
            return {208};
        case Dtype::mxfp4:
            return {};
        default:
            return {0};
    }
}

class RandomBlocks {
  public:
    RandomBlocks(Dtype dtype, int64_t n, int64_t k, uint64_t seed) : dtype_(dtype), n_(n), k_(k) {
        SplitMix64 generator(seed);
        bytes_.resize(row_bytes(dtype, k) * static_cast<size_t>(n));
        for (uint8_t& byte : bytes_) byte = static_cast<uint8_t>(generator.draw() >> 32);
        const size_t block = static_cast<size_t>(block_size(dtype).bytes);
        for (size_t begin = 0; begin < bytes_.size(); begin += block)
            for (const size_t place : places_of_halves(dtype)) {
                const float scale = static_cast<float>(generator.draw() >> 40) * 0x1p-24f - 0.5f;
                const f16_t half = to_f16(scale / (block_size(dtype).values == 256 ? 1000 : 40));
                std::memcpy(bytes_.data() + begin + place, &half.bits, 2);
            }
        for (size_t begin = 0; dtype == Dtype::mxfp4 && begin < bytes_.size(); begin += block)
            bytes_[begin] = static_cast<uint8_t>(115 + bytes_[begin] % 8);  // the exponent
    }
    // (N, K); lives as long as this does.
    Tensor tensor() { return Tensor(bytes_.data(), dtype_, {n_, k_}); }
    std::vector<float> values() const {
        std::vector<float> values(static_cast<size_t>(n_ * k_));
        dequantize(values.data(), bytes_.data(), dtype_, n_ * k_);
        return values;
    }
    std::vector<uint8_t>& bytes() { return bytes_; }

  private:
    Dtype dtype_;
    int64_t n_, k_;
    std::vector<uint8_t> bytes_;
};

}  // namespace hark::test
