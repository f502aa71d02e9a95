#include "operations/advice/prices.h"

#include <algorithm>
#include <charconv>
#include <sstream>

#include "core/cli/suggest.h"
#include "core/error.h"
#include "operations/advice/machine.h"

namespace hark::advice {
namespace {

constexpr const char* kPricesDate = "2026-09-20";
constexpr std::pair<const char*, double> kPrices[] = {
#define HARK_PRICE(NAME, DOLLARS) {NAME, DOLLARS},
#include "operations/advice/prices.def"
#undef HARK_PRICE
};

// The ends of Lambda's types, "gpu_8x_h100_sxm5", and the GPUs that they have.
constexpr std::pair<const char*, const char*> kLambdaGpus[] = {
    {"a10", "a10"},        {"a100", "a100-40-pcie"},      {"a100_sxm4", "a100-40"},
    {"gh200", "gh200"},    {"a100_80gb_sxm4", "a100-80"}, {"h100_pcie", "h100-pcie"},
    {"h100_sxm5", "h100"}, {"b200_sxm6", "b200"}};

// A positive number; 0 of another text.
double number_of(const std::string& text) {
    double value = 0;
    const char* const end = text.data() + text.size();
    const auto [rest, error] = std::from_chars(text.data(), end, value);
    return error == std::errc() && rest == end && value > 0 ? value : 0;
}

// Whether a word is a type of instance, "gpu_1x_a10" or "cpu_4x_general".
bool is_instance(const std::string& word) {
    return (word.starts_with("gpu_") || word.starts_with("cpu_")) && word.find("x_") != word.npos;
}

// The GPU of an instance; empty if gpus.def lacks it.
std::string gpu_of_instance(const std::string& type) {
    const std::string end = type.substr(type.find("x_") + 2);
    for (const auto& [instance, gpu] : kLambdaGpus)
        if (type.starts_with("gpu_") && end == instance) return gpu;
    return "";
}

}  // namespace

std::optional<double> Prices::of(const std::string& gpu) const {
    const auto found = dollars.find(gpu);
    return found == dollars.end() ? std::nullopt : std::optional(found->second);
}

Prices stored_prices() {
    Prices prices{concat("Lambda, ", kPricesDate), {}};
    for (const auto& [gpu, dollars] : kPrices) prices.dollars[gpu] = dollars;
    return prices;
}

Prices parse_prices(const std::string& text, const std::string& where) {
    Prices prices{where, {}};
    std::istringstream lines(text);
    int64_t number = 0;
    for (std::string line; std::getline(lines, line);) {
        ++number;
        std::istringstream words(line.substr(0, line.find('#')));
        std::string name, price, gpus;
        words >> name >> price >> gpus;
        if (name.empty() || name == "TYPE") continue;  // `hark lambda types` has a heading
        const bool instance = is_instance(name);
        double dollars = number_of(price);
        require(dollars > 0 && (instance || gpus.empty()), where, ":", number,
                ": expected a GPU and its dollars per hour, such as 'h100 4.29' (got '", line,
                "')");
        if (instance) {
            const double count = number_of(gpus);
            name = gpu_of_instance(name);
            if (name.empty() || count == 0) continue;
            dollars /= count;
        }
        const KnownGpu* const gpu = find_named_gpu(name);
        require(gpu != nullptr, where, ":", number, ": unknown GPU '", name, "'",
                did_you_mean(name, gpu_names()));
        double& known = prices.dollars[gpu->name];
        known = known > 0 ? std::min(known, dollars) : dollars;
    }
    require(!prices.dollars.empty(), where, ": no prices; expected lines such as 'h100 4.29'");
    return prices;
}

}  // namespace hark::advice
