#include "gpt/families/json_config.h"

#include <cmath>

#include "core/error.h"

namespace hark::gpt {

using nlohmann::json;

namespace {

std::string shown(const json& value) {
    if (value.is_number() || value.is_boolean()) return value.dump();
    return value.is_string() ? value.get<std::string>() : std::string(value.type_name());
}

int64_t whole_number(const json& value, const std::string& key, int64_t min, int64_t max,
                     const std::string& where) {
    const bool fits = value.is_number_integer() && value >= min && value <= max;
    require(fits, where, ": '", key, "': expected a whole number from ", min, " to ", max,
            ", found ", value.is_number() ? value.dump() : value.type_name());
    return value.get<int64_t>();
}

// Reads one setting of rope_scaling, if it is there.
class Scaling {
  public:
    Scaling(const json& root, std::string where) : root_(root), where_(std::move(where)) {}

    void operator()(const char* key, double& value) const {
        if (!has(key)) return;
        require(root_[key].is_number() && std::isfinite(root_[key].get<double>()), where_, ": '",
                key, "': expected a number, found ", shown(root_[key]));
        value = root_[key].get<double>();
    }
    void operator()(const char* key, int64_t& value) const {
        if (has(key)) value = whole_number(root_[key], key, 1, int64_t{1} << 40, where_);
    }
    void operator()(const char* key, bool& value) const {
        if (!has(key)) return;
        require(root_[key].is_boolean(), where_, ": '", key, "': expected true or false, found ",
                shown(root_[key]));
        value = root_[key].get<bool>();
    }
    void operator()(const char* key, std::string& value) const {
        if (!has(key)) return;
        require(root_[key].is_string(), where_, ": '", key, "': expected a text, found ",
                shown(root_[key]));
        value = root_[key].get<std::string>();
    }
    void operator()(const char* key, std::vector<double>& values) const {
        if (!has(key)) return;
        require(root_[key].is_array(), where_, ": '", key, "': expected a list of numbers");
        for (const json& value : root_[key]) {
            require(value.is_number(), where_, ": '", key, "': expected numbers, found ",
                    shown(value));
            values.push_back(value.get<double>());
        }
    }

  private:
    bool has(const char* key) const { return root_.contains(key) && !root_[key].is_null(); }

    const json& root_;
    std::string where_;
};

}  // namespace

std::vector<int32_t> token_ids(const json& value, const char* key, int64_t n_vocab,
                               const std::string& where) {
    std::vector<int32_t> ids;
    if (value.is_null()) return ids;
    for (const json& id : value.is_array() ? value : json::array({value}))
        ids.push_back(static_cast<int32_t>(whole_number(id, key, 0, n_vocab - 1, where)));
    return ids;
}

JsonConfig::JsonConfig(json root, std::string where)
    : ConfigReader(false), root_(std::move(root)), where_(std::move(where)) {}

bool JsonConfig::has(const Key& key) const {
    return key.json && root_.contains(key.json) && !root_[key.json].is_null();
}

const json& JsonConfig::at(const Key& key) const {
    require(root_.contains(key.json), where_, ": expected '", key.json, "', found none");
    return root_[key.json];
}

int64_t JsonConfig::integer(const Key& key, int64_t min, int64_t max) const {
    return whole_number(at(key), key.json, min, max, where_);
}

double JsonConfig::number(const Key& key) const {
    const json& value = at(key);
    require(value.is_number() && std::isfinite(value.get<double>()), where_, ": '", key.json,
            "': expected a number, found ", shown(value));
    return value.get<double>();
}

bool JsonConfig::boolean(const Key& key) const {
    const json& value = at(key);
    require(value.is_boolean(), where_, ": '", key.json, "': expected true or false, found ",
            value.type_name());
    return value.get<bool>();
}

std::string JsonConfig::text(const Key& key) const {
    const json& value = at(key);
    require(value.is_string(), where_, ": '", key.json, "': expected a text, found ", shown(value));
    return value.get<std::string>();
}

RopeSettings JsonConfig::rope(double otherwise, const char* type) const {
    RopeSettings rope;
    rope.theta = number_or({"rope_theta", nullptr}, otherwise);
    for (const char* name : {"rope_scaling", "rope_parameters"}) {
        if (!has({name, nullptr})) continue;
        const json* root = &root_[name];
        require(root->is_object(), where_, ": '", name, "': expected an object, found ",
                shown(*root));
        if (root->contains(type)) root = &(*root)[type];
        require(root->is_object(), where_, ": '", name, "': expected an object for ", type);
        const Scaling read(*root, concat(where_, ": '", name, "'"));
        read("rope_theta", rope.theta);
        read("type", rope.type);
        read("rope_type", rope.type);
        read("factor", rope.factor);
        read("low_freq_factor", rope.low_freq_factor);
        read("high_freq_factor", rope.high_freq_factor);
        read("original_max_position_embeddings", rope.original_length);
        read("beta_fast", rope.beta_fast);
        read("beta_slow", rope.beta_slow);
        read("truncate", rope.truncate);
        read("attention_factor", rope.attention_factor);
        read("mscale", rope.mscale);
        read("mscale_all_dim", rope.mscale_all_dim);
        read("short_factor", rope.short_factor);
        read("long_factor", rope.long_factor);
    }
    // Phi-3 keeps longrope's original length at the top, and names it su or yarn in older files.
    const Key original{"original_max_position_embeddings", nullptr};
    if (rope.original_length == 0) rope.original_length = size_or(original, int64_t{1} << 40, 0);
    if (!rope.long_factor.empty()) rope.type = "longrope";
    require(rope.theta > 0 && rope.factor > 0, where_,
            ": expected a rope_theta and a factor above 0, found ", rope.theta, " and ",
            rope.factor);
    return rope;
}

std::vector<std::string> JsonConfig::layer_types() const {
    std::vector<std::string> types;
    if (!has({"layer_types", nullptr})) return types;
    for (const json& type : root_["layer_types"]) {
        require(type.is_string(), where_, ": 'layer_types': expected texts, found ", shown(type));
        types.push_back(type.get<std::string>());
    }
    return types;
}

std::vector<int64_t> JsonConfig::integers(const Key& key) const {
    std::vector<int64_t> values;
    if (!has(key)) return values;
    require(root_[key.json].is_array(), where_, ": '", key.json, "': expected a list, found ",
            shown(root_[key.json]));
    for (const json& value : root_[key.json])
        values.push_back(whole_number(value, key.json, 0, INT32_MAX, where_));
    return values;
}

std::vector<int32_t> JsonConfig::eos_token_ids(int64_t n_vocab) const {
    if (!has({"eos_token_id", nullptr})) return {};
    return token_ids(root_["eos_token_id"], "eos_token_id", n_vocab, where_);
}

}  // namespace hark::gpt
