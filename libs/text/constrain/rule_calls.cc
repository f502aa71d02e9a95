#include "text/constrain/rule_calls.h"

#include <algorithm>

#include "core/error.h"

namespace hark {
namespace {

constexpr int64_t kSmallRule = 24, kMostExpanded = 4096;  // nodes of a rule, calls in it expanded

class CallFinder {
  public:
    explicit CallFinder(const Grammar& grammar)
        : grammar_(grammar),
          calls_(grammar.rules().size()),
          in_repeat_(grammar.rules().size()),
          sizes_(grammar.rules().size(), -1) {}

    RuleCalls find(RuleCalls calls) {
        const size_t n = grammar_.rules().size();
        calls.reachable.assign(n, false);
        std::vector<int32_t> open = {grammar_.root()};
        calls.reachable[static_cast<size_t>(grammar_.root())] = true;
        while (!open.empty()) {
            const int32_t rule = open.back();
            open.pop_back();
            const Grammar::RuleInfo& info = grammar_.rules()[static_cast<size_t>(rule)];
            require(info.expr >= 0, "internal error: the rule ", info.name, " has no definition");
            visit(rule, info.expr, false);
            for (const int32_t called : calls_[static_cast<size_t>(rule)])
                if (!calls.reachable[static_cast<size_t>(called)]) {
                    calls.reachable[static_cast<size_t>(called)] = true;
                    open.push_back(called);
                }
        }
        calls.expanded.assign(n, false);
        find_recursive();
        // Callees first, so that a rule's size is known with what is copied into it.
        for (const int32_t rule : order_) {
            const auto r = static_cast<size_t>(rule);
            const bool may = grammar_.rules()[r].calls == Grammar::Calls::expanded &&
                             !recursive_[r] && rule != grammar_.root();
            sizes_[r] = size_of(grammar_.rules()[r].expr, calls);
            calls.expanded[r] =
                may && (in_repeat_[r] ? sizes_[r] <= kMostExpanded : sizes_[r] <= kSmallRule);
        }
        return calls;
    }

  private:
    void visit(int32_t rule, Grammar::Expr expr, bool repeats) {
        const Grammar::Node& node = grammar_.node(expr);
        if (node.kind == Grammar::Kind::call) {
            calls_[static_cast<size_t>(rule)].push_back(node.first);
            if (repeats) in_repeat_[static_cast<size_t>(node.first)] = true;
        }
        const bool loops = node.kind == Grammar::Kind::repeat && node.most != 1;
        for (const Grammar::Expr part : node.parts) visit(rule, part, repeats || loops);
        if (node.kind == Grammar::Kind::graph)
            for (const Grammar::Graph::Edge& edge : grammar_.graph_of(node).edges)
                visit(rule, edge.label, repeats);
    }

    // Tarjan's strongly connected components, without recursion of its own.
    void find_recursive() {
        const size_t n = calls_.size();
        recursive_.assign(n, false);
        std::vector<int32_t> index(n, -1), low(n, 0), stack;
        std::vector<bool> on_stack(n);
        int32_t next_index = 0;
        struct Visit {
            int32_t rule;
            size_t edge;
        };
        std::vector<Visit> visits = {{grammar_.root(), 0}};
        while (!visits.empty()) {
            const auto r = static_cast<size_t>(visits.back().rule);
            if (visits.back().edge == 0 && index[r] < 0) {
                index[r] = low[r] = next_index++;
                stack.push_back(visits.back().rule);
                on_stack[r] = true;
            }
            if (visits.back().edge < calls_[r].size()) {
                const int32_t called = calls_[r][visits.back().edge++];
                const auto c = static_cast<size_t>(called);
                if (c == r) recursive_[r] = true;
                if (index[c] < 0)
                    visits.push_back({called, 0});
                else if (on_stack[c])
                    low[r] = std::min(low[r], index[c]);
                continue;
            }
            if (low[r] == index[r]) close_component(static_cast<int32_t>(r), stack, on_stack);
            visits.pop_back();
            if (!visits.empty()) {
                const auto caller = static_cast<size_t>(visits.back().rule);
                low[caller] = std::min(low[caller], low[r]);
            }
        }
    }

    void close_component(int32_t rule, std::vector<int32_t>& stack, std::vector<bool>& on_stack) {
        const bool several = stack.back() != rule;
        for (int32_t member = -1; member != rule;) {
            member = stack.back();
            stack.pop_back();
            on_stack[static_cast<size_t>(member)] = false;
            if (several) recursive_[static_cast<size_t>(member)] = true;
            order_.push_back(member);
        }
    }

    int64_t size_of(Grammar::Expr expr, const RuleCalls& calls) const {
        const Grammar::Node& node = grammar_.node(expr);
        int64_t size = 1;
        if (node.kind == Grammar::Kind::call && calls.expanded[static_cast<size_t>(node.first)])
            size += sizes_[static_cast<size_t>(node.first)];
        for (const Grammar::Expr part : node.parts) size += size_of(part, calls);
        if (node.kind == Grammar::Kind::graph)
            for (const Grammar::Graph::Edge& edge : grammar_.graph_of(node).edges)
                size += size_of(edge.label, calls);
        if (node.kind == Grammar::Kind::repeat) {
            const int64_t copies = node.most == kUnlimited ? node.least + 1 : node.most;
            size = size > kMostExpanded / std::max<int64_t>(copies, 1) ? kMostExpanded + 1
                                                                       : size * copies;
        }
        return std::min(size, kMostExpanded + 1);
    }

    const Grammar& grammar_;
    std::vector<std::vector<int32_t>> calls_;
    std::vector<bool> in_repeat_, recursive_;
    std::vector<int64_t> sizes_;
    std::vector<int32_t> order_;
};

}  // namespace

RuleCalls::RuleCalls(const Grammar& grammar) { *this = CallFinder(grammar).find(std::move(*this)); }

}  // namespace hark
