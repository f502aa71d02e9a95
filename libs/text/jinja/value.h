// Values of a template: Python's types as Jinja shows them.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "text/jinja/text.h"

namespace hark::jinja {

class Interpreter;
class Value;
struct List;
struct Tuple;
struct Dict;
struct Object;

using Items = std::vector<Value>;
using TextPtr = std::shared_ptr<const Text>;
using ListPtr = std::shared_ptr<const List>;
using TuplePtr = std::shared_ptr<const Tuple>;
using DictPtr = std::shared_ptr<const Dict>;
using ObjectPtr = std::shared_ptr<Object>;
// Writes the next item of an iteration, or returns false at its end.
using Next = std::function<bool(Value&)>;

// What a name or an item that is not there gives: prints nothing and is false; any other use is an
// error with this message.
struct Undefined {
    std::shared_ptr<const std::string> message;
};
struct None {};

class Value {
  public:
    using Data = std::variant<Undefined, None, bool, int64_t, double, TextPtr, ListPtr, TuplePtr,
                              DictPtr, ObjectPtr>;

    Value() = default;  // undefined
    template <class T>
    requires(!std::is_same_v<std::remove_cvref_t<T>, Value> && std::is_constructible_v<Data, T>)
        Value(T&& data)
        : data_(std::forward<T>(data)) {}

    bool is_undefined() const { return std::holds_alternative<Undefined>(data_); }
    bool is_none() const { return std::holds_alternative<None>(data_); }
    const bool* boolean() const { return std::get_if<bool>(&data_); }
    const double* real() const { return std::get_if<double>(&data_); }
    // An integer, or a Boolean as 0 and 1.
    std::optional<int64_t> integer() const;
    // Any number.
    std::optional<double> number() const;
    const Text* text() const { return pointee<TextPtr>(); }
    const List* list() const { return pointee<ListPtr>(); }
    const Tuple* tuple() const { return pointee<TuplePtr>(); }
    const Dict* dict() const { return pointee<DictPtr>(); }
    Object* object() const { return pointee<ObjectPtr>(); }
    // The items of a list or tuple, null for everything else.
    const Items* items() const;
    template <class T>
    T* as() const {
        return dynamic_cast<T*>(object());
    }
    const Data& data() const { return data_; }
    // How deep values are nested in it; 0 for scalars.
    int height() const;
    bool is_same(const Value& other) const;

  private:
    template <class Pointer>
    typename Pointer::element_type* pointee() const {
        const Pointer* pointer = std::get_if<Pointer>(&data_);
        return pointer ? pointer->get() : nullptr;
    }

    Data data_;
};

struct List {
    Items items;
    int height = 1;
};

struct Tuple {
    Items items;
    int height = 1;
    bool is_group = false;  // of groupby: `grouper` and `list` are names of its items
};

struct Dict {
    std::vector<std::pair<Value, Value>> items;  // in the order of insertion
    int height = 1;

    const Value* find(std::string_view key) const;
};

struct Args {
    Items positional;
    std::vector<std::pair<std::string, Value>> named;
};

// Everything else: functions, namespaces, generators, loops.
struct Object {
    virtual ~Object() = default;
    virtual std::string type_name() const = 0;
    virtual bool is_true() const { return true; }
    virtual std::optional<size_t> length() { return std::nullopt; }
    // Empty if it cannot be iterated.
    virtual Next iterate() { return {}; }
    virtual bool is_iterable() const { return false; }
    virtual std::optional<Value> attribute(Interpreter&, std::string_view) { return std::nullopt; }
    virtual std::optional<Value> item(Interpreter&, const Value&) { return std::nullopt; }
    virtual bool is_callable() const { return false; }
    virtual Value call(Interpreter&, Args&);
    // Throws Error if it has no text that is the same in every run.
    virtual Text repr(Interpreter&);
    // Drops what it holds, so that values that hold one another are freed.
    virtual void release() {}

    int height = 1;
};

// "dict object", "None": as in Jinja's messages.
std::string object_type(const Value& value);
// "str", "int": as in Python's messages.
std::string type_name(const Value& value);
bool is_true(const Value& value);
Value undefined(std::string message);
Value undefined_attribute(const Value& value, std::string_view name);
[[noreturn]] void fail_undefined(const Value& value);
// Throws the error of an undefined value that is used.
void require_defined(const Value& value);

}  // namespace hark::jinja

// Compiled once, in value.cc.
extern template class std::vector<hark::jinja::Value>;
extern template class std::vector<std::pair<hark::jinja::Value, hark::jinja::Value>>;
