#include "kernels/quant/quantize.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/json/json.h"
#include "kernels/cpu/cpu.h"
#include "support/process.h"
#include "support/recordings.h"

namespace hark::test {
namespace {

using nlohmann::json;

std::string from_hex(const std::string& hex) {
    std::string bytes;
    for (size_t i = 0; i < hex.size(); i += 2)
        bytes.push_back(static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16)));
    return bytes;
}

std::vector<float> floats(const std::string& bytes) {
    std::vector<float> values(bytes.size() / sizeof(float));
    std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
}

std::string value_bytes(const std::vector<float>& values) {
    return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
}

json golden() { return json::parse(read_text(source_dir() / "tests/golden/blocks.json")); }

TEST(Blocks, ValuesAreGgufsToTheBitOnEveryKindOfProcessor) {
    const json expected = golden();
    size_t seen = 0;
    for (const json& entry : expected["dequantize"]) {
        const Dtype dtype = dtype_named(entry["dtype"].get<std::string>());
        const std::string blocks = from_hex(entry["blocks"]), values = from_hex(entry["values"]);
        std::vector<float> found(values.size() / sizeof(float));
        for (const CpuKernels* cpu : all_cpu_kernels()) {
            std::fill(found.begin(), found.end(), NAN);
            cpu->dequantize(found.data(), blocks.data(), dtype, static_cast<int64_t>(found.size()));
            EXPECT_TRUE(value_bytes(found) == values) << name_of(dtype) << " " << cpu->name;
        }
        ++seen;
    }
    EXPECT_EQ(seen, std::size(kQuantizedDtypes));
}

TEST(Blocks, AreMadeAsGgufMakesThem) {
    const json expected = golden();
    const std::vector<float> values = floats(from_hex(expected["values"]));
    size_t seen = 0;
    for (const json& entry : expected["quantize"]) {
        const Dtype dtype = dtype_named(entry["dtype"].get<std::string>());
        const std::string blocks = from_hex(entry["blocks"]);
        std::string found(blocks.size(), '\0');
        ASSERT_EQ(row_bytes(dtype, static_cast<int64_t>(values.size())), blocks.size());
        quantize(found.data(), values.data(), dtype, static_cast<int64_t>(values.size()));
        EXPECT_TRUE(found == blocks) << name_of(dtype);
        ++seen;
    }
    EXPECT_EQ(seen, 6u);
}

// Mean squared errors over the mean square of 131,072 normal numbers, as llama.cpp's quantisers
// make them (tests/golden/block_errors.py).
TEST(Blocks, ErrorsOfSearchedScalesAreAtMostLlamaCpps) {
    const std::pair<Dtype, double> llama_cpps[] = {
        {Dtype::q2_k, 8.81e-2},  {Dtype::q3_k, 2.28e-2}, {Dtype::q4_k, 5.09e-3},
        {Dtype::q5_k, 1.30e-3},  {Dtype::q6_k, 3.15e-4}, {Dtype::iq4_nl, 5.79e-3},
        {Dtype::iq4_xs, 5.89e-3}};
    std::vector<float> values(1 << 17);
    SplitMix64 generator(31);
    for (float& value : values) {  // Box and Muller's
        const double u = std::ldexp(static_cast<double>(generator.draw() >> 11) + 1, -53);
        const double angle =
            std::ldexp(static_cast<double>(generator.draw() >> 11), -53) * 2 * M_PI;
        value = static_cast<float>(0.02 * std::sqrt(-2 * std::log(u)) * std::cos(angle));
    }
    const auto n = static_cast<int64_t>(values.size());
    std::vector<float> found(values.size());
    for (const auto& [dtype, most] : llama_cpps) {
        std::string blocks(row_bytes(dtype, n), '\0');
        quantize(blocks.data(), values.data(), dtype, n);
        dequantize(found.data(), blocks.data(), dtype, n);
        double errors = 0, squares = 0;
        for (size_t i = 0; i < values.size(); ++i) {
            errors += std::pow(double{found[i]} - values[i], 2);
            squares += std::pow(double{values[i]}, 2);
        }
        EXPECT_LE(errors, 1.02 * most * squares) << name_of(dtype);
    }
}

TEST(Blocks, ZerosStayZerosInEveryType) {
    const std::vector<float> zeros(512);
    for (const Dtype dtype : kQuantizedDtypes) {
        std::string blocks(row_bytes(dtype, 512), '\1');
        std::vector<float> found(512, 1);
        quantize(blocks.data(), zeros.data(), dtype, 512);
        dequantize(found.data(), blocks.data(), dtype, 512);
        EXPECT_TRUE(found == zeros) << name_of(dtype);
    }
}

TEST(Blocks, WhatDoesNotFitIsAnError) {
    std::vector<float> values(64, 1.0f);
    std::string blocks(256, '\0');
    EXPECT_THROW(quantize(blocks.data(), values.data(), Dtype::q8_0, 33), Error);
    EXPECT_THROW(quantize(blocks.data(), values.data(), Dtype::q6_k, 32), Error);
    EXPECT_THROW(quantize(blocks.data(), values.data(), Dtype::f16, 32), Error);
    EXPECT_THROW(dequantize(values.data(), blocks.data(), Dtype::q4_k, 32), Error);
    EXPECT_THROW(dequantize(values.data(), blocks.data(), Dtype::f32, 32), Error);
    for (const float bad : {INFINITY, -INFINITY, NAN, 1e7f}) {
        values[40] = bad;
        for (Dtype dtype : {Dtype::q4_0, Dtype::q4_1, Dtype::q5_0, Dtype::q5_1, Dtype::q8_0})
            EXPECT_THROW(quantize(blocks.data(), values.data(), dtype, 64), Error)
                << name_of(dtype) << " " << bad;
    }
}

}  // namespace
}  // namespace hark::test
