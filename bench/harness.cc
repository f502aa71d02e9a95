#include "harness.h"

#include <cstdio>

#include "kernels/cpu/cpu.h"
#include "operations/speed/cpu_speed.h"
#include "operations/speed/memory_speed.h"

namespace hark::bench {
namespace {

// Empty: not known.
std::string known(double value) {
    char text[32];
    std::snprintf(text, sizeof text, "%.6g", value);
    return value > 0 ? text : "";
}

}  // namespace

double Limits::read_bandwidth(double bytes) {
    double& known = bandwidths_[static_cast<int64_t>(bytes) >> 20];
    if (!(known > 0)) known = hark::read_bandwidth(threads_, bytes);
    return known;
}

double Limits::product_speed(Dtype dtype) {
    if (dtype == Dtype::bf16 && !cpu_kernels().has_bf16) dtype = Dtype::f32;
    if (dtype == Dtype::i8 && !cpu_kernels().has_int8) dtype = Dtype::f32;
    if (dtype == Dtype::f16) dtype = Dtype::f32;
    if (speeds_.count(dtype)) return speeds_[dtype];
    return speeds_[dtype] = cpu_product_speed(threads_, dtype);
}

Report::Report(Limits& limits, bool heading) : limits_(limits) {
    if (heading) std::printf("what\tdtype\tthreads\tms\trate\tunit\tlimit\tfraction\tgflop\tmb\n");
}

void Report::bytes(const std::string& what, const std::string& dtype, double ms, double bytes,
                   double flops) {
    const double rate = bytes / ms * 1e-6, limit = limits_.read_bandwidth(bytes);
    std::printf("%s\t%s\t%d\t%.4f\t%.1f\tGB/s\t%.1f\t%.2f\t%s\t%s\n", what.c_str(), dtype.c_str(),
                limits_.threads(), ms, rate, limit, rate / limit, known(flops * 1e-9).c_str(),
                known(bytes * 1e-6).c_str());
    std::fflush(stdout);
}

void Report::flops(const std::string& what, const std::string& dtype, double ms, double flops,
                   Dtype product, double bytes) {
    const double rate = flops / ms * 1e-6, limit = limits_.product_speed(product);
    std::printf("%s\t%s\t%d\t%.4f\t%.1f\tGFLOP/s\t%.1f\t%.2f\t%s\t%s\n", what.c_str(),
                dtype.c_str(), limits_.threads(), ms, rate, limit, rate / limit,
                known(flops * 1e-9).c_str(), known(bytes * 1e-6).c_str());
    std::fflush(stdout);
}

void Report::figure(const std::string& what, const std::string& dtype, double ms, double rate,
                    const char* unit) {
    std::printf("%s\t%s\t%d\t%.4f\t%.1f\t%s\t\t\t\t\n", what.c_str(), dtype.c_str(),
                limits_.threads(), ms, rate, unit);
    std::fflush(stdout);
}

}  // namespace hark::bench
