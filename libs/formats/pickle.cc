#include "formats/pickle.h"

#include <unordered_map>

#include "core/error.h"
#include "core/files/byte_cursor.h"
#include "formats/pickle_opcodes.h"

namespace hark {
namespace {

using Kind = PickleValue::Kind;

// Of large-v3 it is 150 KB. The bound also bounds the values, the marks and the memo's entries:
// each has at least one byte.
constexpr size_t kMaxPickle = 1 << 20;
// What is long and often referred to would cost the square of the file's size.
constexpr size_t kMaxText = 4096;

constexpr const char* kOrderedDict = "collections OrderedDict";

// The machine that a pickle is a program of, without what would run code.
class PickleVm {
  public:
    PickleVm(std::string_view bytes, const std::set<std::string>& globals, const std::string& where,
             std::vector<PickleValue>& values)
        : in_(bytes, where), globals_(globals), where_(where), values_(values) {}

    uint32_t run() {
        for (;;) {
            const auto opcode = in_.number<uint8_t>();
            if (opcode == kStop) return pop();
            if (!simple(opcode) && !text(opcode) && !container(opcode) && !memo(opcode) &&
                !object(opcode))
                fail(where_, ": expected the opcodes of a file of tensors, found ",
                     name_of_refused(opcode), " (", int{opcode}, ") at byte ", in_.at() - 1);
        }
    }

  private:
    PickleValue& push(Kind kind, int64_t number = 0) {
        stack_.push_back(static_cast<uint32_t>(values_.size()));
        PickleValue& value = values_.emplace_back();
        value.kind = kind;
        value.number = number;
        return value;
    }
    uint32_t pop() {
        require(stack_.size() > (marks_.empty() ? 0 : marks_.back()), where_,
                ": expected a value on the stack at byte ", in_.at());
        const uint32_t top = stack_.back();
        stack_.pop_back();
        return top;
    }
    std::vector<uint32_t> pop_to_mark() {
        require(!marks_.empty(), where_, ": expected a mark before byte ", in_.at());
        const auto from = stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back());
        std::vector<uint32_t> items(from, stack_.end());
        stack_.resize(marks_.back());
        marks_.pop_back();
        return items;
    }
    // The value on top, which stays there.
    PickleValue& top(Kind kind, const char* what) {
        const uint32_t item = pop();
        stack_.push_back(item);
        require(values_[item].kind == kind, where_, ": expected ", what, " before byte ", in_.at());
        return values_[item];
    }

    bool simple(uint8_t opcode) {
        switch (opcode) {
            case kProto: {
                const auto protocol = in_.number<uint8_t>();
                require(protocol >= kMinProtocol && protocol <= kMaxProtocol, where_,
                        ": expected protocol ", int{kMinProtocol}, " to ", int{kMaxProtocol},
                        ", found ", int{protocol});
                return true;
            }
            case kFrame:
                begin_frame(in_.number<uint64_t>());
                return true;
            case kNone:
                push(Kind::none);
                return true;
            case kNewTrue:
            case kNewFalse:
                push(Kind::number, opcode == kNewTrue);
                return true;
            case kBinInt:
                push(Kind::number, in_.number<int32_t>());
                return true;
            case kBinInt1:
                push(Kind::number, in_.number<uint8_t>());
                return true;
            case kBinInt2:
                push(Kind::number, in_.number<uint16_t>());
                return true;
            case kLong1:
                push(Kind::number, long_number());
                return true;
            case kBinFloat:
                in_.take(8);
                push(Kind::real);
                return true;
            default:
                return false;
        }
    }

    // Frames follow one another and end in the file. Opcodes need no look at them.
    void begin_frame(uint64_t bytes) {
        require(in_.at() >= frame_end_, where_, ": a frame begins before byte ", in_.at(),
                ", the one before it ends at ", frame_end_);
        require(bytes <= in_.left(), where_, ": expected a frame of at most ", in_.left(),
                " bytes at byte ", in_.at(), ", found one of ", bytes, " (truncated?)");
        frame_end_ = in_.at() + bytes;
    }

    bool text(uint8_t opcode) {
        switch (opcode) {
            case kShortBinUnicode:
                push_text(in_.number<uint8_t>());
                return true;
            case kBinUnicode:
                push_text(in_.number<uint32_t>());
                return true;
            case kBinUnicode8:
                push_text(in_.number<uint64_t>());
                return true;
            case kShortBinBytes:
                in_.take(in_.number<uint8_t>());
                push(Kind::bytes);
                return true;
            case kBinBytes:
                in_.take(in_.number<uint32_t>());
                push(Kind::bytes);
                return true;
            case kBinBytes8:
                in_.take(in_.number<uint64_t>());
                push(Kind::bytes);
                return true;
            default:
                return false;
        }
    }
    void push_text(uint64_t bytes) {
        require(bytes <= kMaxText, where_, ": expected names of at most ", kMaxText,
                " bytes, found one of ", bytes);
        push(Kind::text).text = in_.take(bytes);
    }

    // A whole number of up to 8 bytes, the highest of which bears the sign.
    int64_t long_number() {
        const auto bytes = in_.number<uint8_t>();
        require(bytes <= 8, where_, ": expected a number of at most 8 bytes, found one of ",
                int{bytes});
        const std::string_view digits = in_.take(bytes);
        uint64_t value = bytes > 0 && digits.back() < 0 ? ~uint64_t{0} : 0;
        for (size_t i = bytes; i-- > 0;) value = value << 8 | static_cast<uint8_t>(digits[i]);
        return static_cast<int64_t>(value);
    }

