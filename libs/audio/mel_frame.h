// The arithmetic of one log-mel frame, step by step. The CPU's vectors (log_mel.cc) and the GPU's
// threads (log_mel.cu) run this one source in double, without fused multiply-adds, so that both
// give the same bits.
//
// 400 windowed real samples are read as 200 complex ones (even, odd). Their DFT is
// three stages of radix 5, 5 and 8 in Stockham's order, which needs no bit reversal.
// Source: Cooley and Tukey 1965; for the packing: Press et al., Numerical Recipes, 12.3.
#pragma once

#include <cstdint>
#include <cstring>

#include "core/host_device.h"

namespace hark::mel_frame {

inline constexpr int kWindow = 400;  // n_fft
inline constexpr int kHop = 160;     // hop_length
inline constexpr int kPoints = kWindow / 2;
inline constexpr int kBins = kPoints + 1;
inline constexpr int kMostMels = 128;
inline constexpr double kLeast = 1e-10;  // power

struct Root {
    double re, im;
};

// No pointers, so that it can be copied to a GPU.
struct Tables {
    double window[kWindow];
    Root roots[kWindow];  // exp(-2 pi i k / 400)
    int32_t n_mels;
    // Filter m: weights[offset[m]] to weights[offset[m + 1]], for the bins from begin[m] on.
    int32_t begin[kMostMels], offset[kMostMels + 1];
    double weights[2 * kBins];  // a bin is in at most two triangles
};

// Real is double, or a vector of doubles, one per frame.
template <class Real>
struct Complex {
    Real re, im;
};

template <class Real>
HARK_HOST_DEVICE void turn(Complex<Real>& x, const Root& by) {
    const Real re = x.re * by.re - x.im * by.im;
    x.im = x.re * by.im + x.im * by.re;
    x.re = re;
}

// x (5) = its DFT.
template <class Real>
HARK_HOST_DEVICE void dft5(Complex<Real>* x) {
    constexpr double c1 = 0.30901699437494742, c2 = -0.80901699437494742;  // cos(2 pi k / 5)
    constexpr double s1 = 0.95105651629515357, s2 = 0.58778525229247313;   // sin
    const Complex<Real> a = {x[1].re + x[4].re, x[1].im + x[4].im};
    const Complex<Real> b = {x[2].re + x[3].re, x[2].im + x[3].im};
    const Complex<Real> c = {x[1].re - x[4].re, x[1].im - x[4].im};
    const Complex<Real> d = {x[2].re - x[3].re, x[2].im - x[3].im};
    const Complex<Real> m1 = {x[0].re + a.re * c1 + b.re * c2, x[0].im + a.im * c1 + b.im * c2};
    const Complex<Real> m2 = {x[0].re + a.re * c2 + b.re * c1, x[0].im + a.im * c2 + b.im * c1};
    const Complex<Real> n1 = {c.re * s1 + d.re * s2, c.im * s1 + d.im * s2};
    const Complex<Real> n2 = {c.re * s2 - d.re * s1, c.im * s2 - d.im * s1};
    x[0] = {x[0].re + a.re + b.re, x[0].im + a.im + b.im};
    x[1] = {m1.re + n1.im, m1.im - n1.re};
    x[2] = {m2.re + n2.im, m2.im - n2.re};
    x[3] = {m2.re - n2.im, m2.im + n2.re};
    x[4] = {m1.re - n1.im, m1.im + n1.re};
}

// The DFT of x[0], x[2], x[4], x[6], in place.
template <class Real>
HARK_HOST_DEVICE void dft4(Complex<Real>* x) {
    const Complex<Real> a = {x[0].re + x[4].re, x[0].im + x[4].im};
    const Complex<Real> b = {x[0].re - x[4].re, x[0].im - x[4].im};
    const Complex<Real> c = {x[2].re + x[6].re, x[2].im + x[6].im};
    const Complex<Real> d = {x[2].re - x[6].re, x[2].im - x[6].im};
    x[0] = {a.re + c.re, a.im + c.im};
    x[2] = {b.re + d.im, b.im - d.re};
    x[4] = {a.re - c.re, a.im - c.im};
    x[6] = {b.re - d.im, b.im + d.re};
}

// to (8) = the DFT of x (8), which is overwritten.
template <class Real>
HARK_HOST_DEVICE void dft8(Complex<Real>* x, Complex<Real>* to) {
    constexpr double h = 0.70710678118654752;
    dft4(x);
    dft4(x + 1);
    const Complex<Real> odd[4] = {x[1],
                                  {(x[3].re + x[3].im) * h, (x[3].im - x[3].re) * h},
                                  {x[5].im, -x[5].re},
                                  {(x[7].im - x[7].re) * h, (x[7].re + x[7].im) * -h}};
    for (int k = 0; k < 4; ++k) {
        to[k] = {x[2 * k].re + odd[k].re, x[2 * k].im + odd[k].im};
        to[k + 4] = {x[2 * k].re - odd[k].re, x[2 * k].im - odd[k].im};
    }
}

// One butterfly of a stage that takes sequences of kLength points, kStride apart, to five times
// shorter ones; load(i) gives point i. There are 40 of them.
template <int kLength, int kStride, class Real, class Load>
HARK_HOST_DEVICE void stage5(int item, const Root* roots, const Load& load, Complex<Real>* to) {
    constexpr int kPart = kLength / 5;
    const int p = item / kStride, q = item % kStride;
    Complex<Real> x[5];
    for (int j = 0; j < 5; ++j) x[j] = load(q + kStride * (p + kPart * j));
    dft5(x);
    for (int k = 1; k < 5; ++k) turn(x[k], roots[kWindow / kLength * k * p]);
    for (int k = 0; k < 5; ++k) to[q + kStride * (5 * p + k)] = x[k];
}
inline constexpr int kItems5 = kPoints / 5;

// One of the 25 butterflies of the last stage.
template <class Real>
HARK_HOST_DEVICE void stage8(int item, const Complex<Real>* from, Complex<Real>* to) {
    Complex<Real> x[8], y[8];
    for (int j = 0; j < 8; ++j) x[j] = from[item + 25 * j];
    dft8(x, y);
    for (int k = 0; k < 8; ++k) to[item + 25 * k] = y[k];
}
inline constexpr int kItems8 = kPoints / 8;

// Four times the power of the bins k and 200 - k, for k up to 100: z (200) is the DFT of the
// complex samples. The even samples' part is (z[k] + conj z[-k]) / 2, the odd ones' (z[k] - conj
// z[-k]) / 2i.
template <class Real>
HARK_HOST_DEVICE void power_of(int k, const Complex<Real>* z, const Root& root, Real* power) {
    const Complex<Real> a = z[k], b = z[(kPoints - k) % kPoints];
    const Complex<Real> even = {a.re + b.re, a.im - b.im};
    Complex<Real> odd = {a.im + b.im, b.re - a.re};
    turn(odd, root);
    const Complex<Real> less = {even.re - odd.re, even.im - odd.im};
    const Complex<Real> more = {even.re + odd.re, even.im + odd.im};
    power[kPoints - k] = less.re * less.re + less.im * less.im;
    power[k] = more.re * more.re + more.im * more.im;
}
inline constexpr int kItemsPower = kPoints / 2 + 1;

// log10 of x > 0 to about 1e-15. Bits is uint64_t, or a vector as long as Real. The
// logarithm of a mantissa within [sqrt 1/2, sqrt 2) is 2 artanh((m - 1) / (m + 1)), as its series.
template <class Real, class Bits>
HARK_HOST_DEVICE Real log10_of(const Real& x) {
    constexpr uint64_t kRootHalf = 0x3fe6a09e667f3bcd, kBias = uint64_t{1023} << 52;
    constexpr uint64_t kTwo52 = 0x4330000000000000;  // the bits of 2^52: small integers are below
    constexpr double k2 = 0.86858896380650365;       // 2 / ln 10
    Bits bits;
    std::memcpy(&bits, &x, sizeof x);
    const Bits exponent = (bits - kRootHalf + kBias) >> 52;
    const Bits low = bits - (exponent << 52) + kBias, high = exponent | kTwo52;
    Real m, e;
    std::memcpy(&m, &low, sizeof m);
    std::memcpy(&e, &high, sizeof e);
    const Real s = (m - 1.0) / (m + 1.0), t = s * s;
    Real sum = t * (k2 / 17) + k2 / 15;
    sum = sum * t + k2 / 13;
    sum = sum * t + k2 / 11;
    sum = sum * t + k2 / 9;
    sum = sum * t + k2 / 7;
    sum = sum * t + k2 / 5;
    sum = sum * t + k2 / 3;
    sum = sum * t + k2;
    return (e - (4503599627370496.0 + 1023)) * 0.30102999566398120 + s * sum;
}

// log10 of the power in filter m, at least kLeast.
template <class Real, class Bits>
HARK_HOST_DEVICE Real log_mel_of(int m, const Tables& tables, const Real* power) {
    const int begin = tables.offset[m], end = tables.offset[m + 1];
    const Real* from = power + tables.begin[m];
    Real sum = {};
    for (int i = begin; i < end; ++i) sum += from[i - begin] * tables.weights[i];
    const Real least = Real{} + kLeast;
    return log10_of<Real, Bits>(sum > least ? sum : least);
}

}  // namespace hark::mel_frame
