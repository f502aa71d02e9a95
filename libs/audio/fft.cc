#include "audio/fft.h"

#include <cmath>
#include <numbers>

namespace hark {

PowerSpectrum400::Twiddle PowerSpectrum400::root(int index, int of) {
    const double angle = -2 * std::numbers::pi * (index % of) / of;
    return {std::cos(angle), std::sin(angle)};
}

PowerSpectrum400::PowerSpectrum400() {
    for (int k = 0; k < kBins; ++k) roots_.push_back(root(k, kSize));
}

template <int kRadix>
PowerSpectrum400::Stage<kRadix>::Stage(int length, int stride)
    : part(length / kRadix), stride(stride) {
    for (int p = 0; p < part; ++p)
        for (int k = 0; k < kRadix; ++k)
            for (int j = 0; j < kRadix; ++j) matrices.push_back(root(k * (p + part * j), length));
}

template <int kRadix>
void PowerSpectrum400::Stage<kRadix>::operator()(const ComplexPair* from, ComplexPair* to) const {
    for (int p = 0; p < part; ++p) {
        const Twiddle* matrix = matrices.data() + p * kRadix * kRadix;
        for (int q = 0; q < stride; ++q) {
            ComplexPair x[kRadix];
            for (int j = 0; j < kRadix; ++j) x[j] = from[q + stride * (p + part * j)];
            for (int k = 0; k < kRadix; ++k) {
                const Twiddle* row = matrix + k * kRadix;
                ComplexPair sum = {x[0].re * row[0].re - x[0].im * row[0].im,
                                   x[0].re * row[0].im + x[0].im * row[0].re};
                for (int j = 1; j < kRadix; ++j) {
                    sum.re += x[j].re * row[j].re - x[j].im * row[j].im;
                    sum.im += x[j].re * row[j].im + x[j].im * row[j].re;
                }
                to[q + stride * (kRadix * p + k)] = sum;
            }
        }
    }
}

void PowerSpectrum400::operator()(const Pair* samples, Pair* power, Work& work) const {
    constexpr int kHalf = kSize / 2;
    for (int n = 0; n < kHalf; ++n) work.a[n] = {samples[2 * n], samples[2 * n + 1]};
    first_(work.a, work.b);
    second_(work.b, work.a);
    third_(work.a, work.b);
    const ComplexPair* z = work.b;
    for (int k = 0; k <= kHalf; ++k) {
        // Even samples' spectrum E = (z[k] + conj z[-k]) / 2, odd ones' O = (z[k] - conj z[-k]) /
        // 2i.
        const ComplexPair& a = z[k % kHalf];
        const ComplexPair& b = z[(kHalf - k) % kHalf];
        const Twiddle w = roots_[static_cast<size_t>(k)];
        const Pair even_re = 0.5 * (a.re + b.re), even_im = 0.5 * (a.im - b.im);
        const Pair odd_re = 0.5 * (a.im + b.im), odd_im = 0.5 * (b.re - a.re);
        const Pair re = even_re + (odd_re * w.re - odd_im * w.im);
        const Pair im = even_im + (odd_re * w.im + odd_im * w.re);
        power[k] = re * re + im * im;
    }
}

}  // namespace hark
