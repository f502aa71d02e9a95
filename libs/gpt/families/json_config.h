// The settings of config.json.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/json/json.h"
#include "gpt/families/config_reader.h"

namespace hark::gpt {

// Of a parsed config.json, or of its text_config; `where` names it in messages.
class JsonConfig : public ConfigReader {
  public:
    JsonConfig(nlohmann::json root, std::string where);

    bool has(const Key& key) const override;
    bool mentions(const Key& key) const override { return key.json && root_.contains(key.json); }
    int64_t integer(const Key& key, int64_t min, int64_t max) const override;
    double number(const Key& key) const override;
    bool boolean(const Key& key) const override;
    std::string text(const Key& key) const override;
    RopeSettings rope(double otherwise, const char* type) const override;
    std::vector<std::string> layer_types() const override;
    std::vector<int64_t> integers(const Key& key) const override;
    std::vector<int32_t> eos_token_ids(int64_t n_vocab) const override;
    int64_t n_vocab() const override { return size({"vocab_size", nullptr}, 1 << 24); }
    std::optional<bool> has_lm_head() const override { return std::nullopt; }
    bool has_tensor(const char*) const override { return false; }
    const std::string& where() const override { return where_; }

  private:
    const nlohmann::json& at(const Key& key) const;

    nlohmann::json root_;
    std::string where_;
};

// Reads ids: a number or a list of numbers, each from 0 to n_vocab - 1. null: none.
std::vector<int32_t> token_ids(const nlohmann::json& value, const char* key, int64_t n_vocab,
                               const std::string& where);

}  // namespace hark::gpt
