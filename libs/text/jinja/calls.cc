// Calls of functions, macros, filters and tests.
#include <algorithm>

#include "core/error.h"
#include "text/jinja/interpreter.h"
#include "text/jinja/library.h"
#include "text/jinja/objects.h"
#include "text/jinja/operations.h"

namespace hark::jinja {
namespace {

// Removes the named argument and writes its value; false if there is none.
bool take_named(Args& args, std::string_view name, Value& value) {
    const auto found = std::find_if(args.named.begin(), args.named.end(),
                                    [&](const auto& argument) { return argument.first == name; });
    if (found == args.named.end()) return false;
    value = std::move(found->second);
    args.named.erase(found);
    return true;
}

std::string macro_name(const Node& macro) {
    return macro.kind == Kind::macro ? "'" + macro.name + "'" : "None";
}

}  // namespace

Args Interpreter::evaluate_arguments(const CallArguments& arguments) {
    Args args;
    args.positional = evaluate_all(arguments.positional);
    for (const auto& [name, node] : arguments.named) {
        for (const auto& known : args.named)
            require(known.first != name, "keyword argument repeated: ", name);
        args.named.emplace_back(name, evaluate(*node));
    }
    if (arguments.starred)
        for (Value& value : collect(*this, evaluate(*arguments.starred)))
            args.positional.push_back(std::move(value));
    if (!arguments.double_starred) return args;
    const Value more = evaluate(*arguments.double_starred);
    require(more.dict(), "the argument after ** must be a mapping, not ", type_name(more));
    for (const auto& [key, value] : more.dict()->items) {
        require(key.text(), "keywords must be strings");
        charge(1);
        args.named.emplace_back(key.text()->bytes(), value);
    }
    return args;
}

Value Interpreter::evaluate_call(const Node& node) {
    const Value function = evaluate(*node.parts[0]);
    Args args = evaluate_arguments(*node.arguments);
    line_ = node.line;
    return call(*this, function, args);
}

Value Interpreter::evaluate_filter(const Node& node, const Value* captured) {
    const Value operand = node.parts[0] ? evaluate_filter_operand(node, captured) : *captured;
    const Filter filter = find_filter(node.name);
    require(filter, "no filter named '", node.name, "'");
    Args args = evaluate_arguments(*node.arguments);
    line_ = node.line;
    return filter(*this, operand, args);
}

// In a filter block, a chain of filters ends at the block's text.
Value Interpreter::evaluate_filter_operand(const Node& node, const Value* captured) {
    const Node& operand = *node.parts[0];
    if (captured && operand.kind == Kind::filter) {
        const Depth depth(*this, operand.line);
        return evaluate_filter(operand, captured);
    }
    return evaluate(operand);
}

Value Interpreter::evaluate_test(const Node& node) {
    const Value operand = evaluate(*node.parts[0]);
    const Test test = find_test(node.name);
    require(test, "no test named '", node.name, "'");
    Args args = evaluate_arguments(*node.arguments);
    line_ = node.line;
    return test(*this, operand, args);
}

Value Interpreter::call_macro(const Node& macro, const ScopePtr& scope, Args& args) {
    require(calls_ < kMaxCallDepth, "calls are nested deeper than ", kMaxCallDepth, " levels");
    const Block block(*this, macro.unset, scope);
    bind_macro(macro, args, *scope_);
    ++calls_;
    Text output;
    Flow flow = Flow::next;
    try {
        output = capture(macro.body, flow);
    } catch (...) {
        --calls_;
        throw;
    }
    --calls_;
    return text(std::move(output));
}

// Parameters shadow names outside before their defaults are evaluated, in their order.
void Interpreter::bind_macro(const Node& macro, Args& args, Scope& scope) {
    const size_t count = macro.parameters.size();
    std::vector<bool> missing(count, false);
    for (size_t i = 0; i < count; ++i) {
        const std::string& name = macro.parameters[i];
        Value value = undefined("'" + name + "' is undefined");
        missing[i] = i >= args.positional.size() && !take_named(args, name, value);
        scope.set(name, i < args.positional.size() ? args.positional[i] : value);
    }
    bind_special(macro, args, scope);
    const size_t skipped = macro.kind == Kind::call_block ? 1 : 0;  // parts[0] is the call
    const size_t without_default = count - (macro.parts.size() - skipped);
    for (size_t i = 0; i < count; ++i) {
        if (!missing[i]) continue;
        const std::string& name = macro.parameters[i];
        scope.set(name, i < without_default
                            ? undefined("parameter '" + name + "' was not provided")
                            : evaluate(*macro.parts[skipped + i - without_default]));
    }
}

// caller, kwargs and varargs, which a macro has if its body uses them.
void Interpreter::bind_special(const Node& macro, Args& args, Scope& scope) {
    if (macro.uses_caller) {
        Value caller = None{};
        take_named(args, "caller", caller);
        scope.set("caller", caller.is_none() ? undefined("No caller defined") : caller);
    }
    if (macro.uses_kwargs) {
        std::vector<std::pair<Value, Value>> items;
        for (const auto& [name, value] : args.named) items.emplace_back(text(name), value);
        scope.set("kwargs", dict(std::move(items)));
    } else if (!args.named.empty()) {
        fail("macro ", macro_name(macro), " takes no keyword argument '", args.named.front().first,
             "'");
    }
    const size_t count = std::min(args.positional.size(), macro.parameters.size());
    if (macro.uses_varargs)
        scope.set("varargs", tuple(Items(args.positional.begin() + static_cast<ptrdiff_t>(count),
                                         args.positional.end())));
    else
        require(args.positional.size() <= count, "macro ", macro_name(macro),
                " takes not more than ", macro.parameters.size(), " argument(s)");
}

Bound::Bound(std::string_view function, Args& args, std::initializer_list<std::string_view> names,
             size_t required)
    : function_(function), values_(names.size()) {
    require(args.positional.size() <= names.size(), function, " takes at most ", names.size(),
            " arguments (got ", args.positional.size(), ")");
    for (size_t i = 0; i < args.positional.size(); ++i) values_[i] = &args.positional[i];
    for (const auto& [name, value] : args.named) {
        const auto known = std::find(names.begin(), names.end(), name);
        require(known != names.end(), function, " takes no keyword argument '", name, "'");
        const Value*& place = values_[static_cast<size_t>(known - names.begin())];
        require(!place, function, " got several values for '", name, "'");
        place = &value;
    }
    for (size_t i = 0; i < required; ++i)
        require(values_[i], function, " needs the argument '", names.begin()[i], "'");
}

const Value* Bound::some(size_t i) const {
    return values_[i] && !values_[i]->is_none() ? values_[i] : nullptr;
}

const Text& Bound::text(size_t i) const {
    const Text* text = values_[i]->text();
    require(text, function_, ": argument ", i + 1, " must be str, not ", type_name(*values_[i]));
    return *text;
}

int64_t Bound::integer(size_t i, int64_t otherwise) const {
    if (!values_[i]) return otherwise;
    require_defined(*values_[i]);
    const auto number = values_[i]->integer();
    require(number.has_value(), function_, ": argument ", i + 1, " must be int, not ",
            type_name(*values_[i]));
    return *number;
}

bool Bound::flag(size_t i, bool otherwise) const {
    return values_[i] ? is_true(*values_[i]) : otherwise;
}

}  // namespace hark::jinja
