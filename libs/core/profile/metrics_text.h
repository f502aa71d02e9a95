// Prometheus' text format: hark-serve's /metrics and the files of --metrics.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace hark {

// NAME="VALUE", with the value escaped.
std::string metric_label(const char* name, std::string_view value);

// All lines of a metric follow one another.
class MetricsText {
  public:
    // The samples from here on have these labels: metric_label()s with commas.
    void begin_labels(std::string labels) { labels_ = std::move(labels); }
    // The metric is hark_NAME; `labels` come after those of begin_labels().
    void add(const std::string& name, const char* type, double value,
             const std::string& labels = "", const char* suffix = "");
    std::string text() const;

  private:
    struct Metric {
        std::string name, type, lines;
    };

    std::string labels_;
    std::vector<Metric> metrics_;
};

}  // namespace hark
