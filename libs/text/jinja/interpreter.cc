#include "text/jinja/interpreter.h"

#include <algorithm>

#include "core/error.h"

namespace hark::jinja {
namespace {

int height_of(const Items& items) {
    int height = 0;
    for (const Value& item : items) height = std::max(height, item.height());
    return height;
}

int checked_height(int inside) {
    require(inside < kMaxValueHeight, "values are nested deeper than ", kMaxValueHeight, " levels");
    return inside + 1;
}

}  // namespace

Value* Scope::find(std::string_view name) {
    for (auto& [known, value] : names)
        if (known == name) return &value;
    return nullptr;
}

void Scope::set(std::string_view name, Value value) {
    if (Value* known = find(name))
        *known = std::move(value);
    else
        names.emplace_back(name, std::move(value));
}

Interpreter::Depth::Depth(Interpreter& interpreter, int line) : interpreter_(interpreter) {
    require(interpreter.depth_ < kMaxEvaluationDepth, "nested deeper than ", kMaxEvaluationDepth,
            " evaluations");
    interpreter.charge(1);
    if (line > 0) interpreter.line_ = line;
    ++interpreter.depth_;
}

Interpreter::Block::Block(Interpreter& interpreter, const std::vector<std::string>& unset,
                          ScopePtr parent)
    : interpreter_(interpreter), saved_(interpreter.scope_) {
    interpreter.scope_ = std::make_shared<Scope>();
    interpreter.scope_->parent = std::move(parent);
    interpreter.unset(unset);
}

// The variables' scope, and the template's own inside it.
Interpreter::Interpreter(const std::tm& now) : now_(now), root_(std::make_shared<Scope>()) {
    root_->parent = std::make_shared<Scope>();
    scope_ = root_;
}

Interpreter::~Interpreter() {
    for (const auto& object : kept_) object->release();
}

void Interpreter::set_variable(std::string_view name, Value value) {
    root_->parent->set(name, std::move(value));
}

void Interpreter::unset(const std::vector<std::string>& names) {
    for (const std::string& name : names)
        scope_->set(name, undefined("'" + name + "' is undefined"));
}

Text Interpreter::run(const Nodes& statements, const std::vector<std::string>& unset_names) {
    try {
        unset(unset_names);
        Flow flow = Flow::next;
        return capture(statements, flow);
    } catch (const Error& error) {
        fail("line ", line_, ": ", error.what());
    }
}

void Interpreter::charge(uint64_t steps) {
    steps_ += steps;
    require(steps_ <= kMaxSteps, "the template takes more than ", kMaxSteps, " steps");
}

Value Interpreter::text(Text text) {
    const size_t bytes = text.cost();
    charge_bytes(bytes);
    require(bytes <= kMaxLiveBytes - *live_bytes_, "the template's texts take more than ",
            kMaxLiveBytes, " bytes");
    *live_bytes_ += bytes;
    const auto release = [live = live_bytes_, bytes](const Text* kept) {
        *live -= bytes;
        delete kept;
    };
    return TextPtr(new Text(std::move(text)), release);
}

Value Interpreter::list(Items items) {
    charge(1 + items.size());
    const int height = checked_height(height_of(items));
    return std::make_shared<const List>(List{std::move(items), height});
}

Value Interpreter::tuple(Items items) {
    charge(1 + items.size());
    const int height = checked_height(height_of(items));
    return std::make_shared<const Tuple>(Tuple{std::move(items), height});
}

Value Interpreter::group(Value grouper, Value list) {
    Tuple group = *tuple({std::move(grouper), std::move(list)}).tuple();
    group.is_group = true;
    return std::make_shared<const Tuple>(std::move(group));
}

Value Interpreter::dict(std::vector<std::pair<Value, Value>> items) {
    charge(1 + 2 * items.size());
    int height = 0;
    for (const auto& [key, value] : items)
        height = std::max({height, key.height(), value.height()});
    return std::make_shared<const Dict>(Dict{std::move(items), checked_height(height)});
}

Value Interpreter::object(std::shared_ptr<Object> object, int height_inside) {
    charge(2);
    object->height = checked_height(height_inside);
    return object;
}

Value Interpreter::keep(std::shared_ptr<Object> object) {
    charge(4);
    object->height = 1;
    kept_.push_back(object);
    return ObjectPtr(ObjectPtr(), object.get());
}

}  // namespace hark::jinja
