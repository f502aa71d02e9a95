// Runs what may refuse its input.
#pragma once

#include "core/error.h"

namespace hark::fuzz {

template <class F>
void attempt(const F& read) {
    try {
        read();
    } catch (const Error&) {
    }
}

}  // namespace hark::fuzz
