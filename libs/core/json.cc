#include "core/json.h"

#include "core/error.h"

namespace hark {

nlohmann::json parse_json(std::string_view text, const std::string& where) {
    constexpr int kDeepest = 64;
    const auto check = [&](int depth, nlohmann::json::parse_event_t, nlohmann::json&) {
        if (depth > kDeepest) fail(where, ": JSON is nested deeper than ", kDeepest, " levels");
        return true;
    };
    return nlohmann::json::parse(text, check, false);
}

}  // namespace hark
