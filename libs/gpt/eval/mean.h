// The mean of a sample and its standard error.
#pragma once

#include <cmath>
#include <cstdint>

namespace hark::gpt {

// Source: Welford 1962, "Note on a method for calculating corrected sums of squares and products".
class Mean {
  public:
    void add(double x) {
        const double before = x - mean_;
        mean_ += before / static_cast<double>(++count_);
        squares_ += before * (x - mean_);
    }
    int64_t count() const { return count_; }
    double value() const { return mean_; }
    double sum() const { return mean_ * static_cast<double>(count_); }
    // The sample's standard deviation (n - 1) / sqrt(n); 0 for one value.
    double standard_error() const {
        if (count_ < 2) return 0;
        const auto n = static_cast<double>(count_);
        return std::sqrt(squares_ / (n - 1) / n);
    }

  private:
    int64_t count_ = 0;
    double mean_ = 0, squares_ = 0;
};

}  // namespace hark::gpt
