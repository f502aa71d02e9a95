// op_bits DIR: writes what every case of op_errors*.json gives into DIR, a file per case, type and
// device; on the CPU for each kind of its kernels, products with each type of weights too.
// tests/bits/bits.sh makes checksums of them.
#include <cstdio>
#include <fstream>

#include "kernels/cpu/cpu.h"
#include "support/blocks.h"
#include "support/op_call.h"

using namespace hark;
using namespace hark::test;

namespace {

void write(const std::string& path, const std::vector<float>& values) {
    std::ofstream file(path, std::ios::binary);
    file.write(reinterpret_cast<const char*>(values.data()),
               static_cast<std::streamsize>(values.size() * sizeof(float)));
    require(file.good(), path, ": cannot write");
}

void write_cases(const DeviceCase& on, const std::string& prefix) {
    TestDevice device(on);
    if (!device) {
        std::fprintf(stderr, "op_bits: %s: left out: %s\n", on.name, device.why_not().c_str());
        return;
    }
    int number = 0;
    for (const json& c : op_cases(on.device)) {
        const std::string op = c["op"];
        ++number;
        if (op == "absorbed_attention" && device.ctx().on_cuda() && on.activations == Dtype::f32)
            continue;
        write(concat(prefix, on.name, "-", number, "-", op),
              OpCall(device, on.activations, c).result());
    }
}

// y (T, 96) = x (T, 512) W^T, of few rows and of many.
void write_products(const std::string& prefix) {
    constexpr int64_t kOut = 96, kIn = 512;
    TestDevice device(kCpuCase);
    for (const int64_t rows : {1, 7, 40}) {
        const std::vector<float> x = random_values(rows * kIn, 1, 1);
        const auto write_product = [&](const Matrix& w, const char* name) {
            Tensor y = device.empty(Dtype::f32, {rows, kOut});
            linear(device.ctx(), y, device.up(x, Dtype::f32, {rows, kIn}), w);
            write(concat(prefix, "linear-", name, "-", rows), device.down(y));
        };
        const std::vector<float> w = random_values(kOut * kIn, 2, 0.05);
        for (const Dtype dtype : {Dtype::f32, Dtype::f16, Dtype::bf16})
            write_product({device.up(w, dtype, {kOut, kIn}), {}}, name_of(dtype));
        std::vector<int8_t> bytes;
        for (const float value : w) bytes.push_back(static_cast<int8_t>(value * 400));
        const std::vector<float> scales(kOut, 0.0025f);
        write_product(
            {Tensor(bytes.data(), Dtype::i8, {kOut, kIn}), device.up(scales, Dtype::f32, {kOut})},
            "i8");
        for (const Dtype dtype : kQuantizedDtypes) {
            RandomBlocks blocks(dtype, kOut, kIn, 3);
            write_product({blocks.tensor(), {}}, name_of(dtype));
        }
    }
}

}  // namespace

int main(int argc, char** argv) try {
    require(argc == 2, "expected one folder");
    const std::string folder = argv[1] + std::string("/");
    for (const CpuKernels* kernels : all_cpu_kernels()) {
        use_cpu_kernels(*kernels);
        const std::string prefix = folder + kernels->name + "-";
        write_cases(kCpuCase, prefix);
        write_products(prefix);
    }
    for (const DeviceCase& on : {kCudaF32Case, kCudaF16Case, kCudaBf16Case})
        write_cases(on, folder);
} catch (const std::exception& error) {
    std::fprintf(stderr, "op_bits: %s\n", error.what());
    return 1;
}
