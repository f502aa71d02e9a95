// Values that are neither data nor text: functions, macros, loops, namespaces, generators.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "text/jinja/interpreter.h"

namespace hark::jinja {

// A method of a value, or a global function.
class Function : public Object {
  public:
    using Body = std::function<Value(Interpreter&, Args&)>;

    Function(std::string name, Body body) : name_(std::move(name)), body_(std::move(body)) {}
    std::string type_name() const override { return "function"; }
    bool is_callable() const override { return true; }
    Value call(Interpreter& in, Args& args) override { return body_(in, args); }

  private:
    std::string name_;
    Body body_;
};

class Macro : public Object {
  public:
    Macro(const Node& node, const ScopePtr& scope) : node_(node), scope_(scope) {}
    std::string type_name() const override { return "Macro"; }
    bool is_callable() const override { return true; }
    Value call(Interpreter& in, Args& args) override;
    std::optional<Value> attribute(Interpreter& in, std::string_view name) override;
    Text repr(Interpreter& in) override;

  private:
    const Node& node_;
    std::weak_ptr<Scope> scope_;
};

class Namespace : public Object {
  public:
    std::string type_name() const override { return "Namespace"; }
    std::optional<Value> attribute(Interpreter& in, std::string_view name) override;
    void set(std::string_view name, Value value);
    Text repr(Interpreter& in) override;
    void release() override { names_.clear(); }

  private:
    std::vector<std::pair<std::string, Value>> names_;
    bool is_printing_ = false;
};

// What yields each item once: the results of map, select, items and the like.
class Generator : public Object {
  public:
    explicit Generator(Next next) : next_(std::move(next)) {}
    std::string type_name() const override { return "generator"; }
    Next iterate() override;
    bool is_iterable() const override { return true; }

  private:
    Next next_;
};

// dict.keys(), .values() and .items(); range().
class View : public Object {
  public:
    View(std::string kind, Items items) : kind_(std::move(kind)), items_(std::move(items)) {}
    std::string type_name() const override { return kind_; }
    bool is_true() const override { return !items_.empty(); }
    std::optional<size_t> length() override { return items_.size(); }
    Next iterate() override;
    bool is_iterable() const override { return true; }
    Text repr(Interpreter& in) override;
    const Items& items() const { return items_; }

  private:
    std::string kind_;
    Items items_;
};

class Range : public Object {
  public:
    Range(int64_t begin, int64_t end, int64_t step);
    std::string type_name() const override { return "range"; }
    bool is_true() const override { return size_ > 0; }
    std::optional<size_t> length() override { return size_; }
    Next iterate() override;
    bool is_iterable() const override { return true; }
    std::optional<Value> item(Interpreter& in, const Value& key) override;
    Text repr(Interpreter& in) override;
    // The part between positions, with a step of its own.
    std::shared_ptr<Range> sliced(int64_t begin, int64_t end, int64_t step) const;
    int64_t at(size_t i) const { return begin_ + static_cast<int64_t>(i) * step_; }

  private:
    int64_t begin_, end_, step_;
    size_t size_;
};

// The variable loop: where a loop is, and what comes next.
class Loop : public Object, public std::enable_shared_from_this<Loop> {
  public:
    Loop(Next next, int depth) : next_(std::move(next)), depth_(depth) {}
    void set_recursion(const Node& loop, const ScopePtr& scope);
    // Takes the next item.
    bool advance(Value& item);

    std::string type_name() const override { return "LoopContext"; }
    std::optional<size_t> length() override { return total(); }
    std::optional<Value> attribute(Interpreter& in, std::string_view name) override;
    bool is_callable() const override { return true; }
    Value call(Interpreter& in, Args& args) override;
    Text repr(Interpreter& in) override;
    void release() override;

  private:
    size_t total();
    bool peek(size_t count);
    std::optional<Value> position(std::string_view name);
    Value cycle(Args& args) const;
    Value changed(Interpreter& in, Args& args);

    Next next_;
    std::deque<Value> ahead_;
    Value before_, current_;
    int64_t index_ = -1;
    int depth_;
    bool has_ended_ = false;
    Items last_changed_;
    bool has_changed_ = false;
    const Node* recursive_ = nullptr;
    std::weak_ptr<Scope> scope_;
};

class Cycler : public Object, public std::enable_shared_from_this<Cycler> {
  public:
    explicit Cycler(Items items) : items_(std::move(items)) {}
    std::string type_name() const override { return "Cycler"; }
    std::optional<Value> attribute(Interpreter& in, std::string_view name) override;

  private:
    Items items_;
    size_t at_ = 0;
};

class Joiner : public Object {
  public:
    explicit Joiner(Value separator) : separator_(std::move(separator)) {}
    std::string type_name() const override { return "Joiner"; }
    bool is_callable() const override { return true; }
    Value call(Interpreter& in, Args& args) override;

  private:
    Value separator_;
    bool was_used_ = false;
};

}  // namespace hark::jinja
