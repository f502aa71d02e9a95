// Detects outliers of a series by their distance from the mean, in standard deviations.
#pragma once

#include <cstddef>
#include <vector>

namespace hark::gpt {

// The last 128 values of a series. Source: llm.c llmc/outlier_detector.h.
class OutlierWindow {
  public:
    static constexpr size_t kValues = 128;

    OutlierWindow() = default;
    explicit OutlierWindow(std::vector<double> values) : values_(std::move(values)) {}

    // Adds a value; returns its distance from the mean of the window that it ends, in standard
    // deviations. 0 while the window is not full, or if all of its values are equal.
    double add(double value);
    const std::vector<double>& values() const { return values_; }  // oldest first

  private:
    std::vector<double> values_;
};

}  // namespace hark::gpt
