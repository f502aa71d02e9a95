// Objects of a schema: declared properties in their order, then free ones.
#include <algorithm>
#include <array>
#include <map>

#include "core/error.h"
#include "text/constrain/schema_compiler.h"
#include "text/unicode.h"

namespace hark {
namespace {

constexpr int64_t kMostCounted = 1000;

// The texts of these names, and no others.
CharAutomaton names_of(const std::vector<std::string>& names) {
    std::vector<Regular> texts;
    for (const std::string& name : names) texts.push_back(Regular::text(to_code_points(name)));
    return CharAutomaton(Regular::choice(std::move(texts)));
}

}  // namespace

// In the order of the schemas; names that are only required follow.
std::vector<SchemaCompiler::Declared> SchemaCompiler::declared(const Conjunction& all,
                                                               const JoinedSchema& joined) {
    std::vector<std::string> names;
    const auto add = [&](const std::string& name) {
        if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    };
    for (const SchemaItem& item : all)
        for (const auto& [name, unused] : reader_[item.schema].properties) add(name);
    for (const std::string& name : joined.required) add(name);
    std::vector<Declared> properties;
    for (const std::string& name : names) {
        const bool required = std::find(joined.required.begin(), joined.required.end(), name) !=
                              joined.required.end();
        properties.push_back({name, property_of(reader_, all, name), required});
    }
    return properties;
}

// Names that match one pattern of patternProperties and no other, and names that match none.
std::vector<SchemaCompiler::FreeNames> SchemaCompiler::free_names(
    const Conjunction& all, const std::vector<Declared>& properties, int64_t least) {
    const bool needs_more = least > std::ssize(properties);
    std::vector<std::string> patterns, names;
    bool is_open = true, is_closed = false, is_explicit = false;
    for (const SchemaItem& item : all) {
        const Subschema& schema = reader_[item.schema];
        for (const auto& [pattern, unused] : schema.pattern_properties)
            if (std::find(patterns.begin(), patterns.end(), pattern) == patterns.end())
                patterns.push_back(pattern);
        if (schema.has_properties && !needs_more) is_open = false;
        if (!schema.additional) continue;
        (reader_[*schema.additional].never ? is_closed : is_explicit) = true;
    }
    for (const Declared& property : properties) names.push_back(property.name);
    const bool has_others = !is_closed && (is_open || is_explicit);
    if (patterns.empty() && names.empty() && has_others)
        return {{json_.string(), property_of(reader_, all, "")}};
    // The schemas of a name that matches patterns[one] alone, or none of them.
    const auto value_of = [&](const std::string* one) {
        Conjunction value;
        for (const SchemaItem& item : all) {
            const Subschema& schema = reader_[item.schema];
            const auto& own = schema.pattern_properties;
            const auto found = std::find_if(own.begin(), own.end(), [&](const auto& pattern) {
                return one && pattern.first == *one;
            });
            if (found != own.end())
                add_schema(reader_, found->second, {}, value);
            else if (schema.additional)
                add_schema(reader_, *schema.additional, {}, value);
        }
        return value;
    };
    std::vector<FreeNames> kinds;
    const auto add = [&](const std::string* one) {
        CharAutomaton texts = complement(names_of(names));
        std::string key = "name";
        for (const std::string& name : names) key += concat(" ", json_spelling(name));
        if (one) texts = intersection(texts, reader_.pattern(*one));
        for (const std::string& pattern : patterns) {
            const bool is_one = one && pattern == *one;
            if (!is_one) texts = intersection(texts, complement(reader_.pattern(pattern)));
            key += concat(is_one ? " like " : " not ", pattern, "\n");
        }
        if (!texts.empty()) kinds.push_back({json_.string(key, texts), value_of(one)});
    };
    for (const std::string& pattern : patterns) add(&pattern);
    if (has_others) add(nullptr);
    return kinds;
}

SchemaCompiler::Expr SchemaCompiler::object(const Conjunction& all, const JoinedSchema& joined) {
    const std::vector<Declared> properties = declared(all, joined);
    const std::vector<FreeNames> kinds = free_names(all, properties, joined.min_properties);
    const auto n = std::ssize(properties);
    // What free names add to the least number is one: two of them may be the same name.
    int64_t least = joined.min_properties;
    require(kinds.empty() || least <= n + 1, "schema: ", place_of(all), ": minProperties ", least,
            " is not supported with ", n, " declared properties: free ones may repeat a name");
    int64_t most = joined.max_properties.value_or(kUnlimited);
    if (kinds.empty() && (most == kUnlimited || most > n)) most = n;
    const auto needed = std::count_if(properties.begin(), properties.end(),
                                      [](const Declared& one) { return one.required; });
    if (least <= needed) least = 0;
    const bool counts =
        least > 0 || (most != kUnlimited && most < n) || (most != kUnlimited && !kinds.empty());
    const int64_t cap = !counts ? 1 : most != kUnlimited ? most : std::max<int64_t>(least, n);
    require(cap <= kMostCounted, "schema: ", place_of(all), ": more than ", kMostCounted,
            " counted properties are not supported");

    // A state: the place of the next declared property, the number of those that are there, and of
    // free ones. Without bounds numbers above 1 are 1.
    Grammar::Graph graph;
    std::map<std::array<int64_t, 3>, int32_t> states;
    std::vector<std::array<int64_t, 3>> open;
    const auto state_of = [&](int64_t place, int64_t count, int64_t free) {
        const std::array<int64_t, 3> key = {place, std::min(count, cap),
                                            most == kUnlimited ? std::min<int64_t>(free, 1) : free};
        const auto [found, is_new] = states.try_emplace(key, static_cast<int32_t>(states.size()));
        if (is_new) {
            open.push_back(key);
            graph.accepts.push_back(false);
        }
        return found->second;
    };
    std::vector<Expr> members;  // of declared properties, then of free ones
    for (const Declared& one : properties)
        members.push_back(grammar_.sequence(
            {grammar_.text(json_spelling(one.name)), json_.colon(), call(one.value)}));
    std::vector<Expr> free_members;
    for (const FreeNames& kind : kinds)
        free_members.push_back(grammar_.sequence({kind.name, json_.colon(), call(kind.value)}));
    const Expr free_member = grammar_.choice(std::move(free_members));
    state_of(0, 0, 0);
    for (size_t i = 0; i < open.size(); ++i) {
        const auto [place, count, free] = open[i];
        const auto from = static_cast<int32_t>(i);
        const bool has_room = !counts || most == kUnlimited || count + free < most;
        const auto next = [&](Expr member) {
            return count + free > 0 ? grammar_.sequence({json_.comma(), member}) : member;
        };
        if (place == n) {
            graph.accepts[i] = count + std::min<int64_t>(free, 1) >= least;
            if (has_room && !kinds.empty())
                graph.edges.push_back({from, state_of(place, count, free + 1), next(free_member)});
            continue;
        }
        if (!properties[static_cast<size_t>(place)].required)
            graph.edges.push_back({from, state_of(place + 1, count, free), grammar_.empty()});
        if (has_room)
            graph.edges.push_back({from, state_of(place + 1, count + 1, free),
                                   next(members[static_cast<size_t>(place)])});
    }
    return grammar_.sequence(
        {grammar_.text("{"), grammar_.graph(std::move(graph)), grammar_.text("}")});
}

}  // namespace hark
