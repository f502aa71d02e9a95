#include "gpt/answers/constraint_settings.h"

#include "core/files/files.h"

namespace hark::gpt {
namespace {

using nlohmann::ordered_json;
using Kind = ConstraintRequest::Kind;

constexpr size_t kMostFileBytes = size_t{16} << 20;

std::string read_response_format(const ordered_json& format, ConstraintRequest& request) {
    const bool has_type =
        format.is_object() && format.contains("type") && format["type"].is_string();
    const std::string type = has_type ? format["type"].get<std::string>() : "";
    if (type == "text") return "";
    if (type == "json_object") {
        request.kind = Kind::json_object;
        return "";
    }
    if (type != "json_schema")
        return "response_format: expected an object with type text, json_object or json_schema";
    const auto found = format.find("json_schema");
    const bool has_schema =
        found != format.end() && found->is_object() && found->contains("schema");
    const ordered_json schema = has_schema ? (*found)["schema"] : ordered_json();
    if (!schema.is_object() && !schema.is_boolean())
        return "response_format: expected json_schema, an object with schema";
    request = {Kind::schema, json_text(schema)};
    return "";
}

}  // namespace

void ConstraintSettings::flags(Flags& flags) {
    flags.section("Constrained answers");
    flags.add("constrain", form_, {"json"}, "FORM form of each answer: json, an object or a list")
        .own_variable()
        .shows_default("any text")
        .details(
            "Only tokens that continue such a text are drawn. An answer that --max-tokens or "
            "--stop cuts before it is whole is written, named on stderr, and the exit status is "
            "1. Of a chat's answer the constraint begins after the reasoning.");
    flags.add_name("json-schema", schema_file_, "FILE JSON schema that each answer fits")
        .own_variable()
        .completes(Completes::file)
        .details(
            "Draft 2020-12. A keyword that is not supported is an error that names it, before the "
            "model is read; docs/models/constrained.md has the list. Properties are written in "
            "the schema's order.");
    flags.add_name("regex", pattern_, "PATTERN regular expression that each answer is")
        .own_variable()
        .details(
            "Of the whole answer, in ECMAScript's syntax without back references, lookahead, "
            "lookbehind and \\b.");
    flags.add_name("grammar", grammar_file_, "FILE grammar in GBNF that each answer is of")
        .own_variable()
        .completes(Completes::file)
        .details("The notation of llama.cpp; the answer is the rule `root`.");
}

bool ConstraintSettings::is_set() const {
    return !form_.empty() || !schema_file_.empty() || !pattern_.empty() || !grammar_file_.empty();
}

void ConstraintSettings::check() const {
    const int given =
        !form_.empty() + !schema_file_.empty() + !pattern_.empty() + !grammar_file_.empty();
    require_usage(given <= 1,
                  "--constrain, --json-schema, --regex and --grammar exclude one another");
    require_usage(!schema_file_.starts_with('{'),
                  "--json-schema takes a file, not the schema itself: --json-schema <(echo '",
                  schema_file_, "')");
    if (pattern_.empty()) return;
    try {
        check_constraint({Kind::regex, pattern_});
    } catch (const Error& why) {
        throw UsageError(concat("--regex: ", why.what()));
    }
}

ConstraintRequest ConstraintSettings::request() const {
    if (!form_.empty()) return {Kind::json, ""};
    if (!pattern_.empty()) return {Kind::regex, pattern_};
    const bool is_schema = !schema_file_.empty();
    const std::string& file = is_schema ? schema_file_ : grammar_file_;
    if (file.empty()) return {};
    ConstraintRequest request{is_schema ? Kind::schema : Kind::grammar,
                              read_file_or_pipe(file, kMostFileBytes)};
    try {
        check_constraint(request);
    } catch (const Error& why) {
        fail(file, ": ", why.what());
    }
    return request;
}

std::string read_constraint(const ordered_json& line, std::optional<ConstraintRequest>& request) {
    int given = 0;
    const auto field = [&](const char* name) -> const ordered_json* {
        const auto found = line.find(name);
        if (found == line.end() || found->is_null()) return nullptr;
        ++given;
        return &*found;
    };
    std::string wrong;
    if (const ordered_json* format = field("response_format"))
        wrong = read_response_format(*format, request.emplace());
    for (const auto& [name, kind] : {std::pair{"regex", Kind::regex}, {"grammar", Kind::grammar}}) {
        const ordered_json* const text = field(name);
        if (!text) continue;
        if (!text->is_string() || text->get_ref<const std::string&>().empty())
            return concat(name, ": expected a text that is not empty");
        request = ConstraintRequest{kind, text->get<std::string>()};
    }
    if (given > 1) return "response_format, regex and grammar exclude one another";
    return wrong;
}

}  // namespace hark::gpt
