#include "gpt/families/compressed_config.h"

#include <cstdio>

#include "core/error.h"
#include "core/ranges.h"
#include "formats/packed/compressed_tensors.h"
#include "text/regex.h"

namespace hark::gpt {
namespace {

using nlohmann::json;

constexpr int64_t kMostPerCell = 1 << 24;

// A group of config_groups, for each way in which its targets name modules.
struct NamedGroup {
    CompressedGroup group;
    std::vector<std::string> targets;
};

// "re:" targets match the beginning of a name, as Python's re.match() does.
bool target_covers(const std::string& target, const std::string& module) {
    if (!target.starts_with("re:")) return target == module;
    return Regex("(?:" + target.substr(3) + ")[\\s\\S]*").matches(module);
}

Cell read_cell(const json& weights, const JsonConfig& in) {
    const Key strategy{"strategy", nullptr}, size{"group_size", nullptr};
    const int64_t group = in.has(size) ? in.integer(size, -1, kMostPerCell) : 0;
    const std::string name = in.has(strategy) ? in.text(strategy)
                             : group > 0      ? "group"
                             : group < 0      ? "channel"
                                              : "tensor";
    if (name == "tensor") return {};
    if (name == "channel") return {1, 0};
    if (name == "block" && in.has({"block_structure", nullptr}))
        return block_size_of(weights["block_structure"], in.where() + ": 'block_structure'");
    require(name == "group" && group > 0, in.where(),
            ": 'strategy': expected tensor, channel, group with a 'group_size' above 0 or block "
            "with a 'block_structure', found ",
            name);
    return {1, group};
}

CompressedGroup read_group(const json& weights, const std::string& format, const JsonConfig& in) {
    CompressedGroup group;
    group.packed = format == "pack-quantized";
    group.bits = static_cast<int>(in.integer_or({"num_bits", nullptr}, 1, 8, 8));
    group.symmetric = in.boolean_or({"symmetric", nullptr}, true);
    group.cell = read_cell(weights, in);
    const Key type{"type", nullptr};
    const std::string kind = in.has(type) ? in.text(type) : "int";
    require(kind == "int" || (kind == "float" && group.bits == 8 && !group.packed), in.where(),
            ": 'type': expected int, or float of 8 bits that are not packed, found ", kind, " of ",
            group.bits, " bits as ", format);
    return group;
}

std::vector<NamedGroup> read_groups(const json& groups, const std::string& global,
                                    const std::string& where) {
    constexpr const char* kFormats[] = {"pack-quantized", "int-quantized", "float-quantized",
                                        "naive-quantized", "dense"};
    std::vector<NamedGroup> all;
    for (const auto& [name, value] : groups.items()) {
        const std::string place = concat(where, ": '", name, "'");
        require(value.is_object(), place, ": expected an object, found ", value.type_name());
        const JsonConfig in(value, place);
        if (!in.has({"weights", nullptr})) continue;
        const std::string format =
            in.has({"format", nullptr}) ? in.text({"format", nullptr}) : global;
        require(contains(kFormats, format), place,
                ": 'format': expected pack-quantized, int-quantized, float-quantized, ",
                "naive-quantized or dense, found ", format);
        const json& weights = value["weights"];
        require(weights.is_object(), place, ": 'weights': expected an object, found ",
                weights.type_name());
        NamedGroup& group = all.emplace_back();
        group.group = read_group(weights, format, JsonConfig(weights, place + ": 'weights'"));
        const json targets = value.value("targets", json::array());
        require(targets.is_array(), place, ": 'targets': expected a list of texts");
        for (const json& target : targets) {
            require(target.is_string(), place, ": 'targets': expected a list of texts");
            group.targets.push_back(target.get<std::string>());
        }
    }
    require(!all.empty(), where, ": expected a group with 'weights', found none");
    return all;
}

// Names of modules before patterns before the class of all of them, as in compressed-tensors. A
// single group covers all that is packed.
std::vector<CompressedGroup> in_order(const std::vector<NamedGroup>& groups) {
    std::vector<CompressedGroup> names, patterns, classes;
    for (const auto& [group, targets] : groups)
        for (const std::string& target : targets) {
            CompressedGroup of = group;
            of.covers = [target](const std::string& name) { return target_covers(target, name); };
            if (target == "Linear") of.covers = [](const std::string&) { return true; };
            (target == "Linear"          ? classes
             : target.starts_with("re:") ? patterns
                                         : names)
                .push_back(std::move(of));
        }
    if (groups.size() == 1) {
        classes = {groups.front().group};
        classes.front().covers = [](const std::string&) { return true; };
    }
    names.insert(names.end(), patterns.begin(), patterns.end());
    names.insert(names.end(), classes.begin(), classes.end());
    return names;
}

}  // namespace

Cell block_size_of(const json& value, const std::string& where) {
    Cell cell;
    const auto size = [](const json& one) {
        return one.is_number_integer() && one >= 1 && one <= kMostPerCell ? one.get<int64_t>() : 0;
    };
    if (value.is_string()) {
        long long rows = 0, columns = 0;
        char end = 0;
        if (std::sscanf(value.get<std::string>().c_str(), "%8lldx%8lld%c", &rows, &columns, &end) ==
            2)
            cell = {rows, columns};
    } else if (value.is_array() && value.size() == 2) {
        cell = {size(value[0]), size(value[1])};
    }
    require(cell.rows > 0 && cell.columns > 0, where,
            ": expected two whole numbers above 0, as in [128, 128], found ", value.dump());
    return cell;
}

Quantization read_compressed_tensors(const json& settings, const JsonConfig& in) {
    const Key key{"config_groups", nullptr};
    require(in.has(key) && settings[key.json].is_object(), in.where(),
            ": expected an object 'config_groups'");
    const Key rotations{"transform_config", nullptr};
    if (in.has(rotations)) {
        const json& rotation = settings[rotations.json];
        require(rotation.empty() ||
                    (rotation.contains("config_groups") && rotation["config_groups"].empty()),
                in.where(), ": 'transform_config': models with rotated matrices are not read");
    }
    const json sparsity = settings.value("sparsity_config", json());
    const json kind =
        sparsity.is_object() ? sparsity.value("format", json("dense")) : json("dense");
    require(kind == "dense", in.where(), ": 'sparsity_config': expected the format dense, found ",
            kind.dump());
    const std::string format = in.has({"format", nullptr}) ? in.text({"format", nullptr}) : "none";
    const std::vector<NamedGroup> groups =
        read_groups(settings[key.json], format, in.where() + ": 'config_groups'");
    std::string bits;
    for (const NamedGroup& group : groups) {
        const std::string number = std::to_string(group.group.bits);
        if (bits.find(number) == bits.npos) bits += (bits.empty() ? "" : " and ") + number;
    }
    return {concat("compressed-tensors, ", format, ", ", bits, " bits"),
            make_compressed_format(in_order(groups))};
}

}  // namespace hark::gpt
