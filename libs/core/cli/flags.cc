#include <algorithm>

#include "core/cli/flags_impl.h"
#include "core/cli/suggest.h"

namespace hark {
namespace {

// "HZ samples per second" -> {"HZ", "samples per second"}; without a leading word in capitals,
// {"VALUE", help}.
std::pair<std::string, std::string> split_metavar(const std::string& help) {
    const size_t end = help.find(' ');
    const std::string word = help.substr(0, end);
    const bool capitals =
        word.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ|,.:") == std::string::npos;
    if (end == std::string::npos || !capitals || word.size() < 1) return {"VALUE", help};
    return {word, help.substr(end + 1)};
}

template <class Values, class Text>
std::string joined(const Values& values, const char* separator, Text text) {
    std::string all;
    for (const auto& value : values) all += (all.empty() ? "" : separator) + text(value);
    return all;
}

std::string joined(const std::vector<std::string>& values, const char* separator) {
    return joined(values, separator, [](const std::string& value) { return value; });
}

// Errors of values do not name their flag: whoever knows where the value came from does.
double parse_number(const std::string& text, double min, double max) {
    size_t used = 0;
    double value = 0;
    try {
        value = std::stod(text, &used);
    } catch (const std::exception&) {
        used = 0;
    }
    require(used == text.size() && used > 0 && value >= min && value <= max,
            "expected a number from ", concat(min), " to ", concat(max), ", got '", text, "'");
    return value;
}

int64_t parse_whole_number(const std::string& text, int64_t min, int64_t max) {
    size_t used = 0;
    int64_t value = 0;
    try {
        value = std::stoll(text, &used);
    } catch (const std::exception&) {
        used = 0;
    }
    require(used == text.size() && used > 0 && value >= min && value <= max,
            "expected a whole number from ", min, " to ", max, ", got '", text, "'");
    return value;
}

// "1 to 64", "2 or more"; "" for any count. Nobody meets a bound of a million or more: help leaves
// it out.
template <class Number>
std::string range_text(Number min, Number max) {
    constexpr Number kFar = 1'000'000;
    if (min <= -kFar) return concat(max, " or less");
    if (max < kFar) return concat(min, " to ", max);
    return min == 0 ? "" : concat(min, " or more");
}

bool parse_switch(const std::string& text) {
    for (const char* yes : {"true", "yes", "on", "1"})
        if (text == yes) return true;
    for (const char* no : {"false", "no", "off", "0"})
        if (text == no) return false;
    fail("expected true or false, got '", text, "'");
}

std::vector<std::string> split_commas(const std::string& text) {
    std::vector<std::string> parts;
    std::istringstream in(text);
    for (std::string part; std::getline(in, part, ',');) parts.push_back(part);
    return parts;
}

}  // namespace

Flags::Flags() : impl_(std::make_unique<Impl>()) {}
Flags::~Flags() = default;

void Flags::section(const char* title) { impl_->section = title; }

Flag Flags::Impl::add(const char* name, const std::string& shown_default, const char* help,
                      std::function<void(const std::string&)> set) {
    Entry entry;
    const std::string names = name;
    entry.info.name = names.substr(0, names.find(','));
    if (names.size() > entry.info.name.size() + 1) entry.info.letter = names.back();
    std::tie(entry.info.metavar, entry.info.help) = split_metavar(help);
    entry.info.shown_default = shown_default;
    entry.info.section = section;
    entry.set = std::move(set);
    entries.push_back(std::move(entry));
    return Flag(entries.back().info);
}

Flag Flags::add(const char* name, std::string& value, const char* help) {
    return impl_->add(name, value, help, [&value](const std::string& text) { value = text; });
}

Flag Flags::add_name(const char* name, std::string& value, const char* help) {
    return impl_->add(name, value, help, [&value](const std::string& text) {
        require(!text.empty(), "expected a name, got an empty text");
        value = text;
    });
}

Flag Flags::add(const char* name, int64_t& value, const char* help, int64_t min, int64_t max) {
    const auto set = [=, &value](const std::string& text) {
        value = parse_whole_number(text, min, max);
    };
    return impl_->add(name, std::to_string(value), help, set).shows_range(range_text(min, max));
}

Flag Flags::add(const char* name, double& value, const char* help, double min, double max) {
    const auto set = [=, &value](const std::string& text) { value = parse_number(text, min, max); };
    return impl_->add(name, concat(value), help, set).shows_range(range_text(min, max));
}

Flag Flags::add(const char* name, std::optional<int64_t>& value, const char* help, int64_t min,
                int64_t max) {
    const auto set = [=, &value](const std::string& text) {
        value = parse_whole_number(text, min, max);
    };
    return impl_->add(name, "", help, set).shows_range(range_text(min, max));
}

Flag Flags::add(const char* name, std::optional<double>& value, const char* help, double min,
                double max) {
    const bool has_default = value.has_value();
    const auto set = [=, &value](const std::string& text) {
        if (has_default && text == "none")
            value.reset();
        else
            value = parse_number(text, min, max);
    };
    return impl_->add(name, value ? concat(*value) : "", help, set)
        .shows_range(range_text(min, max));
}

Flag Flags::add(const char* name, std::vector<double>& value, const char* help, double min,
                double max) {
    const bool has_default = !value.empty();
    const auto set = [=, &value](const std::string& text) {
        std::vector<double> numbers;
        const bool none = has_default && text == "none";
        if (!none)
            for (const std::string& part : split_commas(text))
                numbers.push_back(parse_number(part, min, max));
        require(none || !numbers.empty(), "expected at least one number");
        value = numbers;
    };
    return impl_->add(name, joined(value, ",", concat<double>), help, set)
        .shows_range(range_text(min, max));
}

Flag Flags::add(const char* name, std::vector<std::string>& value, const char* help) {
    return impl_->add(name, joined(value, ","), help, [&value](const std::string& text) {
        require(!text.empty(), "expected at least one, got an empty text");
        value = split_commas(text);
    });
}

Flag Flags::add(const char* name, std::string& value, const std::vector<std::string>& choices,
                const char* help) {
    Flag flag = impl_->add(name, value, help, [=, &value](const std::string& given) {
        require(std::find(choices.begin(), choices.end(), given) != choices.end(),
                "expected one of ", joined(choices, ", "), ", got '", given, "'",
                did_you_mean(given, choices));
        value = given;
    });
    impl_->entries.back().info.choices = choices;
    return flag;
}

Flag Flags::add_switch(const char* name, bool& value, const char* help) {
    Flag flag = impl_->add(name, "", help,
                           [&value](const std::string& text) { value = parse_switch(text); });
    FlagInfo& info = impl_->entries.back().info;
    info.metavar.clear();
    info.help = help;
    info.is_switch = true;
    info.is_on = value;
    return flag;
}

Flag Flags::add_repeated(const char* name, std::vector<std::string>& values, const char* help) {
    Flag flag =
        impl_->add(name, "", help, [&values](const std::string& text) { values.push_back(text); });
    impl_->entries.back().info.is_repeated = true;
    return flag;
}

void Flags::positional(const char* name, std::vector<std::string>& values, const char* help,
                       Completes completes) {
    impl_->positional_completes = completes;
    impl_->positional_name = name;
    impl_->positional_help = help;
    impl_->positional = &values;
}

void Flags::devices(std::string (*text)()) { impl_->devices = text; }

void Flags::reject_arguments(RejectArguments message) {
    impl_->reject_arguments = std::move(message);
}

}  // namespace hark
