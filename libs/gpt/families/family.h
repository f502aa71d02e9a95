// The families of language models that hark reads. One file per family makes a DecoderConfig; the
// registry in family.cc lists them.
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "gpt/families/config.h"
#include "gpt/families/config_reader.h"
#include "gpt/families/tensor_spec.h"

namespace hark::gpt {

// A part's name in the family's Hugging Face checkpoints; without its layer if it has one, and {}
// for the expert's number.
struct PartName {
    Part part;
    const char* name;
};

inline constexpr double kRopeTheta = 10000;  // of most families

struct Family {
    const char* model_type;  // of config.json
    const char* gguf;        // general.architecture of GGUF; null: not read from GGUF
    DecoderConfig (*read)(const ConfigReader& in);
    std::span<const PartName> names = {};       // where they are not those of Llama
    std::span<const PartName> gguf_names = {};  // in GGUF, where they are not those of most
    const char* prefix = "model.";              // of tensor names, which may be missing
    const char* layer_prefix = "layers.";       // of a layer's tensors
    // GGUF files have the rows of q and k in the order of interleaved rotary pairs.
    bool gguf_interleaves = false;
    bool conv1d = false;  // matrices of layers are stored (in, out)
    double rope_theta = kRopeTheta;  // the rope's base of a config.json without one
    // Tensors in Hugging Face's form as tensor_specs() lists them, from those in the file, which it
    // refers to; null: they are so.
    std::unique_ptr<TensorSource> (*unpack)(TensorSource& stored,
                                            const DecoderConfig& config) = nullptr;
};

// The family of a config.json's model_type, or of a GGUF file's architecture. Throws Error that
// begins with `where`, names it and lists what is read.
const Family& family_of(std::string_view model_type, const std::string& where);
const Family& family_of_gguf(std::string_view architecture, const std::string& where);

// The part's name in the family's checkpoints. Throws Error if it has none.
const char* part_name(const Family& family, Part part);

// What a family's settings are if the file does not say it.
struct FamilyDefaults {
    bool tied = false;      // the head
    int64_t n_kv_head = 0;  // 0: as many as heads
    double rope_theta = kRopeTheta;
    int64_t head_dim = 0;  // 0: channels / heads
    double norm_eps = 1e-6;
};

// SmolLM3's: layers i with (i + 1) % interval != 0 turn.
inline constexpr int64_t kSmolLm3Interval = 4;

// Reads the settings that most families since Llama share: rms norms before attention and MLP, a
// gated MLP, no biases, rotary positions over whole heads, scale 1 / sqrt(D).
DecoderConfig read_llama_like(const ConfigReader& in, const char* family,
                              const FamilyDefaults& defaults = {});

// Gives every layer the rope 0, and `window` to those of which slides(i) is true.
template <class Slides>
void set_layers(DecoderConfig& config, int64_t window, const Slides& slides) {
    config.layers.clear();
    for (int64_t i = 0; i < config.n_layer; ++i)
        config.layers.push_back({.rope = 0, .window = slides(i) ? window : 0});
}
// Takes the windows from the layers' types where the file has them. Returns false if it has none.
bool set_layer_types(DecoderConfig& config, const ConfigReader& in, int64_t window);

// Reads how many experts there are, how many of them compute a token, and their width, under the
// names that the family's config.json has; gives them to every layer.
void set_experts(DecoderConfig& config, const ConfigReader& in, const char* count,
                 const char* n_inner);

// Mixtral's settings: GGUF files have them as Llama's.
DecoderConfig read_mixtral(const ConfigReader& in);

// The settings that OLMo 2 and 3 share.
DecoderConfig read_olmo(const ConfigReader& in, const char* family);
// OLMo 3's settings: GGUF files have them as OLMo 2's.
DecoderConfig read_olmo3(const ConfigReader& in);

// What Qwen's config says of windows: use_sliding_window, layer_types, max_window_layers.
void set_qwen_windows(DecoderConfig& config, const ConfigReader& in);

// The names of Gemma 2 and 3 and OLMo 2 and 3, which have norms after attention and MLP.
extern const std::span<const PartName> kPostNormNames;
// The settings that Gemma 2 and 3 share.
DecoderConfig read_gemma(const ConfigReader& in, const char* family, double rope_theta);
// The scale of a Gemma's scores as GGUF files imply it.
float gemma_gguf_scale(const DecoderConfig& config);
// The rope of Gemma 3's layers with a window.
RopeSettings gemma3_window_rope(const ConfigReader& in);

// hidden_act or hidden_activation. Throws Error for others than silu and gelu's forms.
Activation read_activation(const ConfigReader& in, const Key& key, Activation otherwise);

}  // namespace hark::gpt
