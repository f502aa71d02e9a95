#include "text/constrain/grammar.h"

#include "core/error.h"

namespace hark {
namespace {

constexpr size_t kMostNodes = size_t{4} << 20;

}  // namespace

Grammar::Expr Grammar::add(Node node) {
    require(nodes_.size() < kMostNodes, "the constraint is too large (more than ", kMostNodes,
            " parts)");
    nodes_.push_back(std::move(node));
    return static_cast<Expr>(nodes_.size() - 1);
}

Grammar::Expr Grammar::range(int32_t first, int32_t last) {
    return add({.kind = Kind::range, .first = first, .last = last, .parts = {}});
}

Grammar::Expr Grammar::text(std::string_view bytes) {
    std::vector<Expr> parts;
    for (const char c : bytes) {
        const auto byte = static_cast<unsigned char>(c);
        parts.push_back(range(byte, byte));
    }
    return parts.size() == 1 ? parts[0] : sequence(std::move(parts));
}

Grammar::Expr Grammar::sequence(std::vector<Expr> parts) {
    return add({.kind = Kind::sequence, .parts = std::move(parts)});
}

Grammar::Expr Grammar::choice(std::vector<Expr> parts) {
    return add({.kind = Kind::choice, .parts = std::move(parts)});
}

Grammar::Expr Grammar::repeat(Expr part, int64_t least, int64_t most) {
    return add({.kind = Kind::repeat, .least = least, .most = most, .parts = {part}});
}

Grammar::Expr Grammar::graph(Graph graph) {
    graphs_.push_back(std::move(graph));
    return add(
        {.kind = Kind::graph, .first = static_cast<int32_t>(graphs_.size() - 1), .parts = {}});
}

Grammar::Expr Grammar::call(Rule rule) {
    return add({.kind = Kind::call, .first = rule, .parts = {}});
}

Grammar::Rule Grammar::add_rule(std::string name, Calls calls) {
    rules_.push_back({std::move(name), calls, -1});
    return static_cast<Rule>(rules_.size() - 1);
}

}  // namespace hark
