#include "gpt/sampling/sampler_settings.h"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace hark::gpt {
namespace {

using nlohmann::ordered_json;

constexpr double kMostBias = 100;

// `Number`: double or int64_t. `help` is the flag's, `details` may be null.
template <class Number>
struct Field {
    const char* name;
    Number min, max;
    Number& (*of)(SamplerOptions&);
    const char *help, *details;
};

constexpr Field<double> kNumberFields[] = {
    {"temperature", 0, 100, [](SamplerOptions& o) -> double& { return o.temperature; },
     "T sampling temperature; 0: the likeliest token",
     "Of equally likely ones that with the lowest id. A model's own default replaces this one, and "
     "those below: from generation_config.json, or from GGUF's general.sampling keys."},
    {"top_p", 1e-9, 1, [](SamplerOptions& o) -> double& { return o.top_p; },
     "P draw from the likeliest tokens of probability P",
     "The fewest tokens whose probabilities have the sum P; 1: all."},
    {"min_p", 0, 1, [](SamplerOptions& o) -> double& { return o.min_p; },
     "P drop tokens below P times the likeliest; 0: none", ""},
    {"typical_p", 1e-9, 1, [](SamplerOptions& o) -> double& { return o.typical_p; },
     "P draw from the typical tokens of probability P; 1: from all",
     "Those whose surprise is nearest to the entropy."},
    {"repetition_penalty", 0.01, 100,
     [](SamplerOptions& o) -> double& { return o.repetition_penalty; },
     "R penalty of tokens that are in the text",
     "Their logits are divided by R, or multiplied if negative; 1: no penalty. The prompt counts."},
    {"presence_penalty", -2, 2, [](SamplerOptions& o) -> double& { return o.presence_penalty; },
     "A subtract A from logits of tokens that are in the answer", "The prompt does not count."},
    {"frequency_penalty", -2, 2, [](SamplerOptions& o) -> double& { return o.frequency_penalty; },
     "A subtract A per time that the token is in the answer", "The prompt does not count."},
    {"dry_multiplier", 0, 100, [](SamplerOptions& o) -> double& { return o.dry.multiplier; },
     "M penalty of tokens that continue a repetition; 0: none",
     "A token that would make a repetition of L tokens longer loses M * B^(L - N), where N is "
     "--dry-allowed-length. Line ends, colons, quotation marks, asterisks and special tokens end a "
     "repetition."},
    {"dry_base", 1, 100, [](SamplerOptions& o) -> double& { return o.dry.base; },
     "B growth of --dry-multiplier's penalty per token", ""},
    {"xtc_probability", 0, 1, [](SamplerOptions& o) -> double& { return o.xtc_probability; },
     "P how often the likeliest tokens are excluded; 0: never",
     "Then only the least likely of those of at least --xtc-threshold stays."},
    {"xtc_threshold", 0, 1, [](SamplerOptions& o) -> double& { return o.xtc_threshold; },
     "P least probability of tokens that --xtc-probability excludes",
     "Above 0.5 none is excluded."},
    {"mirostat_tau", 0, 100, [](SamplerOptions& o) -> double& { return o.mirostat_tau; },
     "BITS mean surprise that --mirostat aims at", ""},
    {"mirostat_eta", 0, 1, [](SamplerOptions& o) -> double& { return o.mirostat_eta; },
     "RATE how fast --mirostat adapts", ""},
};

constexpr Field<int64_t> kWholeFields[] = {
    {"top_k", 0, 1 << 30, [](SamplerOptions& o) -> int64_t& { return o.top_k; },
     "K draw from the K likeliest tokens; 0: from all", ""},
    {"dry_allowed_length", 1, 1 << 30,
     [](SamplerOptions& o) -> int64_t& { return o.dry.allowed_length; },
     "N shortest repetition that --dry-multiplier penalises", ""},
    {"mirostat", 0, 2, [](SamplerOptions& o) -> int64_t& { return o.mirostat; },
     "N 2: draw with mirostat 2, in place of top-k to XTC; 0: do not",
     "Tokens of too much surprise are dropped; how much is too much follows the answer."},
};

// In help they follow these of kNumberFields: temperature, dry_base, xtc_threshold.
constexpr size_t kWholePlaces[] = {0, 8, 10};

constexpr const char* kOneMirostat = "mirostat: expected 0 or 2, the algorithm, found 1";

std::string flag_name(const char* name) {
    std::string flag = name;
    std::replace(flag.begin(), flag.end(), '_', '-');
    return flag;
}

template <class Number>
void add_flag(Flags& flags, const Field<Number>& field, std::optional<Number>& value) {
    SamplerOptions defaults;
    Flag flag = flags.add(flag_name(field.name).c_str(), value, field.help, field.min, field.max);
    flag.details(field.details).shows_default(concat(field.of(defaults)));
    if (std::string_view(field.name) == "temperature") flag.essential().own_variable();
}

// "ID=V" of --logit-bias.
std::pair<int32_t, double> parse_bias(const std::string& text) {
    int32_t id = -1;
    double value = kMostBias + 1;
    const char *const begin = text.data(), *const end = begin + text.size();
    const auto [after, problem] = std::from_chars(begin, end, id);
    const bool has_id = problem == std::errc() && after != end && *after == '=';
    if (has_id && std::from_chars(after + 1, end, value).ptr != end) value = kMostBias + 1;
    require_usage(has_id && id >= 0 && std::abs(value) <= kMostBias,
                  "--logit-bias: expected ID=V, a token and a number from -100 to 100, got '", text,
                  "'");
    return {id, value};
}

std::string read_bias(const ordered_json& object, std::optional<LogitBias>& bias) {
    if (!object.is_object())
        return concat("logit_bias: expected an object, found ", object.type_name());
    bias.emplace();
    for (const auto& [text, value] : object.items()) {
        int32_t id = -1;
        const char* const end = text.data() + text.size();
        const auto [after, problem] = std::from_chars(text.data(), end, id);
        if (problem != std::errc() || after != end || id < 0)
            return "logit_bias: expected names that are ids of tokens";
        const std::string wrong = wrong_number("logit_bias", value, -kMostBias, kMostBias, false);
        if (!wrong.empty()) return wrong;
        bias->emplace_back(id, value.get<double>());
    }
    return "";
}

}  // namespace

