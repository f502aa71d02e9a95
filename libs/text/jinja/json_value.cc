#include "text/jinja/json_value.h"

#include <algorithm>

#include "core/error.h"
#include "text/utf8.h"

namespace hark::jinja {
namespace {

constexpr int kMaxJsonHeight = 64;

Value text_from(const std::string& bytes, bool is_input) {
    return std::make_shared<const Text>(replace_invalid(bytes), is_input);
}

Value convert(const nlohmann::ordered_json& json, bool is_input, int depth) {
    require(depth <= kMaxJsonHeight, "JSON is nested deeper than ", kMaxJsonHeight, " levels");
    switch (json.type()) {
        case nlohmann::ordered_json::value_t::boolean:
            return json.get<bool>();
        case nlohmann::ordered_json::value_t::number_integer:
            return json.get<int64_t>();
        case nlohmann::ordered_json::value_t::number_unsigned:
            require(json.get<uint64_t>() <= static_cast<uint64_t>(INT64_MAX), "the integer ",
                    json.get<uint64_t>(), " has more than 63 bits");
            return json.get<int64_t>();
        case nlohmann::ordered_json::value_t::number_float:
            return json.get<double>();
        case nlohmann::ordered_json::value_t::string:
            return text_from(json.get_ref<const std::string&>(), is_input);
        case nlohmann::ordered_json::value_t::array: {
            List list;
            for (const auto& item : json) {
                list.items.push_back(convert(item, is_input, depth + 1));
                list.height = std::max(list.height, list.items.back().height() + 1);
            }
            return std::make_shared<const List>(std::move(list));
        }
        case nlohmann::ordered_json::value_t::object: {
            Dict dict;
            for (const auto& [key, item] : json.items()) {
                dict.items.emplace_back(text_from(key, is_input),
                                        convert(item, is_input, depth + 1));
                dict.height = std::max(dict.height, dict.items.back().second.height() + 1);
            }
            return std::make_shared<const Dict>(std::move(dict));
        }
        default:
            return None{};
    }
}

}  // namespace

Value from_json(const nlohmann::ordered_json& json, bool is_input) {
    return convert(json, is_input, 1);
}

}  // namespace hark::jinja
