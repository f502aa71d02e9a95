// Statements of a template.
#include "core/error.h"
#include "text/jinja/interpreter.h"
#include "text/jinja/library.h"
#include "text/jinja/objects.h"
#include "text/jinja/operations.h"

namespace hark::jinja {

Interpreter::Flow Interpreter::execute(const Nodes& statements) {
    for (const NodePtr& statement : statements)
        if (const Flow flow = execute(*statement); flow != Flow::next) return flow;
    return Flow::next;
}

Interpreter::Flow Interpreter::execute(const Node& statement) {
    const Depth depth(*this, statement.line);
    switch (statement.kind) {
        case Kind::data:
            print(statement.value);
            break;
        case Kind::output:
            for (const NodePtr& part : statement.parts) print(evaluate(*part));
            break;
        case Kind::if_statement:
            return execute_if(statement);
        case Kind::for_statement:
            return execute_for(statement, evaluate(*statement.parts[1]), 0);
        case Kind::set_statement:
            assign(*statement.parts[0], evaluate(*statement.parts[1]));
            break;
        case Kind::set_block:
            return execute_set_block(statement);
        case Kind::macro:
            scope_->set(statement.name, object(std::make_shared<Macro>(statement, scope_)));
            break;
        case Kind::call_block:
            call_block(statement);
            break;
        case Kind::filter_block:
            return execute_filter_block(statement);
        case Kind::with_statement:
            return execute_with(statement);
        case Kind::generation:
            return execute_generation(statement);
        case Kind::break_statement:
            return Flow::end_loop;
        case Kind::continue_statement:
            return Flow::next_round;
        default:
            fail("internal error: an expression as a statement");
    }
    return Flow::next;
}

Interpreter::Flow Interpreter::execute_if(const Node& statement) {
    if (is_true(evaluate(*statement.parts[0]))) return execute(statement.body);
    for (const NodePtr& branch : statement.otherwise) {
        const Depth depth(*this, branch->line);
        if (branch->parts.empty() || is_true(evaluate(*branch->parts[0])))
            return execute(branch->body);
    }
    return Flow::next;
}

// The values belong to the scope outside.
Interpreter::Flow Interpreter::execute_with(const Node& statement) {
    Items values;
    for (size_t i = 1; i < statement.parts.size(); i += 2)
        values.push_back(evaluate(*statement.parts[i]));
    const Block block(*this, statement.unset);
    for (size_t i = 0; i < values.size(); ++i) assign(*statement.parts[2 * i], values[i]);
    return execute(statement.body);
}

Interpreter::Flow Interpreter::execute_generation(const Node& statement) {
    const Block block(*this, statement.unset);
    return execute(statement.body);
}

// The statements' output, empty if a loop ends inside them.
Text Interpreter::capture(const Nodes& statements, Flow& flow) {
    Text captured;
    Text* const saved = output_;
    output_ = &captured;
    try {
        flow = execute(statements);
    } catch (...) {
        output_ = saved;
        throw;
    }
    output_ = saved;
    return captured;
}

Interpreter::Flow Interpreter::execute_filter_block(const Node& statement) {
    const Block block(*this, statement.unset);
    Flow flow = Flow::next;
    const Value captured = text(capture(statement.body, flow));
    if (flow == Flow::next) print(evaluate_filter(*statement.parts[0], &captured));
    return flow;
}

Interpreter::Flow Interpreter::execute_set_block(const Node& statement) {
    Value value;
    {
        const Block block(*this, statement.unset);
        Flow flow = Flow::next;
        value = text(capture(statement.body, flow));
        if (flow != Flow::next) return flow;
        if (statement.parts[1]) value = evaluate_filter(*statement.parts[1], &value);
    }
    assign(*statement.parts[0], value);
    return Flow::next;
}

void Interpreter::call_block(const Node& statement) {
    const Node& node = *statement.parts[0];
    const Value function = evaluate(*node.parts[0]);
    Args args = evaluate_arguments(*node.arguments);
    args.named.emplace_back("caller", object(std::make_shared<Macro>(statement, scope_)));
    print(call(*this, function, args));
}

void Interpreter::assign(const Node& target, const Value& value) {
    if (target.kind == Kind::tuple) return unpack(target, value);
    if (target.kind == Kind::name) return scope_->set(target.name, value);
    const Value found = evaluate_name(target);
    auto* names = found.as<Namespace>();
    require(names, "cannot assign attribute on non-namespace object ", target.name);
    names->set(target.parts[0]->value.text()->bytes(), value);
}

void Interpreter::unpack(const Node& target, const Value& value) {
    const Items items = collect(*this, value);
    require(items.size() == target.parts.size(), "cannot unpack ", items.size(), " values to ",
            target.parts.size(), " names");
    for (size_t i = 0; i < items.size(); ++i) assign(*target.parts[i], items[i]);
}

void Interpreter::print(const Value& value) {
    if (const Text* plain = value.text()) {
        charge_bytes(plain->size());
        output_->append(*plain);
    } else {
        output_->append(str_of(*this, value));
    }
}

}  // namespace hark::jinja
