// Which names a scope hides before it sets them. Jinja compiles a scope to Python, where a name
// that the scope sets is a local variable of all of it: scopes inside see it as undefined until
// then, even if the template was given a value. Not so if the scope itself reads the name first, or
// sets it in a condition (jinja2 3.1.6, idtracking.py).
#include <map>
#include <set>

#include "text/jinja/template.h"

namespace hark::jinja {
namespace {

enum class Load { outside, unset };

struct Symbols {
    const Symbols* parent = nullptr;
    std::map<std::string, Load> names;
    std::set<std::string> stores;

    bool knows(const std::string& name) const {
        for (const Symbols* scope = this; scope; scope = scope->parent)
            if (scope->names.count(name)) return true;
        return false;
    }
    void load(const std::string& name) {
        if (!knows(name)) names[name] = Load::outside;
    }
    void declare(const std::string& name) {
        stores.insert(name);
        names[name] = Load::outside;
    }
    void store(const std::string& name) {
        stores.insert(name);
        if (names.count(name)) return;
        names[name] = parent && parent->knows(name) ? Load::outside : Load::unset;
    }
};

void visit(const NodePtr& node, Symbols& symbols);

void visit(const Nodes& nodes, Symbols& symbols) {
    for (const NodePtr& node : nodes) visit(node, symbols);
}

// What a branch sets may keep its value from outside.
void merge(Symbols& symbols, const std::vector<Symbols>& branches) {
    const std::set<std::string> before = symbols.stores;
    for (const Symbols& branch : branches) {
        for (const auto& [name, load] : branch.names) symbols.names[name] = load;
        symbols.stores.insert(branch.stores.begin(), branch.stores.end());
    }
    for (const std::string& name : symbols.stores)
        if (!before.count(name)) symbols.names[name] = Load::outside;
}

void visit_if(const Node& node, Symbols& symbols) {
    visit(node.parts[0], symbols);
    std::vector<Symbols> branches(3, symbols);  // body, every elif, else
    visit(node.body, branches[0]);
    for (const NodePtr& branch : node.otherwise) {
        if (branch->parts.empty())
            visit(branch->body, branches[2]);
        else
            visit_if(*branch, branches[1]);
    }
    merge(symbols, branches);
}

void visit_children(const Node& node, Symbols& symbols) {
    visit(node.parts, symbols);
    if (!node.arguments) return;
    visit(node.arguments->positional, symbols);
    for (const auto& named : node.arguments->named) visit(named.second, symbols);
    visit(node.arguments->starred, symbols);
    visit(node.arguments->double_starred, symbols);
}

void visit(const NodePtr& pointer, Symbols& symbols) {
    if (!pointer) return;
    const Node& node = *pointer;
    switch (node.kind) {
        case Kind::name:
            return node.flag ? symbols.store(node.name) : symbols.load(node.name);
        case Kind::namespace_target:
            return symbols.load(node.name);
        case Kind::if_statement:
            return visit_if(node, symbols);
        case Kind::macro:
            return symbols.store(node.name);
        case Kind::set_statement:
            visit(node.parts[1], symbols);
            return visit(node.parts[0], symbols);
        case Kind::for_statement:
            return visit(node.parts[1], symbols);
        case Kind::set_block:
        case Kind::call_block:
        case Kind::filter_block:
            return visit(node.parts[0], symbols);
        case Kind::with_statement:
            for (size_t i = 1; i < node.parts.size(); i += 2) visit(node.parts[i], symbols);
            return;
        case Kind::generation:
            return;
        default:
            return visit_children(node, symbols);
    }
}

void declare_target(const Node& target, Symbols& symbols) {
    if (target.kind == Kind::name) symbols.declare(target.name);
    for (const NodePtr& part : target.parts) declare_target(*part, symbols);
}

std::vector<std::string> unset_names(const Symbols& symbols) {
    std::vector<std::string> names;
    for (const auto& [name, load] : symbols.names)
        if (load == Load::unset) names.push_back(name);
    return names;
}

void find_scopes(const Nodes& nodes, const Symbols& symbols);

// The names that a statement's own scope begins with.
void declare_parameters(const Node& node, Symbols& symbols) {
    for (const std::string& parameter : node.parameters) symbols.declare(parameter);
    if (node.kind == Kind::macro) visit(node.parts, symbols);
    if (node.uses_caller) symbols.declare("caller");
    if (node.uses_kwargs) symbols.declare("kwargs");
    if (node.uses_varargs) symbols.declare("varargs");
    if (node.kind == Kind::for_statement) {
        symbols.declare("loop");
        declare_target(*node.parts[0], symbols);
    }
    if (node.kind == Kind::with_statement)
        for (size_t i = 0; i < node.parts.size(); i += 2) declare_target(*node.parts[i], symbols);
}

void find_scope(Node& node, const Symbols& outside) {
    Symbols symbols{&outside, {}, {}};
    declare_parameters(node, symbols);
    visit(node.body, symbols);
    node.unset = unset_names(symbols);
    find_scopes(node.body, symbols);
    if (node.kind != Kind::for_statement) return;
    Symbols otherwise{&outside, {}, {}};
    visit(node.otherwise, otherwise);
    node.unset_otherwise = unset_names(otherwise);
    find_scopes(node.otherwise, otherwise);
}

void find_scopes(const Nodes& nodes, const Symbols& symbols) {
    for (const NodePtr& node : nodes) {
        if (node->kind == Kind::if_statement) {
            find_scopes(node->body, symbols);
            for (const NodePtr& branch : node->otherwise) find_scopes(branch->body, symbols);
        } else if (opens_scope(node->kind)) {
            find_scope(*node, symbols);
        }
    }
}

}  // namespace

std::vector<std::string> find_unset_names(const Nodes& nodes) {
    Symbols symbols;
    visit(nodes, symbols);
    find_scopes(nodes, symbols);
    return unset_names(symbols);
}

}  // namespace hark::jinja
