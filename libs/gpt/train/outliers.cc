#include "gpt/train/outliers.h"

#include <cmath>

namespace hark::gpt {

double OutlierWindow::add(double value) {
    values_.push_back(value);
    if (values_.size() > kValues) values_.erase(values_.begin());
    if (values_.size() < kValues) return 0;
    double mean = 0, variance = 0;
    for (const double v : values_) mean += v / static_cast<double>(kValues);
    for (const double v : values_)
        variance += (v - mean) * (v - mean) / static_cast<double>(kValues);
    return variance > 0 ? (value - mean) / std::sqrt(variance) : 0;
}

}  // namespace hark::gpt
