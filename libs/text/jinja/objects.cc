#include "text/jinja/objects.h"

#include "core/error.h"
#include "text/jinja/operations.h"

namespace hark::jinja {

Value Macro::call(Interpreter& in, Args& args) {
    const ScopePtr scope = scope_.lock();
    return in.call_macro(node_, scope ? scope : in.root(), args);
}

std::optional<Value> Macro::attribute(Interpreter& in, std::string_view name) {
    if (name == "name") return node_.kind == Kind::macro ? in.text(node_.name) : Value(None{});
    if (name != "arguments") return std::nullopt;
    Items names;
    for (const std::string& parameter : node_.parameters) names.push_back(in.text(parameter));
    return in.tuple(std::move(names));
}

Text Macro::repr(Interpreter&) {
    return Text(node_.kind == Kind::macro ? "<Macro '" + node_.name + "'>" : "<Macro anonymous>");
}

std::optional<Value> Namespace::attribute(Interpreter&, std::string_view name) {
    for (const auto& [known, value] : names_)
        if (known == name) return value;
    return std::nullopt;
}

void Namespace::set(std::string_view name, Value value) {
    require(!name.starts_with('_'), "a namespace cannot store the name '", name,
            "': it begins with an underscore");
    for (auto& [known, place] : names_)
        if (known == name) {
            place = std::move(value);
            return;
        }
    names_.emplace_back(name, std::move(value));
}

Text Namespace::repr(Interpreter& in) {
    require(!is_printing_, "a namespace holds itself");
    is_printing_ = true;
    std::vector<std::pair<Value, Value>> items;
    for (const auto& [name, value] : names_) items.emplace_back(in.text(name), value);
    Text text("<Namespace ");
    text.append(repr_of(in, in.dict(std::move(items))));
    text.append(">");
    is_printing_ = false;
    return text;
}

Next Generator::iterate() {
    return [this](Value& item) { return next_ && next_(item); };
}

Next View::iterate() {
    return [this, i = size_t{0}](Value& item) mutable {
        if (i >= items_.size()) return false;
        item = items_[i++];
        return true;
    };
}

Text View::repr(Interpreter& in) {
    Text text(kind_ + "(");
    text.append(repr_of(in, in.list(items_)));
    text.append(")");
    return text;
}

Range::Range(int64_t begin, int64_t end, int64_t step) : begin_(begin), end_(end), step_(step) {
    constexpr int64_t kMost = int64_t{1} << 40;
    require(step != 0, "range: the step must not be zero");
    for (const int64_t value : {begin, end, step})
        require(value >= -kMost && value <= kMost, "range: ", value, " is too large");
    const int64_t distance = step > 0 ? end - begin : begin - end;
    const int64_t width = step > 0 ? step : -step;
    size_ = distance > 0 ? static_cast<size_t>((distance + width - 1) / width) : 0;
    require(size_ <= 100000, "range: more than 100000 items");  // the sandbox's limit
}

std::shared_ptr<Range> Range::sliced(int64_t begin, int64_t end, int64_t step) const {
    int64_t width = 0;
    require(!__builtin_mul_overflow(step, step_, &width), "a slice's step is too large");
    return std::make_shared<Range>(begin_ + begin * step_, begin_ + end * step_, width);
}

Next Range::iterate() {
    return [this, i = size_t{0}](Value& item) mutable {
        if (i >= size_) return false;
        item = at(i++);
        return true;
    };
}

std::optional<Value> Range::item(Interpreter&, const Value& key) {
    const auto index = key.integer();
    const auto size = static_cast<int64_t>(size_);
    if (!index || *index < -size || *index >= size) return std::nullopt;
    return at(static_cast<size_t>(*index < 0 ? *index + size : *index));
}

Text Range::repr(Interpreter&) {
    return Text(step_ == 1 ? concat("range(", begin_, ", ", end_, ")")
                           : concat("range(", begin_, ", ", end_, ", ", step_, ")"));
}

std::optional<Value> Cycler::attribute(Interpreter& in, std::string_view name) {
    if (name == "current") return items_[at_];
    const bool is_next = name == "next";
    if (!is_next && name != "reset") return std::nullopt;
    const auto body = [weak = weak_from_this(), is_next](Interpreter&, Args&) {
        const auto cycler = weak.lock();
        require(cycler != nullptr, "the cycler is gone");
        const Value value = is_next ? cycler->items_[cycler->at_] : Value(None{});
        cycler->at_ = is_next ? (cycler->at_ + 1) % cycler->items_.size() : 0;
        return value;
    };
    return in.object(std::make_shared<Function>(std::string(name), body));
}

Value Joiner::call(Interpreter& in, Args&) {
    if (was_used_) return separator_;
    was_used_ = true;
    return in.text("");
}

}  // namespace hark::jinja