    bool container(uint8_t opcode) {
        switch (opcode) {
            case kMark:
                marks_.push_back(stack_.size());
                return true;
            case kEmptyTuple:
                push(Kind::tuple);
                return true;
            case kEmptyList:
                push(Kind::list);
                return true;
            case kEmptyDict:
                push(Kind::dict);
                return true;
            case kTuple: {
                std::vector<uint32_t> items = pop_to_mark();
                push(Kind::tuple).items = std::move(items);
                return true;
            }
            case kTuple1:
            case kTuple2:
            case kTuple3: {
                std::vector<uint32_t> items(opcode - kTuple1 + 1u);
                for (size_t i = items.size(); i-- > 0;) items[i] = pop();
                push(Kind::tuple).items = std::move(items);
                return true;
            }
            case kAppend:
                add_items(Kind::list, {pop()});
                return true;
            case kAppends:
                add_items(Kind::list, pop_to_mark());
                return true;
            case kSetItem: {
                const uint32_t value = pop(), key = pop();
                add_items(Kind::dict, {key, value});
                return true;
            }
            case kSetItems:
                add_items(Kind::dict, pop_to_mark());
                return true;
            default:
                return false;
        }
    }

    void add_items(Kind kind, const std::vector<uint32_t>& items) {
        PickleValue& to = top(kind, kind == Kind::dict ? "a dict" : "a list");
        require(kind == Kind::list || items.size() % 2 == 0, where_,
                ": expected keys with values before byte ", in_.at());
        to.items.insert(to.items.end(), items.begin(), items.end());
    }

    bool memo(uint8_t opcode) {
        switch (opcode) {
            case kBinPut:
                memorize(in_.number<uint8_t>());
                return true;
            case kLongBinPut:
                memorize(in_.number<uint32_t>());
                return true;
            case kMemoize:  // the next place, as many as the memo has
                memorize(static_cast<uint32_t>(memo_.size()));
                return true;
            case kBinGet:
                recall(in_.number<uint8_t>());
                return true;
            case kLongBinGet:
                recall(in_.number<uint32_t>());
                return true;
            default:
                return false;
        }
    }
    void memorize(uint32_t place) {
        const uint32_t item = pop();
        stack_.push_back(item);
        memo_[place] = item;
    }
    void recall(uint32_t place) {
        const auto found = memo_.find(place);
        require(found != memo_.end(), where_, ": nothing was put at place ", place,
                " of the memo before byte ", in_.at());
        stack_.push_back(found->second);
    }

    bool object(uint8_t opcode) {
        switch (opcode) {
            case kGlobal: {
                std::string module = line();
                push_global(module, line());
                return true;
            }
            case kStackGlobal: {
                const PickleValue &name = values_[pop()], &module = values_[pop()];
                require(name.kind == Kind::text && module.kind == Kind::text, where_,
                        ": expected a module and a name before byte ", in_.at());
                push_global(module.text, name.text);
                return true;
            }
            case kReduce:
                reduce();
                return true;
            case kBuild:
                // Attributes of a dictionary ("_metadata" of a state_dict) say nothing of tensors.
                pop();
                top(Kind::dict, "an OrderedDict");
                return true;
            case kBinPersId: {
                const uint32_t item = pop();
                push(Kind::persistent).items = {item};
                return true;
            }
            default:
                return false;
        }
    }

    void push_global(const std::string& module, const std::string& name) {
        std::string both = module + " " + name;
        require(globals_.contains(both), where_, ": names '", both,
                "', which is no part of a file of tensors: not read");
        push(Kind::global).text = std::move(both);
    }

    void reduce() {
        const uint32_t arguments = pop(), callee = pop();
        require(values_[callee].kind == Kind::global && values_[arguments].kind == Kind::tuple,
                where_, ": expected a global and a tuple before byte ", in_.at());
        const std::string name = values_[callee].text;
        if (name == kOrderedDict) {
            require(values_[arguments].items.empty(), where_,
                    ": expected an OrderedDict made empty, found arguments");
            push(Kind::dict);
            return;
        }
        PickleValue& call = push(Kind::call);
        call.text = name;
        call.items = {arguments};
    }

    std::string line() {
        std::string text;
        for (char c; (c = in_.number<char>()) != '\n';) text += c;
        return text;
    }

    ByteCursor in_;
    const std::set<std::string>& globals_;
    const std::string& where_;
    std::vector<PickleValue>& values_;
    std::vector<uint32_t> stack_;
    std::vector<size_t> marks_;  // the stack's sizes when they were set
    std::unordered_map<uint32_t, uint32_t> memo_;
    size_t frame_end_ = 0;
};

}  // namespace

Pickle::Pickle(std::string_view bytes, const std::set<std::string>& globals,
               const std::string& where) {
    require(bytes.size() <= kMaxPickle, where, ": expected a pickle of at most ", kMaxPickle,
            " bytes, found ", bytes.size());
    root_ = PickleVm(bytes, globals, where, values_).run();
}

const PickleValue* Pickle::find(const PickleValue& dict, std::string_view key) const {
    if (dict.kind != Kind::dict) return nullptr;
    for (size_t i = 0; i < dict.items.size(); i += 2)
        if (const PickleValue& name = values_[dict.items[i]];
            name.kind == Kind::text && name.text == key)
            return &values_[dict.items[i + 1]];
    return nullptr;
}

}  // namespace hark