std::string wrong_number(const char* name, const ordered_json& value, double min, double max,
                         bool whole) {
    const bool fits = whole ? value.is_number_integer() : value.is_number();
    const bool too_large = whole && value.is_number_unsigned() && value.get<uint64_t>() > INT64_MAX;
    if (fits && !too_large && value.get<double>() >= min && value.get<double>() <= max) return "";
    const auto bound = [&](double x) {
        if (!whole) return concat(x);
        // INT64_MAX as a double is one more.
        return concat(x >= 0x1p63 ? INT64_MAX : static_cast<int64_t>(x));
    };
    return concat(name, ": expected a ", whole ? "whole " : "", "number from ", bound(min), " to ",
                  bound(max), ", found ", value.is_number() ? value.dump() : value.type_name());
}

void SamplerSettings::flags(Flags& flags) {
    static_assert(std::size(kNumberFields) == kNumbers && std::size(kWholeFields) == kWholeNumbers);
    for (size_t i = 0; i < kNumbers; ++i) {
        add_flag(flags, kNumberFields[i], numbers_[i]);
        for (size_t whole = 0; whole < kWholeNumbers; ++whole)
            if (kWholePlaces[whole] == i)
                add_flag(flags, kWholeFields[whole], whole_numbers_[whole]);
    }
    flags.add_repeated("logit-bias", bias_texts_, "ID=V number that is added to a token's logit")
        .details("From -100 to 100. May be given several times.");
}

void SamplerSettings::check() const {
    for (const std::string& text : bias_texts_) parse_bias(text);
    require_usage(whole_numbers_[2] != 1, "--", kOneMirostat);
}

std::string SamplerSettings::read(const ordered_json& line) {
    const auto field = [&](const auto& of, auto& value, bool whole) -> std::string {
        const auto found = line.find(of.name);
        if (found == line.end() || found->is_null()) return "";
        std::string wrong = wrong_number(of.name, *found, static_cast<double>(of.min),
                                         static_cast<double>(of.max), whole);
        if (wrong.empty()) found->get_to(value.emplace());
        return wrong;
    };
    std::string wrong;
    for (size_t i = 0; i < kNumbers && wrong.empty(); ++i)
        wrong = field(kNumberFields[i], numbers_[i], false);
    for (size_t i = 0; i < kWholeNumbers && wrong.empty(); ++i)
        wrong = field(kWholeFields[i], whole_numbers_[i], true);
    if (wrong.empty() && whole_numbers_[2] == 1) wrong = kOneMirostat;
    const auto bias = line.find("logit_bias");
    if (wrong.empty() && bias != line.end() && !bias->is_null()) wrong = read_bias(*bias, bias_);
    return wrong;
}

void SamplerSettings::read(const SamplingDefaults& defaults, const std::string& where) {
    ordered_json line = ordered_json::object();
    for (const auto& [name, value] : defaults) {
        line[name] = value;
        // Files have whole numbers as 20 and as 20.0.
        if (value == std::floor(value) && std::abs(value) < 1e9)
            line[name] = static_cast<int64_t>(value);
    }
    const std::string wrong = read(line);
    require(wrong.empty(), where, ": ", wrong);
}

void SamplerSettings::apply_to(SamplerOptions& options) const {
    for (size_t i = 0; i < kNumbers; ++i)
        if (numbers_[i]) kNumberFields[i].of(options) = *numbers_[i];
    for (size_t i = 0; i < kWholeNumbers; ++i)
        if (whole_numbers_[i]) kWholeFields[i].of(options) = *whole_numbers_[i];
    if (!bias_texts_.empty()) options.logit_bias.clear();
    for (const std::string& text : bias_texts_) options.logit_bias.push_back(parse_bias(text));
    if (bias_) options.logit_bias = *bias_;
    // A logit over such a temperature may be beyond float; its draw is the likeliest token anyway.
    if (options.temperature < 1e-5) options.temperature = 0;
}

}  // namespace hark::gpt
