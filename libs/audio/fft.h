// The power spectrum of 400 real samples, two frames side by side.
#pragma once

#include <vector>

namespace hark {

// Two frames, one in each half of a 128-bit register: every processor of the supported kinds has
// these, and neither half ever sees the other, so a frame's bits do not depend on its neighbour.
typedef double Pair __attribute__((vector_size(16)));

struct ComplexPair {
    Pair re, im;
};

// A transform of 400 real samples by a complex one of 200 points in stages of radix 5, 5 and 8
// (Stockham's order: no bit reversal). Source: Cooley and Tukey 1965; for the packing of even and
// odd samples: Press et al., Numerical Recipes, 12.3.
class PowerSpectrum400 {
  public:
    static constexpr int kSize = 400;
    static constexpr int kBins = 201;

    PowerSpectrum400();

    // power (201) = |DFT of samples (400)|^2. `work` is scratch that may be used again.
    struct Work {
        ComplexPair a[kSize / 2], b[kSize / 2];
    };
    void operator()(const Pair* samples, Pair* power, Work& work) const;

  private:
    struct Twiddle {
        double re, im;
    };
    // The stage that takes sequences of `length` points, `stride` apart, to kRadix shorter ones.
    template <int kRadix>
    struct Stage {
        int part, stride;               // part = length / kRadix
        std::vector<Twiddle> matrices;  // (part, kRadix, kRadix): small DFT and twiddle in one
        Stage(int length, int stride);
        void operator()(const ComplexPair* from, ComplexPair* to) const;
    };
    static Twiddle root(int index, int of);  // exp(-2 pi i index / of)

    Stage<5> first_{200, 1};
    Stage<5> second_{40, 5};
    Stage<8> third_{8, 25};
    std::vector<Twiddle> roots_;  // (201) of 400
};

}  // namespace hark
