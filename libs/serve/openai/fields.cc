#include "serve/openai/fields.h"

#include "gpt/sampling/sampler_settings.h"

namespace hark::serve {

using nlohmann::ordered_json;

void refuse_field(const std::string& name, const std::string& why) {
    throw WebError(400, concat(name, ": ", why), name);
}

Fields::Fields(const std::string& body) {
    try {
        object_ = parse_ordered_json(body, "the request");
    } catch (const Error& why) {
        throw WebError(400, why.what());
    }
    if (object_.is_discarded()) throw WebError(400, "the request's body is not JSON");
    if (!object_.is_object())
        throw WebError(400, concat("expected a JSON object, found ", object_.type_name()));
}

const ordered_json* Fields::find(const char* name) {
    known_.insert(name);
    const auto found = object_.find(name);
    return found == object_.end() || found->is_null() ? nullptr : &*found;
}

bool Fields::flag(const char* name, bool otherwise) {
    const ordered_json* const value = find(name);
    if (!value) return otherwise;
    if (!value->is_boolean())
        refuse_field(name, concat("expected true or false, found ", value->type_name()));
    return value->get<bool>();
}

std::string Fields::text(const char* name, const char* otherwise) {
    const ordered_json* const value = find(name);
    if (!value && otherwise) return otherwise;
    if (!value) refuse_field(name, "is required");
    if (!value->is_string())
        refuse_field(name, concat("expected a text, found ", value->type_name()));
    return value->get<std::string>();
}

std::optional<int64_t> Fields::whole(const char* name, int64_t min, int64_t max) {
    const ordered_json* const value = find(name);
    if (!value) return std::nullopt;
    const std::string wrong =
        gpt::wrong_number(name, *value, static_cast<double>(min), static_cast<double>(max), true);
    if (!wrong.empty()) throw WebError(400, wrong, name);
    return value->get<int64_t>();
}

void Fields::know(std::initializer_list<const char*> names) {
    for (const char* name : names) known_.insert(name);
}

void Fields::check_known() const {
    for (const auto& [name, value] : object_.items())
        if (!value.is_null() && !known_.contains(name)) refuse_field(name, "is not supported");
}

}  // namespace hark::serve
