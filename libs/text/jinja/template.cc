#include "text/jinja/template.h"

#include "core/error.h"
#include "text/jinja/interpreter.h"
#include "text/jinja/json_value.h"
#include "text/jinja/parser.h"
#include "text/utf8.h"

namespace hark::jinja {

Template::Template(std::string_view source, std::string where) : where_(std::move(where)) {
    require(source.size() <= kMaxTemplateBytes, where_, ": a template of ", source.size(),
            " bytes (at most ", kMaxTemplateBytes, ")");
    require(is_valid_utf8(source), where_, ": the template is not valid UTF-8");
    try {
        statements_ = Parser(tokenize(source)).parse();
        check_names(statements_);
        unset_ = find_unset_names(statements_);
    } catch (const Error& error) {
        fail(where_, ": ", error.what());
    }
}

std::vector<Piece> Template::render(const std::vector<Variable>& variables,
                                    const std::tm& now) const {
    try {
        Interpreter interpreter(now);
        for (const Variable& variable : variables)
            interpreter.set_variable(variable.name, from_json(variable.value, variable.is_input));
        std::vector<Piece> pieces;
        interpreter.run(statements_, unset_)
            .for_each_piece([&](std::string_view text, bool from_input) {
                pieces.push_back({std::string(text), from_input});
            });
        return pieces;
    } catch (const Error& error) {
        fail(where_, ": ", error.what());
    }
}

bool Template::uses(std::string_view name) const {
    bool found = false;
    for (const NodePtr& statement : statements_)
        for_each_node(*statement, [&](const Node& node) {
            found |= node.kind == Kind::name && !node.flag && node.name == name;
        });
    return found;
}

bool Template::mentions(std::string_view name) const {
    bool found = false;
    for (const NodePtr& statement : statements_)
        for_each_node(*statement, [&](const Node& node) {
            const Text* text = node.kind == Kind::constant ? node.value.text() : nullptr;
            found |= (node.kind == Kind::attribute && node.name == name) ||
                     (text && text->bytes() == name);
        });
    return found;
}

}  // namespace hark::jinja
