#include "text/constrain/json_schema.h"

#include <algorithm>

#include "core/error.h"
#include "core/ranges.h"
#include "text/constrain/json_formats.h"
#include "text/constrain/schema_compiler.h"

namespace hark {
namespace {

constexpr int64_t kMostExpansions = 20'000;
// A longer string need not be allowed: each of its characters has states of its own.
constexpr int64_t kLongestCounted = 10'000;

}  // namespace

Grammar schema_grammar(const nlohmann::ordered_json& schema) {
    return SchemaCompiler(schema).compile();
}

Grammar SchemaCompiler::compile() {
    Conjunction all;
    add_schema(reader_, reader_.at("#"), {}, all);
    const Grammar::Rule root = grammar_.add_rule("#");
    grammar_.define(root, call(all));
    grammar_.set_root(root);
    while (!undefined_.empty()) {
        const auto [rule, schemas] = std::move(undefined_.back());
        undefined_.pop_back();
        grammar_.define(rule, value(schemas));
    }
    return std::move(grammar_);
}

std::string SchemaCompiler::place_of(const Conjunction& all) {
    return all.empty() ? "#" : reader_[all[0].schema].pointer;
}

SchemaCompiler::Expr SchemaCompiler::call(const Conjunction& all) {
    if (all.empty()) return json_.value();
    const auto [place, is_new] = rules_.try_emplace(key_of(all), 0);
    if (is_new) {
        place->second = grammar_.add_rule(place_of(all));
        undefined_.emplace_back(place->second, all);
    }
    return grammar_.call(place->second);
}

SchemaCompiler::Expr SchemaCompiler::value(const Conjunction& all) {
    require(++expansions_ <= kMostExpansions, "schema: more than ", kMostExpansions,
            " combinations of alternatives");
    for (size_t i = 0; i < all.size(); ++i) {
        const size_t groups = reader_[all[i].schema].groups.size();
        for (size_t group = 0; group < groups; ++group)
            if ((all[i].chosen >> group & 1) == 0) return alternatives(all, i, group);
    }
    return leaf(all);
}

// Each alternative together with the other schemas.
SchemaCompiler::Expr SchemaCompiler::alternatives(const Conjunction& all, size_t item,
                                                  size_t group) {
    const Subschema& schema = reader_[all[item].schema];
    const Subschema::Group& choices = schema.groups[group];
    std::vector<Conjunction> expanded;
    for (const int32_t alternative : choices.alternatives) {
        expanded.push_back(all);
        expanded.back()[item].chosen |= 1u << group;
        std::vector<int32_t> path = all[item].ancestors;
        path.push_back(all[item].schema);
        add_schema(reader_, alternative, path, expanded.back());
    }
    std::vector<Expr> exprs;
    for (size_t i = 0; i < expanded.size(); ++i) {
        for (size_t j = 0; choices.exclusive && j < i; ++j)
            require(are_disjoint(reader_, expanded[j], expanded[i]), "schema: ", schema.pointer,
                    "/oneOf: it is not certain that no value fits both alternative ", j, " and ", i,
                    "; write anyOf, or give them a required property with different constants");
        exprs.push_back(value(expanded[i]));
    }
    return grammar_.choice(std::move(exprs));
}

SchemaCompiler::Expr SchemaCompiler::leaf(const Conjunction& all) {
    const JoinedSchema joined = join(reader_, all);
    if (joined.values) return listed_values(all, joined);
    uint32_t types = joined.types;
    // Without a type only the kinds of values are written that the keywords are about.
    if (types == kAllJsonTypes && joined.speaks_of != 0) types = joined.speaks_of;
    if (types == kAllJsonTypes) return json_.value();
    std::vector<Expr> choices;
    if (types & kJsonObject) choices.push_back(object(all, joined));
    if (types & kJsonArray) choices.push_back(array(all, joined));
    if (types & kJsonString) choices.push_back(string(joined));
    if (types & kJsonInteger) {
        JoinedSchema numbers = joined;
        numbers.types = types;
        choices.push_back(number(numbers));
    }
    if (types & kJsonBoolean) choices.push_back(json_.boolean());
    if (types & kJsonNull) choices.push_back(json_.null());
    return grammar_.choice(std::move(choices));
}

SchemaCompiler::Expr SchemaCompiler::listed_values(const Conjunction& all,
                                                   const JoinedSchema& joined) {
    std::vector<Expr> choices;
    for (const Json& value : *joined.values)
        if (fits(reader_, all, value)) choices.push_back(grammar_.text(json_text(value)));
    return grammar_.choice(std::move(choices));
}

SchemaCompiler::Expr SchemaCompiler::number(const JoinedSchema& joined) {
    const bool is_integer = (joined.types & kJsonFraction) == 0;
    if (joined.numbers.empty()) return is_integer ? json_.integer() : json_.number();
    std::string key = is_integer ? "integer" : "number";
    for (const NumberBound& bound : joined.numbers.least)
        key += concat(bound.exclusive ? " >" : " >=", bound.value.dump());
    for (const NumberBound& bound : joined.numbers.most)
        key += concat(bound.exclusive ? " <" : " <=", bound.value.dump());
    for (const Json& multiple : joined.numbers.multiple_of) key += " of " + multiple.dump();
    return json_.plain(key,
                       is_integer ? integer_within(joined.numbers) : number_within(joined.numbers));
}

SchemaCompiler::Expr SchemaCompiler::string(const JoinedSchema& joined) {
    const int64_t least = joined.min_length;
    int64_t most = kUnlimited;
    if (joined.max_length) most = std::min(*joined.max_length, std::max(least, kLongestCounted));
    if (most != kUnlimited && most < least) return grammar_.nothing();
    std::vector<std::string> formats = joined.formats;
    std::erase_if(formats, is_number_format);
    if (formats.empty() && joined.patterns.empty()) return json_.string(least, most);
    std::string key;
    std::optional<CharAutomaton> all;
    const auto add = [&](const CharAutomaton& one) { all = all ? intersection(*all, one) : one; };
    for (const std::string& format : formats) {
        add(format_texts(format));
        key += concat("format ", format, "\n");
    }
    for (const std::string& pattern : joined.patterns) {
        add(reader_.pattern(pattern));
        key += concat("pattern ", pattern, "\n");
    }
    if (least > 0 || most != kUnlimited) {
        add(CharAutomaton(Regular::repeat(Regular::chars(CharSet::all()), least, most)));
        key += concat(least, " ", most);
    }
    return json_.string(key, *all);
}

// Items of places of their own, then the others.
SchemaCompiler::Expr SchemaCompiler::array(const Conjunction& all, const JoinedSchema& joined) {
    int64_t places = 0;
    bool has_items = false;
    for (const SchemaItem& item : all) {
        places = std::max<int64_t>(places, std::ssize(reader_[item.schema].prefix_items));
        has_items = has_items || reader_[item.schema].items;
    }
    const int64_t least = joined.min_items;
    const bool has_rest = has_items || places == 0 || least > places;
    int64_t most = joined.max_items.value_or(kUnlimited);
    if (!has_rest) most = most == kUnlimited ? places : std::min(most, places);
    if (most != kUnlimited) most = std::min(most, std::max(least, kLongestCounted));
    if (most != kUnlimited && most < least) return grammar_.nothing();
    if (most != kUnlimited) places = std::min(places, most);
    Grammar::Graph graph;
    // State i: i items; then the end.
    const auto end = static_cast<int32_t>(places + 1);
    graph.accepts.assign(static_cast<size_t>(places) + 2, false);
    graph.accepts.back() = true;
    for (int64_t i = 0; i <= places; ++i) {
        const auto state = static_cast<int32_t>(i);
        if (i >= least) graph.edges.push_back({state, end, grammar_.empty()});
        if (i == places) break;
        const Expr one = call(item_of(reader_, all, i));
        graph.edges.push_back(
            {state, state + 1, i == 0 ? one : grammar_.sequence({json_.comma(), one})});
    }
    if (has_rest && most != places) {
        const Expr one = call(item_of(reader_, all, places));
        const Expr next = grammar_.sequence({json_.comma(), one});
        const int64_t first = places == 0 ? 1 : 0;
        const int64_t from = std::max<int64_t>(least - places - first, 1 - first);
        const int64_t to = most == kUnlimited ? kUnlimited : most - places - first;
        const Expr more = grammar_.repeat(next, from, to);
        graph.edges.push_back({static_cast<int32_t>(places), end,
                               places == 0 ? grammar_.sequence({one, more}) : more});
    }
    return grammar_.sequence(
        {grammar_.text("["), grammar_.graph(std::move(graph)), grammar_.text("]")});
}

}  // namespace hark
