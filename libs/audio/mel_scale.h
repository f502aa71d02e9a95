// Slaney's mel scale: linear below 1000 Hz, which is mel 15, logarithmic above.
// Source: Slaney, Auditory Toolbox, 1998; librosa.mel_to_hz.
#pragma once

#include <cmath>

namespace hark {

inline double mel_to_hz(double mel) {
    return mel < 15 ? 200.0 / 3 * mel : 1000 * std::exp(std::log(6.4) / 27 * (mel - 15));
}

inline double hz_to_mel(double hz) {
    return hz < 1000 ? hz * 3 / 200 : 15 + 27 / std::log(6.4) * std::log(hz / 1000);
}

}  // namespace hark
