// Functions that every template has: Jinja's, and transformers' raise_exception and strftime_now.
#include <algorithm>
#include <ctime>

#include "core/error.h"
#include "text/jinja/library.h"
#include "text/jinja/objects.h"
#include "text/jinja/operations.h"

namespace hark::jinja {
namespace {

using Pairs = std::vector<std::pair<Value, Value>>;

Value range(Interpreter& in, Args& args) {
    const Bound bound("range", args, {"start", "stop", "step"}, 1);
    const int64_t first = bound.integer(0, 0);
    return in.object(bound[1]
                         ? std::make_shared<Range>(first, bound.integer(1, 0), bound.integer(2, 1))
                         : std::make_shared<Range>(0, first, 1));
}

// The arguments of dict(): a mapping or pairs, then keywords.
Pairs dict_items(Interpreter& in, Args& args) {
    require(args.positional.size() <= 1, "dict expected at most 1 argument, got ",
            args.positional.size());
    Pairs items;
    if (!args.positional.empty()) {
        const Value& source = args.positional.front();
        if (source.dict()) {
            in.charge(source.dict()->items.size());
            items = source.dict()->items;
        } else {
            for (const Value& pair : collect(in, source)) {
                const Items both = collect(in, pair);
                require(both.size() == 2, "dict needs pairs, got ", both.size(), " items");
                set_key(in, items, both[0], both[1]);
            }
        }
    }
    for (const auto& [name, value] : args.named) set_key(in, items, in.text(name), value);
    return items;
}

Value make_dict(Interpreter& in, Args& args) { return in.dict(dict_items(in, args)); }

Value make_namespace(Interpreter& in, Args& args) {
    const auto names = std::make_shared<Namespace>();
    for (const auto& [key, value] : dict_items(in, args)) {
        require(key.text(), "a namespace's names must be strings");
        names->set(key.text()->bytes(), value);
    }
    return in.keep(names);
}

Value cycler(Interpreter& in, Args& args) {
    require(!args.positional.empty(), "cycler needs at least one item");
    int height = 0;
    for (const Value& item : args.positional) height = std::max(height, item.height());
    return in.object(std::make_shared<Cycler>(args.positional), height);
}

Value joiner(Interpreter& in, Args& args) {
    const Bound bound("joiner", args, {"sep"});
    return in.object(std::make_shared<Joiner>(bound[0] ? *bound[0] : in.text(", ")),
                     bound[0] ? bound[0]->height() : 0);
}

Value raise_exception(Interpreter& in, Args& args) {
    const Bound bound("raise_exception", args, {"message"}, 1);
    fail(str_of(in, *bound[0]).bytes());
}

// What Python's strftime of a time without a zone writes, where C's does not: %f, %z and %Z.
std::string with_pythons_fields(const std::string& format) {
    std::string out;
    for (size_t i = 0; i < format.size(); ++i) {
        if (format[i] != '%' || i + 1 == format.size()) {
            out += format[i];
            continue;
        }
        const char field = format[++i];
        if (field == 'f')
            out += "000000";
        else if (field != 'z' && field != 'Z')
            out += {'%', field};
    }
    return out;
}

Value strftime_now(Interpreter& in, Args& args) {
    const Bound bound("strftime_now", args, {"format"}, 1);
    const Text& format = bound.text(0);
    require(format.size() <= 1000, "strftime_now: the format has more than 1000 bytes");
    // A byte before it tells an empty result from one that does not fit.
    const std::string marked = "x" + with_pythons_fields(format.bytes());
    std::string result(64 * marked.size() + 64, '\0');
    const size_t size = std::strftime(result.data(), result.size(), marked.c_str(), &in.now());
    require(size > 0, "strftime_now: the format '", format.bytes(), "' gives too long a text");
    return in.text(Text(std::string_view(result).substr(1, size - 1), format.has_input()));
}

Value lipsum(Interpreter&, Args&) { fail("lipsum is not supported"); }

}  // namespace

Value find_global(Interpreter& in, std::string_view name) {
    using Body = Value (*)(Interpreter&, Args&);
    static constexpr Named<Body> kGlobals[] = {
        {"cycler", cycler},
        {"dict", make_dict},
        {"joiner", joiner},
        {"lipsum", lipsum},
        {"namespace", make_namespace},
        {"raise_exception", raise_exception},
        {"range", range},
        {"strftime_now", strftime_now},
    };
    const Body body = find_named(kGlobals, name);
    return body ? in.object(std::make_shared<Function>(std::string(name), body)) : Value();
}

}  // namespace hark::jinja
