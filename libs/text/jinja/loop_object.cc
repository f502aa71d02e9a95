// The variable loop inside a for statement.
#include <limits>

#include "core/error.h"
#include "text/jinja/objects.h"
#include "text/jinja/operations.h"

namespace hark::jinja {

void Loop::set_recursion(const Node& loop, const ScopePtr& scope) {
    recursive_ = &loop;
    scope_ = scope;
}

// Reads ahead until `count` items are waiting; false if fewer are left.
bool Loop::peek(size_t count) {
    Value item;
    while (!has_ended_ && ahead_.size() < count) {
        if (next_(item))
            ahead_.push_back(item);
        else
            has_ended_ = true;
    }
    return ahead_.size() >= count;
}

bool Loop::advance(Value& item) {
    if (!peek(1)) return false;
    item = ahead_.front();
    ahead_.pop_front();
    ++index_;
    before_ = std::move(current_);
    current_ = item;
    return true;
}

size_t Loop::total() {
    peek(std::numeric_limits<size_t>::max());
    return static_cast<size_t>(index_ + 1) + ahead_.size();
}

std::optional<Value> Loop::position(std::string_view name) {
    if (name == "index0") return index_;
    if (name == "index") return index_ + 1;
    if (name == "first") return index_ == 0;
    if (name == "last") return !peek(1);
    if (name == "depth0") return int64_t{depth_};
    if (name == "depth") return int64_t{depth_} + 1;
    if (name == "length") return static_cast<int64_t>(total());
    if (name == "revindex") return static_cast<int64_t>(total()) - index_;
    if (name == "revindex0") return static_cast<int64_t>(total()) - index_ - 1;
    return std::nullopt;
}

std::optional<Value> Loop::attribute(Interpreter& in, std::string_view name) {
    if (const auto number = position(name)) return number;
    if (name == "previtem") return index_ > 0 ? before_ : undefined("there is no previous item");
    if (name == "nextitem") return peek(1) ? ahead_.front() : undefined("there is no next item");
    const bool is_cycle = name == "cycle";
    if (!is_cycle && name != "changed") return std::nullopt;
    const auto body = [weak = weak_from_this(), is_cycle](Interpreter& i, Args& args) {
        const auto loop = weak.lock();
        require(loop != nullptr, "the loop has ended");
        return is_cycle ? loop->cycle(args) : loop->changed(i, args);
    };
    return in.object(std::make_shared<Function>(std::string(name), body));
}

void Loop::release() {
    next_ = nullptr;
    has_ended_ = true;
    ahead_.clear();
    last_changed_.clear();
    before_ = current_ = Value();
}

Value Loop::cycle(Args& args) const {
    require(!args.positional.empty(), "no items for cycling given");
    return args.positional[static_cast<size_t>(index_) % args.positional.size()];
}

Value Loop::changed(Interpreter& in, Args& args) {
    bool same = has_changed_ && last_changed_.size() == args.positional.size();
    for (size_t i = 0; same && i < last_changed_.size(); ++i)
        same = equal(in, last_changed_[i], args.positional[i]);
    if (same) return false;
    has_changed_ = true;
    last_changed_ = args.positional;
    return true;
}

Value Loop::call(Interpreter& in, Args& args) {
    require(recursive_, "the loop must be marked recursive to be called");
    require(args.positional.size() == 1 && args.named.empty(), "loop() takes one argument");
    const ScopePtr scope = scope_.lock();
    return in.text(
        in.render_loop(*recursive_, args.positional[0], scope ? scope : in.root(), depth_ + 1));
}

Text Loop::repr(Interpreter&) {
    const size_t length = total();
    return Text(concat("<LoopContext ", index_ + 1, "/", length, ">"));
}

}  // namespace hark::jinja
