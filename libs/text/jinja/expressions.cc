// Expressions of a template.
#include "core/error.h"
#include "text/jinja/interpreter.h"
#include "text/jinja/library.h"
#include "text/jinja/operations.h"

namespace hark::jinja {

Value Interpreter::evaluate(const Node& node) {
    const Depth depth(*this, node.line);
    switch (node.kind) {
        case Kind::constant:
            return node.value;
        case Kind::name:
            return evaluate_name(node);
        case Kind::list:
            return list(evaluate_all(node.parts));
        case Kind::tuple:
            return tuple(evaluate_all(node.parts));
        case Kind::dict:
            return evaluate_dict(node);
        case Kind::attribute:
            return attribute(*this, evaluate(*node.parts[0]), node.name);
        case Kind::subscript: {
            const Value object = evaluate(*node.parts[0]);
            return item(*this, object, evaluate(*node.parts[1]));
        }
        case Kind::slice:
            return evaluate_slice(node);
        case Kind::call:
            return evaluate_call(node);
        case Kind::filter:
            return evaluate_filter(node, nullptr);
        case Kind::test:
            return evaluate_test(node);
        default:
            return evaluate_operator(node);
    }
}

Value Interpreter::evaluate_operator(const Node& node) {
    switch (node.kind) {
        case Kind::conditional:
            return evaluate_conditional(node);
        case Kind::logical_or: {
            const Value left = evaluate(*node.parts[0]);
            return is_true(left) ? left : evaluate(*node.parts[1]);
        }
        case Kind::logical_and: {
            const Value left = evaluate(*node.parts[0]);
            return is_true(left) ? evaluate(*node.parts[1]) : left;
        }
        case Kind::logical_not:
            return !is_true(evaluate(*node.parts[0]));
        case Kind::comparison:
            return evaluate_comparison(node);
        case Kind::arithmetic: {
            const Value left = evaluate(*node.parts[0]);
            const Value right = evaluate(*node.parts[1]);
            line_ = node.line;
            return arithmetic(*this, node.name, left, right);
        }
        case Kind::negative:
        case Kind::positive:
            return negative(evaluate(*node.parts[0]), node.kind == Kind::negative);
        case Kind::concatenation:
            return evaluate_concatenation(node);
        default:
            fail("internal error: a statement as an expression");
    }
}

Value Interpreter::evaluate_name(const Node& node) {
    for (Scope* scope = scope_.get(); scope; scope = scope->parent.get())
        if (const Value* found = scope->find(node.name)) return *found;
    const Value global = find_global(*this, node.name);
    return global.is_undefined() ? undefined("'" + node.name + "' is undefined") : global;
}

Items Interpreter::evaluate_all(const Nodes& nodes) {
    Items values;
    for (const NodePtr& node : nodes) values.push_back(evaluate(*node));
    return values;
}

Value Interpreter::evaluate_conditional(const Node& node) {
    if (is_true(evaluate(*node.parts[0]))) return evaluate(*node.parts[1]);
    if (node.parts[2]) return evaluate(*node.parts[2]);
    return undefined(concat("the inline if-expression on line ", node.line,
                            " evaluated to false and no else section was defined."));
}

Value Interpreter::evaluate_comparison(const Node& node) {
    Value left = evaluate(*node.parts[0]);
    for (size_t i = 0; i < node.operators.size(); ++i) {
        Value right = evaluate(*node.parts[i + 1]);
        if (!compare(*this, left, right, node.operators[i])) return false;
        left = std::move(right);
    }
    return true;
}

Value Interpreter::evaluate_concatenation(const Node& node) {
    Text joined;
    for (const Value& value : evaluate_all(node.parts)) joined.append(str_of(*this, value));
    return text(std::move(joined));
}

Value Interpreter::evaluate_dict(const Node& node) {
    std::vector<std::pair<Value, Value>> items;
    for (size_t i = 0; i < node.parts.size(); i += 2) {
        const Value key = evaluate(*node.parts[i]);
        set_key(*this, items, key, evaluate(*node.parts[i + 1]));
    }
    return dict(std::move(items));
}

Value Interpreter::evaluate_slice(const Node& node) {
    const Value object = evaluate(*node.parts[0]);
    Value bounds[3];
    const Value* given[3] = {};
    for (size_t i = 0; i < 3; ++i) {
        if (!node.parts[i + 1]) continue;
        bounds[i] = evaluate(*node.parts[i + 1]);
        given[i] = &bounds[i];
    }
    return slice(*this, object, given[0], given[1], given[2]);
}

}  // namespace hark::jinja
