#include "text/constrain/json_number.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "core/error.h"

namespace hark {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kMostDigits = 15, kIntegerDigits = 18;
constexpr int64_t kTooLarge = 1'000'000'000'000'000;       // 10^15
constexpr int64_t kMostInteger = 999'999'999'999'999'999;  // 18 digits
constexpr int64_t kFractionsBelow = 1'000'000'000;         // without a bound
constexpr int kMostMultiple = 10'000, kMostMultiplePlaces = 9;

Regular json_digit(char first, char last) {
    return Regular::chars(CharSet({{static_cast<char32_t>(first), static_cast<char32_t>(last)}}));
}
Regular one_char(char c) { return json_digit(c, c); }
Regular json_digits(int64_t least, int64_t most) {
    return Regular::repeat(json_digit('0', '9'), least, most);
}
Regular ascii_text(const std::string& ascii) {
    return Regular::text(std::u32string(ascii.begin(), ascii.end()));
}

// Texts of as many digits as `bound` has, at least (or at most) that large.
Regular same_length(const std::string& bound, bool at_least, size_t at = 0) {
    if (at == bound.size()) return Regular::empty();
    const auto rest = std::ssize(bound) - static_cast<ptrdiff_t>(at) - 1;
    std::vector<Regular> choices = {
        Regular::sequence({one_char(bound[at]), same_length(bound, at_least, at + 1)})};
    if (at_least && bound[at] < '9')
        choices.push_back(Regular::sequence(
            {json_digit(static_cast<char>(bound[at] + 1), '9'), json_digits(rest, rest)}));
    if (!at_least && bound[at] > '0')
        choices.push_back(Regular::sequence(
            {json_digit('0', static_cast<char>(bound[at] - 1)), json_digits(rest, rest)}));
    return Regular::choice(std::move(choices));
}

Regular same_length(const std::string& least, const std::string& most, size_t at = 0) {
    if (at == least.size()) return Regular::empty();
    const char low = least[at], high = most[at];
    if (low == high) return Regular::sequence({one_char(low), same_length(least, most, at + 1)});
    const auto rest = std::ssize(least) - static_cast<ptrdiff_t>(at) - 1;
    std::vector<Regular> choices = {
        Regular::sequence({one_char(low), same_length(least, true, at + 1)}),
        Regular::sequence({one_char(high), same_length(most, false, at + 1)})};
    if (high - low > 1)
        choices.push_back(
            Regular::sequence({json_digit(static_cast<char>(low + 1), static_cast<char>(high - 1)),
                               json_digits(rest, rest)}));
    return Regular::choice(std::move(choices));
}

// Whole numbers from `least` to `most`, both at least 0.
Regular naturals(int64_t least, int64_t most) {
    if (least > most) return Regular::nothing();
    const std::string low = std::to_string(least), high = std::to_string(most);
    if (low.size() == high.size()) return same_length(low, high);
    std::vector<Regular> choices = {same_length(low, std::string(low.size(), '9')),
                                    same_length("1" + std::string(high.size() - 1, '0'), high)};
    for (size_t length = low.size() + 1; length < high.size(); ++length)
        choices.push_back(Regular::sequence(
            {json_digit('1', '9'),
             json_digits(static_cast<int64_t>(length) - 1, static_cast<int64_t>(length) - 1)}));
    return Regular::choice(std::move(choices));
}

Regular integers(int64_t least, int64_t most) {
    std::vector<Regular> choices;
    if (least < 0)
        choices.push_back(Regular::sequence(
            {one_char('-'), naturals(std::max<int64_t>(1, -std::min<int64_t>(most, 0)), -least)}));
    if (most >= 0) choices.push_back(naturals(std::max<int64_t>(least, 0), most));
    return Regular::choice(std::move(choices));
}

// A decimal number that is not negative.
struct Decimal {
    int64_t whole = 0;
    std::string fraction;  // digits without zeros at the end
    bool strict = false;   // the number itself is outside
};

// Digits after the point, read as those of a fraction. `needs`: at least one digit; `left`: at
// most.
Regular any_digits(bool needs, int left) { return json_digits(needs ? 1 : 0, left); }

Regular below_or(const std::string& bound, bool strict, bool needs, int left);

// At least the bound, or more if strict.
Regular above_or(const std::string& bound, bool strict, bool needs, int left) {
    if (bound.empty() && !strict) return any_digits(needs, left);
    if (left == 0) return Regular::nothing();
    const char first = bound.empty() ? '0' : bound[0];
    const std::string rest = bound.empty() ? "" : bound.substr(1);
    std::vector<Regular> choices = {
        Regular::sequence({one_char(first), above_or(rest, strict, false, left - 1)})};
    if (first < '9')
        choices.push_back(Regular::sequence(
            {json_digit(static_cast<char>(first + 1), '9'), any_digits(false, left - 1)}));
    return Regular::choice(std::move(choices));
}

Regular below_or(const std::string& bound, bool strict, bool needs, int left) {
    if (bound.empty())
        return strict ? Regular::nothing() : Regular::repeat(one_char('0'), needs ? 1 : 0, left);
    std::vector<Regular> choices;
    if (!needs) choices.push_back(Regular::empty());
    if (left > 0) {
        choices.push_back(Regular::sequence(
            {one_char(bound[0]), below_or(bound.substr(1), strict, false, left - 1)}));
        if (bound[0] > '0')
            choices.push_back(Regular::sequence(
                {json_digit('0', static_cast<char>(bound[0] - 1)), any_digits(false, left - 1)}));
    }
    return Regular::choice(std::move(choices));
}

Regular between(const Decimal& least, const Decimal& most, size_t at, bool needs, int left) {
    const auto digit_at = [&](const std::string& f) { return at < f.size() ? f[at] : '0'; };
    const auto rest_of = [&](const std::string& f) { return at < f.size() ? f.substr(at) : ""; };
    const std::string low_rest = rest_of(least.fraction), high_rest = rest_of(most.fraction);
    std::vector<Regular> choices;
    const bool zero_fits = low_rest.empty() && !least.strict && !(high_rest.empty() && most.strict);
    if (!needs && zero_fits) choices.push_back(Regular::empty());
    const char low = digit_at(least.fraction), high = digit_at(most.fraction);
    if (left > 0 && low == high)
        choices.push_back(
            Regular::sequence({one_char(low), between(least, most, at + 1, false, left - 1)}));
    if (left > 0 && low < high) {
        const auto after = [](const std::string& rest) {
            return rest.empty() ? std::string() : rest.substr(1);
        };
        choices.push_back(Regular::sequence(
            {one_char(low), above_or(after(low_rest), least.strict, false, left - 1)}));
        choices.push_back(Regular::sequence(
            {one_char(high), below_or(after(high_rest), most.strict, false, left - 1)}));
        if (high - low > 1)
            choices.push_back(Regular::sequence(
                {json_digit(static_cast<char>(low + 1), static_cast<char>(high - 1)),
                 any_digits(false, left - 1)}));
    }
    return Regular::choice(std::move(choices));
}

// A whole part, then the fraction: none if that fits too.
Regular with_fraction(Regular whole, bool none_fits, Regular fraction) {
    std::vector<Regular> choices = {Regular::sequence({one_char('.'), std::move(fraction)})};
    if (none_fits) choices.push_back(Regular::empty());
    return Regular::sequence({std::move(whole), Regular::choice(std::move(choices))});
}

Regular decimals(const Decimal& least, const Decimal& most) {
    if (least.whole > most.whole) return Regular::nothing();
    const int whole_digits =
        most.whole == 0 ? 0 : static_cast<int>(std::to_string(most.whole).size());
    const int places = std::max(kMostDigits - whole_digits, 0);
    const bool least_fits = least.fraction.empty() && !least.strict;
    const bool most_fits = !(most.fraction.empty() && most.strict);
    if (least.whole == most.whole)
        return with_fraction(ascii_text(std::to_string(least.whole)), least_fits && most_fits,
                             between(least, most, 0, true, places));
    return Regular::choice(
        {with_fraction(ascii_text(std::to_string(least.whole)), least_fits,
                       above_or(least.fraction, least.strict, true, places)),
         with_fraction(naturals(least.whole + 1, most.whole - 1), true, any_digits(true, places)),
         with_fraction(ascii_text(std::to_string(most.whole)), most_fits,
                       below_or(most.fraction, most.strict, true, places))});
}

// Numbers from `least` on, without a bound.
Regular decimals_from(const Decimal& least) {
    const bool is_whole = least.fraction.empty() && !least.strict;
    std::vector<Regular> choices = {
        naturals(std::max(least.whole + (is_whole ? 0 : 1), kFractionsBelow), kTooLarge - 1)};
    if (least.whole < kFractionsBelow)
        choices.push_back(decimals(least, {kFractionsBelow - 1, "999999", false}));
    return Regular::choice(std::move(choices));
}

struct Signed {
    bool negative = false;
    Decimal size;
};

Signed decimal_of(const NumberBound& bound) {
    std::string digits;
    if (bound.value.is_number_float()) {
        char buffer[400];
        const auto end = std::to_chars(buffer, buffer + sizeof(buffer), bound.value.get<double>(),
                                       std::chars_format::fixed);
        digits.assign(buffer, end.ptr);
    } else {
        digits = bound.value.dump();
    }
    Signed result;
    result.negative = digits[0] == '-';
    if (result.negative) digits.erase(0, 1);
    const size_t point = std::min(digits.find('.'), digits.size());
    require(point <= static_cast<size_t>(kMostDigits),
            "bounds of 10^15 and more are not supported "
            "for numbers (got ",
            bound.value.dump(), ")");
    result.size.whole = std::stoll(digits.substr(0, point));
    if (point < digits.size()) result.size.fraction = digits.substr(point + 1);
    while (result.size.fraction.ends_with('0')) result.size.fraction.pop_back();
    result.size.strict = bound.exclusive;
    if (result.size.whole == 0 && result.size.fraction.empty()) result.negative = false;
    return result;
}

// Numbers on one side of zero, without their sign: from `least`, or zero, to `most` if there is
// one.
Regular sizes(const std::optional<Decimal>& least, const std::optional<Decimal>& most,
              bool with_zero) {
    const Decimal from = least.value_or(Decimal{0, "", !with_zero});
    return most ? decimals(from, *most) : decimals_from(from);
}

Regular numbers_within(const std::optional<Signed>& least, const std::optional<Signed>& most) {
    std::vector<Regular> choices;
    const auto size_if = [](const std::optional<Signed>& bound, bool negative) {
        return bound && bound->negative == negative ? std::optional(bound->size) : std::nullopt;
    };
    // Positive ones and zero.
    if (!most || !most->negative)
        choices.push_back(sizes(size_if(least, false), size_if(most, false), true));
    if (!least || least->negative)
        choices.push_back(Regular::sequence(
            {one_char('-'), sizes(size_if(most, true), size_if(least, true), false)}));
    return Regular::choice(std::move(choices));
}

// The bound that excludes most: the largest lower one, the smallest upper one.
std::optional<NumberBound> strictest(const std::vector<NumberBound>& bounds, bool is_least) {
    std::optional<NumberBound> best;
    for (const NumberBound& bound : bounds) {
        const bool same = best && bound.value == best->value;
        const bool tighter =
            !best || (is_least ? bound.value > best->value : bound.value < best->value);
        if (tighter || (same && bound.exclusive)) best = bound;
    }
    return best;
}

int64_t whole_bound(const std::optional<NumberBound>& bound, bool is_least) {
    if (!bound) return is_least ? -kMostInteger : kMostInteger;
    const Json& value = bound->value;
    const auto clamped = [](int64_t x) {
        return std::clamp(x, -kMostInteger - 1, kMostInteger + 1);
    };
    int64_t whole = 0;
    bool on_bound = true;
    if (value.is_number_float()) {
        const double x = value.get<double>();
        const double rounded = is_least ? std::ceil(x) : std::floor(x);
        on_bound = rounded == x;
        whole = clamped(static_cast<int64_t>(std::clamp(rounded, -1e18, 1e18)));
    } else if (value.is_number_unsigned() && value.get<uint64_t>() > INT64_MAX) {
        whole = kMostInteger + 1;
    } else {
        whole = clamped(value.get<int64_t>());
    }
    if (bound->exclusive && on_bound) whole += is_least ? 1 : -1;
    return is_least ? std::max(whole, -kMostInteger) : std::min(whole, kMostInteger);
}

// Decimal texts of which a multiple of m / 10^places is the value.
CharAutomaton multiples(const Json& multiple) {
    const Decimal size = decimal_of({multiple, false}).size;
    const int places = static_cast<int>(size.fraction.size());
    require(places <= kMostMultiplePlaces && size.whole <= kMostMultiple,
            "multipleOf: ", multiple.dump(), " is not supported (expected at most ", kMostMultiple,
            " units of 1, 0.1, 0.01 and so on)");
    const int64_t m = std::stoll(std::to_string(size.whole) + size.fraction);
    require(m <= kMostMultiple, "multipleOf: ", multiple.dump(),
            " is not supported (expected at most ", kMostMultiple,
            " units of 1, 0.1, 0.01 and so "
            "on)");
    // States: the begin, then per remainder of the digits so far and number of places after the
    // point, -1 before it.
    CharAutomaton automaton;
    const auto state = [&](int64_t remainder, int place) {
        return static_cast<int32_t>(2 + remainder * (places + 2) + place);
    };
    const size_t count = static_cast<size_t>(1 + m * (places + 2));
    automaton.edges.resize(count);
    automaton.accepts.resize(count);
    const auto add_digits = [&](int32_t from, int64_t remainder, int place) {
        for (char d = '0'; d <= '9'; ++d) {
            const bool is_past = place >= 0 && place == places;
            if (is_past && d != '0') break;
            const int64_t next = is_past ? remainder : (remainder * 10 + (d - '0')) % m;
            const int next_place = place < 0 ? -1 : std::min(place + 1, places);
            automaton.edges[static_cast<size_t>(from)].push_back(
                {CharSet::of(static_cast<char32_t>(d)), state(next, next_place)});
        }
    };
    automaton.edges[0].push_back({CharSet::of('-'), 0});
    add_digits(0, 0, -1);
    for (int64_t remainder = 0; remainder < m; ++remainder)
        for (int place = -1; place <= places; ++place) {
            const int32_t at = state(remainder, place);
            add_digits(at, remainder, place);
            if (place < 0)
                automaton.edges[static_cast<size_t>(at)].push_back(
                    {CharSet::of('.'), state(remainder, 0)});
            int64_t rest = remainder;
            for (int i = std::max(place, 0); i < places; ++i) rest = rest * 10 % m;
            automaton.accepts[static_cast<size_t>(at)] = rest == 0;
        }
    return automaton;
}

CharAutomaton with_multiples(const Regular& regular, const NumberRange& range) {
    CharAutomaton automaton(regular);
    for (const Json& multiple : range.multiple_of)
        automaton = intersection(determinized(automaton), multiples(multiple));
    return automaton;
}

}  // namespace

