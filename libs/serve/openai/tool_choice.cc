#include "serve/openai/tool_choice.h"

#include "serve/openai/fields.h"

namespace hark::serve {
namespace {

using nlohmann::ordered_json;

// The name of a function, {"type": "function", "function": {"name": ...}}; empty if it is none.
std::string function_name(const ordered_json& value) {
    if (!value.is_object() || value.value("type", ordered_json()) != "function") return "";
    const ordered_json function = value.value("function", ordered_json());
    if (!function.is_object()) return "";
    const ordered_json name = function.value("name", ordered_json());
    return name.is_string() ? name.get<std::string>() : "";
}

// The schema's places, #/..., are in a larger one now, where the schema is `at`.
void move_references(ordered_json& schema, const std::string& at) {
    if (!schema.is_structured()) return;
    if (schema.is_object() && schema.contains("$ref") && schema["$ref"].is_string()) {
        const std::string target = schema["$ref"].get<std::string>();
        if (target.starts_with('#')) schema["$ref"] = at + target.substr(1);
    }
    for (ordered_json& part : schema) move_references(part, at);
}

ordered_json schema_of_call(const ordered_json& tool, const std::string& name, size_t place) {
    const ordered_json none = {{"type", "object"},
                               {"properties", ordered_json::object()},
                               {"additionalProperties", false}};
    ordered_json arguments = tool["function"].value("parameters", none);
    if (!arguments.is_object() || arguments.value("type", ordered_json()) != "object")
        refuse_field("tools", concat(name, ": parameters: expected a schema of type object"));
    move_references(arguments, concat("#/anyOf/", place, "/properties/arguments"));
    return {{"type", "object"},
            {"properties", {{"name", {{"const", name}}}, {"arguments", std::move(arguments)}}},
            {"required", {"name", "arguments"}},
            {"additionalProperties", false}};
}

}  // namespace

ordered_json call_schema(const ordered_json& tools, const ordered_json& choice) {
    const std::string chosen = function_name(choice);
    if (chosen.empty() && choice != "required")
        refuse_field("tool_choice", concat("expected auto, none, required or a function's name, ",
                                           "found ", choice.dump()));
    ordered_json calls = ordered_json::array();
    for (const ordered_json& tool : tools) {
        const std::string name = function_name(tool);
        if (name.empty()) refuse_field("tools", "expected functions with names");
        if (chosen.empty() || name == chosen)
            calls.push_back(schema_of_call(tool, name, calls.size()));
    }
    if (calls.empty())
        refuse_field("tool_choice",
                     chosen.empty() ? "there are no tools" : concat("no tool is named ", chosen));
    return {{"anyOf", std::move(calls)}};
}

}  // namespace hark::serve
