// The syntax tree of a template.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "text/jinja/value.h"

namespace hark::jinja {

struct Node;
using NodePtr = std::unique_ptr<Node>;
using Nodes = std::vector<NodePtr>;

struct CallArguments {
    Nodes positional;
    std::vector<std::pair<std::string, NodePtr>> named;
    NodePtr starred;         // *list
    NodePtr double_starred;  // **dict
};

enum class Kind {
    // Expressions. What `parts` holds is given after each.
    constant,          // value
    name,              // name
    namespace_target,  // the attribute's name, a constant; name
    list,              // items
    tuple,             // items
    dict,              // key, value, key, value ...
    attribute,         // object; name
    subscript,         // object, key
    slice,             // object, begin, end, step; each may be null
    call,              // function; arguments
    filter,            // operand, null in a filter block; name, arguments
    test,              // operand; name, arguments
    conditional,       // condition, value, other value or null
    logical_or,        // left, right
    logical_and,       // left, right
    logical_not,       // operand
    comparison,        // left, right, right ...; operators
    arithmetic,        // left, right; name is the operator
    negative,          // operand
    positive,          // operand
    concatenation,     // operands of ~

    // Statements.
    data,            // value
    output,          // expressions
    if_statement,    // condition; body, otherwise
    for_statement,   // target, iterable, filter or null; body, otherwise; flag: recursive
    set_statement,   // target, value
    set_block,       // target, filter or null; body
    macro,           // parameters' names, then the defaults of the last ones; body
    call_block,      // call, then as a macro's; body
    filter_block,    // filter; body
    with_statement,  // target, value, target, value ...; body
    generation,      // body
    break_statement,
    continue_statement,
};

// Whether the statement's body has names of its own. A condition's has not.
inline bool opens_scope(Kind kind) {
    switch (kind) {
        case Kind::for_statement:
        case Kind::set_block:
        case Kind::macro:
        case Kind::call_block:
        case Kind::filter_block:
        case Kind::with_statement:
        case Kind::generation:
            return true;
        default:
            return false;
    }
}

struct Node {
    Kind kind = Kind::constant;
    bool flag = false;
    int line = 0;
    int height = 0;  // of the tree below it
    std::string name;
    Value value;
    Nodes parts;
    Nodes body;
    Nodes otherwise;
    std::unique_ptr<CallArguments> arguments;
    std::vector<std::string> operators;  // of a comparison
    // Of a macro and a call block: its parameters, and whether the body uses these names.
    std::vector<std::string> parameters;
    bool uses_caller = false;
    bool uses_kwargs = false;
    bool uses_varargs = false;
    // Names that are undefined in the scope of body and otherwise until they are set (symbols.cc).
    std::vector<std::string> unset;
    std::vector<std::string> unset_otherwise;
};

// Calls f(node) for the node and everything below it, in the order of the text.
template <class F>
void for_each_node(const Node& node, F&& f) {
    f(node);
    const auto all = [&](const Nodes& nodes) {
        for (const NodePtr& child : nodes)
            if (child) for_each_node(*child, f);
    };
    all(node.parts);
    if (node.arguments) {
        all(node.arguments->positional);
        for (const auto& named : node.arguments->named) for_each_node(*named.second, f);
        if (node.arguments->starred) for_each_node(*node.arguments->starred, f);
        if (node.arguments->double_starred) for_each_node(*node.arguments->double_starred, f);
    }
    all(node.body);
    all(node.otherwise);
}

}  // namespace hark::jinja
