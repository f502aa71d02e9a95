// The harness of bench: limits measured in the same run, TSV out.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "core/tensor.h"
#include "operations/speed/timing.h"

namespace hark::bench {

// What the machine can do with some threads, measured when first asked for.
class Limits {
  public:
    explicit Limits(int threads) : threads_(threads) {}

    // GB/s of reading `bytes` again and again with all threads, as work of that size does:
    // what a cache holds is read from it.
    double read_bandwidth(double bytes);
    // cpu_product_speed() with these threads.
    double product_speed(Dtype dtype);
    int threads() const { return threads_; }

  private:
    int threads_;
    std::map<int64_t, double> bandwidths_;  // by MiB
    std::map<Dtype, double> speeds_;
};

// Rows of the table `what dtype threads ms rate unit limit fraction gflop mb`, each written as it
// comes. The last two are empty where they are not known: pipelines/plot-roofline.sh draws the rows
// that have both.
class Report {
  public:
    // Writes the table's heading first, unless another report has.
    explicit Report(Limits& limits, bool heading = true);

    // Work limited by reading `bytes` from memory.
    void bytes(const std::string& what, const std::string& dtype, double ms, double bytes,
               double flops = 0);
    // Work limited by `flops` operations in that dtype.
    void flops(const std::string& what, const std::string& dtype, double ms, double flops,
               Dtype product, double bytes = 0);
    // The limits themselves, and figures that have none.
    void figure(const std::string& what, const std::string& dtype, double ms, double rate,
                const char* unit);

  private:
    Limits& limits_;
};

}  // namespace hark::bench
