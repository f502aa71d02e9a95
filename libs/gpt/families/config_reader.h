// The settings of a model, from config.json or from GGUF keys, through one interface, so that a
// family is read in one place.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace hark::gpt {

// A setting's name in config.json and, without the architecture, in GGUF; null: it is not there.
struct Key {
    const char* json;
    const char* gguf;
};

// rope_scaling of config.json (or rope_parameters of transformers 5) and rope.scaling.* of GGUF.
struct RopeSettings {
    double theta = 10000;
    std::string type = "default";  // default, linear, dynamic, llama3, yarn, longrope
    double factor = 1;
    double low_freq_factor = 1, high_freq_factor = 4;  // llama3
    int64_t original_length = 0;                       // 0: not given
    double beta_fast = 32, beta_slow = 1;              // yarn
    bool truncate = true;
    double attention_factor = 0, mscale = 0, mscale_all_dim = 0;  // 0: not given
    std::vector<double> short_factor, long_factor;                // longrope
    std::vector<double> divisors;  // of the frequencies, from GGUF's rope_freqs.weight
};

class ConfigReader {
  public:
    virtual ~ConfigReader() = default;

    bool is_gguf() const { return is_gguf_; }
    virtual bool has(const Key& key) const = 0;
    // Whether the setting is there, null or not.
    virtual bool mentions(const Key& key) const { return has(key); }
    // Values throw Error naming file and key if there is none, of another type or out of range.
    virtual int64_t integer(const Key& key, int64_t min, int64_t max) const = 0;
    virtual double number(const Key& key) const = 0;
    virtual bool boolean(const Key& key) const = 0;
    virtual std::string text(const Key& key) const = 0;
    // The rope of layers of `type` ("full_attention" or "sliding_attention"; transformers 5 may
    // have one for each); theta is `otherwise` if it is not given.
    virtual RopeSettings rope(double otherwise, const char* type = "full_attention") const = 0;
    // layer_types of config.json, or what GGUF's attention.sliding_window_pattern says of each
    // layer; empty if there are none.
    virtual std::vector<std::string> layer_types() const = 0;
    // A list of 0 and 1 (no_rope_layers); empty if there is none.
    virtual std::vector<int64_t> integers(const Key& key) const = 0;
    // eos_token_id, as a number or a list, below n_vocab.
    virtual std::vector<int32_t> eos_token_ids(int64_t n_vocab) const = 0;
    // Rows of the token table: from the file's tensor in GGUF.
    virtual int64_t n_vocab() const = 0;
    // Whether the file has an output table; unknown for config.json.
    virtual std::optional<bool> has_lm_head() const = 0;
    // Whether a GGUF file has the tensor; config.json has none.
    virtual bool has_tensor(const char* name) const = 0;
    virtual const std::string& where() const = 0;

    int64_t size(const Key& key, int64_t max) const { return integer(key, 1, max); }
    int64_t size_or(const Key& key, int64_t max, int64_t otherwise) const {
        return has(key) ? size(key, max) : otherwise;
    }
    int64_t integer_or(const Key& key, int64_t min, int64_t max, int64_t otherwise) const {
        return has(key) ? integer(key, min, max) : otherwise;
    }
    double number_or(const Key& key, double otherwise) const {
        return has(key) ? number(key) : otherwise;
    }
    bool boolean_or(const Key& key, bool otherwise) const {
        return has(key) ? boolean(key) : otherwise;
    }

  protected:
    explicit ConfigReader(bool is_gguf) : is_gguf_(is_gguf) {}

  private:
    bool is_gguf_;
};

}  // namespace hark::gpt
