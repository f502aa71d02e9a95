// Python's pickles, read as data: no code is run, whatever one asks for.
// Source: CPython Lib/pickletools.py; protocols 2 to 5 as torch.save writes them.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace hark {

struct PickleValue {
    enum class Kind : uint8_t {
        none,
        number,      // whole, or a truth value
        real,        // a float, whose value nobody asks for
        bytes,       // a byte string; its content is skipped
        text,        //
        tuple,       //
        list,        //
        dict,        // items are key, value, key, value ...
        global,      // text: its module and name, "torch FloatStorage"
        call,        // text: the global that Python would call; item: the tuple of its arguments
        persistent,  // item: what stands for something outside the pickle
    };
    Kind kind = Kind::none;
    int64_t number = 0;
    std::string text;
    std::vector<uint32_t> items;  // of Pickle, by number: values share and may even hold themselves
};

class Pickle {
  public:
    // Only the `globals` may be named: "torch FloatStorage". Throws Error that begins with `where`
    // and names the global or the opcode that is none of a tensor file's, or says what is broken.
    // At most 1 MiB, which bounds values, marks and memo; nesting is data, not recursion.
    Pickle(std::string_view bytes, const std::set<std::string>& globals, const std::string& where);

    const PickleValue& root() const { return values_[root_]; }
    const PickleValue& operator[](uint32_t item) const { return values_[item]; }
    // The value of a text key in a dict; nullptr if there is none.
    const PickleValue* find(const PickleValue& dict, std::string_view key) const;

  private:
    std::vector<PickleValue> values_;
    uint32_t root_ = 0;
};

}  // namespace hark
