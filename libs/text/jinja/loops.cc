// The statement for.
#include "core/error.h"
#include "text/jinja/interpreter.h"
#include "text/jinja/objects.h"
#include "text/jinja/operations.h"

namespace hark::jinja {
namespace {

// Keeps a loop that has ended and that a value still holds, to be released at the end.
class Keeper {
  public:
    Keeper(const std::shared_ptr<Loop>& loop, std::vector<std::shared_ptr<Object>>& kept)
        : loop_(loop), kept_(kept) {}
    ~Keeper() {
        if (loop_.use_count() > kOwnUses) kept_.push_back(loop_);
    }

  private:
    static constexpr long kOwnUses = 2;  // execute_for's pointer and its value

    const std::shared_ptr<Loop>& loop_;
    std::vector<std::shared_ptr<Object>>& kept_;
};

}  // namespace

// Items that pass the loop's condition, which is evaluated when an item is due.
Next Interpreter::loop_items(const Node& loop, const Value& iterable) {
    Next items = iterate(*this, iterable);
    if (!loop.parts[2]) return items;
    return [this, &loop, items = std::move(items)](Value& item) {
        while (items(item)) {
            const Depth depth(*this, loop.line);
            const Block block(*this, {});
            assign(*loop.parts[0], item);
            if (is_true(evaluate(*loop.parts[2]))) return true;
        }
        return false;
    };
}

Interpreter::Flow Interpreter::loop_round(const Node& loop, const Value& item, const Value& state) {
    const Depth depth(*this, loop.line);
    const Block block(*this, loop.unset);
    scope_->set("loop", state);
    assign(*loop.parts[0], item);
    return execute(loop.body);
}

Interpreter::Flow Interpreter::execute_for(const Node& loop, const Value& iterable, int depth) {
    bool is_empty = true;
    {
        const auto state = std::make_shared<Loop>(loop_items(loop, iterable), depth);
        if (loop.flag) state->set_recursion(loop, scope_);
        const Value shared = object(state, iterable.height());
        const Keeper keeper(state, kept_);
        Value item;
        while (state->advance(item)) {
            const Flow flow = loop_round(loop, item, shared);
            if (flow == Flow::end_loop) break;
            // As in Jinja, rounds that continue and break end do not count for the else branch.
            if (flow == Flow::next) is_empty = false;
        }
    }
    if (!is_empty || loop.otherwise.empty()) return Flow::next;
    const Block block(*this, loop.unset_otherwise);
    return execute(loop.otherwise);
}

Text Interpreter::render_loop(const Node& loop, const Value& iterable, const ScopePtr& scope,
                              int depth) {
    require(calls_ < kMaxCallDepth, "calls are nested deeper than ", kMaxCallDepth, " levels");
    Text captured;
    Text* const output = output_;
    const ScopePtr saved = scope_;
    ++calls_;
    output_ = &captured;
    scope_ = scope;
    const auto restore = [&] {
        --calls_;
        output_ = output;
        scope_ = saved;
    };
    try {
        execute_for(loop, iterable, depth);
    } catch (...) {
        restore();
        throw;
    }
    restore();
    return captured;
}

}  // namespace hark::jinja
