#include "support/formula_weights.h"

namespace hark::test {

std::vector<float> Formula::values(size_t count) const {
    std::vector<float> values(count);
    for (size_t i = 0; i < count; ++i) values[i] = (*this)(i);
    return values;
}

}  // namespace hark::test