Regular any_integer() { return integers(-kMostInteger, kMostInteger); }

Regular any_number() {
    const Regular whole = Regular::choice(
        {one_char('0'), Regular::sequence({json_digit('1', '9'), json_digits(0, kMostDigits)})});
    const Regular exponent = Regular::sequence(
        {Regular::chars(CharSet({{'e', 'e'}, {'E', 'E'}})),
         Regular::optional(Regular::chars(CharSet({{'+', '+'}, {'-', '-'}}))), json_digits(1, 2)});
    return Regular::sequence(
        {Regular::optional(one_char('-')), whole,
         Regular::optional(Regular::sequence({one_char('.'), json_digits(1, kMostDigits + 1)})),
         Regular::optional(exponent)});
}

CharAutomaton integer_within(const NumberRange& range) {
    const int64_t least = whole_bound(strictest(range.least, true), true);
    const int64_t most = whole_bound(strictest(range.most, false), false);
    return with_multiples(least > most ? Regular::nothing() : integers(least, most), range);
}

CharAutomaton number_within(const NumberRange& range) {
    const auto signed_of = [](const std::optional<NumberBound>& bound) {
        return bound ? std::optional(decimal_of(*bound)) : std::nullopt;
    };
    return with_multiples(numbers_within(signed_of(strictest(range.least, true)),
                                         signed_of(strictest(range.most, false))),
                          range);
}

}  // namespace hark
