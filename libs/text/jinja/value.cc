#include "text/jinja/value.h"

#include "core/error.h"

namespace hark::jinja {
namespace {

template <class... F>
struct Overloaded : F... {
    using F::operator()...;
};
template <class... F>
Overloaded(F...) -> Overloaded<F...>;

}  // namespace

std::optional<int64_t> Value::integer() const {
    if (const bool* flag = boolean()) return *flag ? 1 : 0;
    if (const int64_t* number = std::get_if<int64_t>(&data_)) return *number;
    return std::nullopt;
}

std::optional<double> Value::number() const {
    if (const double* found = real()) return *found;
    if (const auto whole = integer()) return static_cast<double>(*whole);
    return std::nullopt;
}

const Items* Value::items() const {
    if (const List* found = list()) return &found->items;
    if (const Tuple* found = tuple()) return &found->items;
    return nullptr;
}

int Value::height() const {
    if (const List* found = list()) return found->height;
    if (const Tuple* found = tuple()) return found->height;
    if (const Dict* found = dict()) return found->height;
    if (const Object* found = object()) return found->height;
    return 0;
}

bool Value::is_same(const Value& other) const {
    if (data_.index() != other.data_.index()) return false;
    return std::visit(
        Overloaded{[&](const Undefined&) { return true; }, [&](const None&) { return true; },
                   [&](bool value) { return value == std::get<bool>(other.data_); },
                   [&](int64_t value) { return value == std::get<int64_t>(other.data_); },
                   [&](double) { return false; },
                   [&]<class T>(const std::shared_ptr<T>& value) {
                       return value == std::get<std::shared_ptr<T>>(other.data_);
                   }},
        data_);
}

const Value* Dict::find(std::string_view key) const {
    for (const auto& [name, value] : items)
        if (const Text* text = name.text(); text && text->bytes() == key) return &value;
    return nullptr;
}

Value Object::call(Interpreter&, Args&) { fail("'", type_name(), "' object is not callable"); }

Text Object::repr(Interpreter&) {
    if (is_iterable()) fail("a ", type_name(), " has no text; use the filter list");
    fail("a ", type_name(), " has no text");
}

std::string type_name(const Value& value) {
    return std::visit(
        Overloaded{[](const Undefined&) -> std::string { return "Undefined"; },
                   [](const None&) -> std::string { return "NoneType"; },
                   [](bool) -> std::string { return "bool"; },
                   [](int64_t) -> std::string { return "int"; },
                   [](double) -> std::string { return "float"; },
                   [](const TextPtr&) -> std::string { return "str"; },
                   [](const ListPtr&) -> std::string { return "list"; },
                   [](const TuplePtr&) -> std::string { return "tuple"; },
                   [](const DictPtr&) -> std::string { return "dict"; },
                   [](const ObjectPtr& object) -> std::string { return object->type_name(); }},
        value.data());
}

std::string object_type(const Value& value) {
    return value.is_none() ? "None" : type_name(value) + " object";
}

bool is_true(const Value& value) {
    return std::visit(
        Overloaded{[](const Undefined&) { return false; }, [](const None&) { return false; },
                   [](bool flag) { return flag; }, [](int64_t number) { return number != 0; },
                   [](double number) { return number != 0; },
                   [](const TextPtr& text) { return !text->empty(); },
                   [](const ListPtr& list) { return !list->items.empty(); },
                   [](const TuplePtr& tuple) { return !tuple->items.empty(); },
                   [](const DictPtr& dict) { return !dict->items.empty(); },
                   [](const ObjectPtr& object) { return object->is_true(); }},
        value.data());
}

Value undefined(std::string message) {
    return Undefined{std::make_shared<const std::string>(std::move(message))};
}

Value undefined_attribute(const Value& value, std::string_view name) {
    return undefined(concat("'", object_type(value), "' has no attribute '", name, "'"));
}

void fail_undefined(const Value& value) {
    const auto& message = std::get<Undefined>(value.data()).message;
    fail(message ? *message : std::string("a value is undefined"));
}

void require_defined(const Value& value) {
    if (value.is_undefined()) fail_undefined(value);
}

}  // namespace hark::jinja

template class std::vector<hark::jinja::Value>;
template class std::vector<std::pair<hark::jinja::Value, hark::jinja::Value>>;
