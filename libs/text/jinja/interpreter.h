// Runs a template's tree, within bounds on time, memory and depth.
#pragma once

#include <ctime>
#include <memory>
#include <string_view>
#include <vector>

#include "text/jinja/ast.h"
#include "text/jinja/value.h"

namespace hark::jinja {

// A step is a node that is evaluated, an item that is made or read, or a kilobyte that is copied.
inline constexpr uint64_t kMaxSteps = 1'000'000;
inline constexpr size_t kMaxLiveBytes = size_t{64} << 20;  // of all texts together
inline constexpr int kMaxCallDepth = 100;                  // macros and recursive loops
inline constexpr int kMaxEvaluationDepth = 1500;           // nodes, calls included
inline constexpr int kMaxValueHeight = 100;                // lists in lists

// The names of a block. A macro keeps its definition's scope only as long as that is open.
struct Scope {
    std::shared_ptr<Scope> parent;
    std::vector<std::pair<std::string_view, Value>> names;

    Value* find(std::string_view name);
    void set(std::string_view name, Value value);
};
using ScopePtr = std::shared_ptr<Scope>;

class Interpreter {
  public:
    // `now` is what strftime_now shows.
    explicit Interpreter(const std::tm& now);
    ~Interpreter();
    Interpreter(const Interpreter&) = delete;
    Interpreter& operator=(const Interpreter&) = delete;

    // The names that the template is given; they must outlive the interpreter.
    void set_variable(std::string_view name, Value value);
    // Runs the statements; their output. Throws Error "line N: ...".
    Text run(const Nodes& statements, const std::vector<std::string>& unset);

    // Throws Error where the template takes more than kMaxSteps.
    void charge(uint64_t steps);
    void charge_bytes(size_t bytes) { charge(1 + bytes / 1024); }
    // Values that the template makes: each is counted.
    Value text(Text text);
    Value text(std::string_view text) { return this->text(Text(text)); }
    Value list(Items items);
    Value tuple(Items items);
    // A tuple (grouper, list) whose items have these names too.
    Value group(Value grouper, Value list);
    Value dict(std::vector<std::pair<Value, Value>> items);
    Value object(std::shared_ptr<Object> object, int height_inside = 0);
    // An object that may come to hold itself: it lives as long as the interpreter.
    Value keep(std::shared_ptr<Object> object);

    const std::tm& now() const { return now_; }

    // What macros and loops call.
    Value call_macro(const Node& macro, const ScopePtr& scope, Args& args);
    Text render_loop(const Node& loop, const Value& iterable, const ScopePtr& scope, int depth);
    ScopePtr root() const { return root_; }

  private:
    enum class Flow { next, end_loop, next_round };
    class Depth;
    class Block;

    // Statements (statements.cc, loops.cc).
    void unset(const std::vector<std::string>& names);
    Flow execute(const Nodes& statements);
    Flow execute(const Node& statement);
    Flow execute_if(const Node& statement);
    Flow execute_with(const Node& statement);
    Flow execute_generation(const Node& statement);
    Flow execute_filter_block(const Node& statement);
    Flow execute_set_block(const Node& statement);
    Flow execute_for(const Node& loop, const Value& iterable, int depth);
    Flow loop_round(const Node& loop, const Value& item, const Value& state);
    Next loop_items(const Node& loop, const Value& iterable);
    void call_block(const Node& statement);
    void assign(const Node& target, const Value& value);
    void unpack(const Node& target, const Value& value);
    void print(const Value& value);
    Text capture(const Nodes& statements, Flow& flow);

    // Expressions (expressions.cc, calls.cc).
    Value evaluate(const Node& node);
    Value evaluate_operator(const Node& node);
    Value evaluate_name(const Node& node);
    Value evaluate_conditional(const Node& node);
    Value evaluate_comparison(const Node& node);
    Value evaluate_concatenation(const Node& node);
    Value evaluate_dict(const Node& node);
    Value evaluate_slice(const Node& node);
    Value evaluate_call(const Node& node);
    Value evaluate_filter(const Node& node, const Value* captured);
    Value evaluate_filter_operand(const Node& node, const Value* captured);
    Value evaluate_test(const Node& node);
    Items evaluate_all(const Nodes& nodes);
    Args evaluate_arguments(const CallArguments& arguments);
    void bind_macro(const Node& macro, Args& args, Scope& scope);
    void bind_special(const Node& macro, Args& args, Scope& scope);

    std::tm now_;
    uint64_t steps_ = 0;
    std::shared_ptr<size_t> live_bytes_ = std::make_shared<size_t>(0);
    int depth_ = 0;
    int calls_ = 0;
    int line_ = 0;  // of what is being evaluated
    std::vector<std::shared_ptr<Object>> kept_;
    ScopePtr root_;
    ScopePtr scope_;
    Text* output_ = nullptr;
};

// Counts one level of evaluation.
class Interpreter::Depth {
  public:
    Depth(Interpreter& interpreter, int line);
    ~Depth() { --interpreter_.depth_; }

  private:
    Interpreter& interpreter_;
};

// A scope that lasts as long as the object, inside the current one or inside `parent`. The names
// `unset` are undefined in it until they are set (symbols.cc).
class Interpreter::Block {
  public:
    Block(Interpreter& interpreter, const std::vector<std::string>& unset)
        : Block(interpreter, unset, interpreter.scope_) {}
    Block(Interpreter& interpreter, const std::vector<std::string>& unset, ScopePtr parent);
    ~Block() { interpreter_.scope_ = std::move(saved_); }

  private:
    Interpreter& interpreter_;
    ScopePtr saved_;
};

}  // namespace hark::jinja
