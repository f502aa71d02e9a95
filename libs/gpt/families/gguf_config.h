// The settings of a GGUF file, from its keys.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "formats/gguf.h"
#include "gpt/families/config_reader.h"

namespace hark::gpt {

// `file` has to outlive it.
class GgufConfig : public ConfigReader {
  public:
    explicit GgufConfig(const GgufFile& file);

    bool has(const Key& key) const override;
    int64_t integer(const Key& key, int64_t min, int64_t max) const override;
    double number(const Key& key) const override;
    bool boolean(const Key& key) const override;
    std::string text(const Key& key) const override;
    RopeSettings rope(double otherwise, const char* type) const override;
    std::vector<std::string> layer_types() const override;
    std::vector<int64_t> integers(const Key& key) const override;
    std::vector<int32_t> eos_token_ids(int64_t n_vocab) const override;
    int64_t n_vocab() const override;
    std::optional<bool> has_lm_head() const override { return has_tensor("output.weight"); }
    bool has_tensor(const char* name) const override { return file_.tensors().contains(name); }
    const std::string& where() const override { return file_.name(); }

  private:
    std::string full(const Key& key) const;

    const GgufFile& file_;
    std::string architecture_;
};

}  // namespace hark::gpt
