// Filters and tests that do not exist: an error before rendering, except inside a condition, where
// it is one only once it is used (jinja2 3.1.6, compiler.py, soft frames).
#include "core/error.h"
#include "text/jinja/library.h"
#include "text/jinja/template.h"

namespace hark::jinja {
namespace {

void check(const NodePtr& node, bool soft);

void check(const Nodes& nodes, bool soft) {
    for (const NodePtr& node : nodes) check(node, soft);
}

void check_arguments(const CallArguments& arguments, bool soft) {
    check(arguments.positional, soft);
    for (const auto& named : arguments.named) check(named.second, soft);
    check(arguments.starred, soft);
    check(arguments.double_starred, soft);
}

void check(const NodePtr& node, bool soft) {
    if (!node) return;
    bool inner = soft;
    switch (node->kind) {
        case Kind::filter:
            if (!soft && !find_filter(node->name))
                fail("line ", node->line, ": no filter named '", node->name, "'");
            break;
        case Kind::test:
            if (!soft && !find_test(node->name))
                fail("line ", node->line, ": no test named '", node->name, "'");
            break;
        case Kind::if_statement:
        case Kind::conditional:
            soft = inner = true;
            break;
        default:
            if (opens_scope(node->kind)) inner = false;
            break;
    }
    check(node->parts, soft);
    if (node->arguments) check_arguments(*node->arguments, soft);
    check(node->body, inner);
    check(node->otherwise, inner);
}

}  // namespace

void check_names(const Nodes& nodes) { check(nodes, false); }

}  // namespace hark::jinja
