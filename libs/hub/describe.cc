#include "hub/describe.h"

#include <algorithm>
#include <cstdio>
#include <map>

#include "core/cli/cli.h"
#include "core/error.h"
#include "core/half.h"
#include "hub/model_record.h"
#include "hub/tensor_list.h"

namespace hark::models {
namespace {

using nlohmann::ordered_json;

constexpr const char *kInt8 = "int8", *kFp8 = "fp8";  // as --dtype has them

// What nn/weights.h makes of a tensor: vectors and positions are f32 whatever --dtype says,
// int8 and fp8 have a scale a row, and fp8 leaves convolutions in 16 bits.
int64_t bytes_at(const std::string& dtype, const ModelTensor& tensor) {
    const int64_t n = tensor.size();
    if (!tensor.matrix || dtype == "f32") return 4 * n;
    const bool is_byte = dtype == kInt8 || (dtype == kFp8 && tensor.shape.size() != 3);
    if (is_byte) return n + 4 * (tensor.in_out ? tensor.shape[1] : tensor.shape[0]);
    return 2 * n;
}

bool all_fit_f16(const Tensor& stored) {
    if (stored.dtype != Dtype::f32) return false;
    const float* values = stored.as<float>();
    return std::all_of(values, values + stored.size(), fits_f16);
}

// The same at --dtype auto on the CPU.
int64_t bytes_at_auto(const ModelTensor& tensor, const Tensor& stored, bool int8) {
    if (!tensor.matrix) return bytes_at("f32", tensor);
    if (int8) return bytes_at(kInt8, tensor);
    if (is_quantized(stored.dtype)) return static_cast<int64_t>(stored.bytes());
    const bool half = stored.dtype == Dtype::bf16 || stored.dtype == Dtype::f16;
    return bytes_at(half || all_fit_f16(stored) ? "f16" : "f32", tensor);
}

void describe_tensors(const ModelHandle& model, ordered_json& out) {
    TensorSource& source = model.tensors();
    const bool int8 = model.whisper && model.whisper->int8();
    constexpr const char* kDtypes[] = {"f32", "f16", "bf16", kInt8, kFp8};
    int64_t parameters = 0;
    std::map<std::string, int64_t> stored, memory;
    ordered_json types = ordered_json::object();  // tensors by kind and type
    for (const ModelTensor& tensor : tensor_list(model)) {
        const Tensor found = take(source, tensor);
        const int64_t n = tensor.size();
        parameters += n;
        const std::string type = source.stores_int8(tensor.name) ? kInt8 : name_of(found.dtype);
        stored[type] += n;
        if (*tensor.kind) {
            ordered_json& count = types[tensor.kind][type];
            count = count.is_null() ? 1 : count.get<int64_t>() + 1;
        }
        memory["auto"] += bytes_at_auto(tensor, found, int8);
        for (const char* dtype : kDtypes) memory[dtype] += bytes_at(dtype, tensor);
        source.release_tensors();
    }
    out["parameters"] = parameters;
    for (const auto& [dtype, count] : stored) out["stored"][dtype] = count;
    if (!types.empty()) out["types"] = types;
    out["memory"]["auto"] = memory["auto"];
    for (const char* dtype : kDtypes) out["memory"][dtype] = memory[dtype];
}

ordered_json layers(int64_t n, int64_t channels, int64_t heads, int64_t mlp) {
    return {{"layers", n}, {"channels", channels}, {"heads", heads}, {"mlp", mlp}};
}

void describe_whisper(const whisper::ModelFile& file, ordered_json& out) {
    const whisper::Config& c = file.config();
    out["encoder"] = layers(c.n_audio_layer, c.n_audio_state, c.n_audio_head, c.n_audio_mlp);
    out["decoder"] = layers(c.n_text_layer, c.n_text_state, c.n_text_head, c.n_text_mlp);
    out["mels"] = c.n_mels;
    out["positions"] = {{"sound", c.n_audio_ctx}, {"text", c.n_text_ctx}};
    out["vocabulary"] = c.n_vocab;
    out["alignment_heads"] = ordered_json::array();
    for (const auto& [layer, head] : c.alignment_heads)
        out["alignment_heads"].push_back({layer, head});
}

const char* name_of(Activation activation) {
    switch (activation) {
        case Activation::gelu:
            return "gelu";
        case Activation::gelu_tanh:
            return "gelu_new";
        case Activation::silu:
            return "silu";
        case Activation::none:
            break;
    }
    return "none";
}

// The bytes of what all layers keep for one sequence of that many tokens.
ordered_json context_memory(const gpt::DecoderConfig& c) {
    constexpr int64_t kUsual = 4096;
    ordered_json out = ordered_json::array();
    for (const int64_t tokens : {kUsual, c.n_positions}) {
        if (tokens > c.n_positions || (!out.empty() && tokens == kUsual)) continue;
        const int64_t values = c.n_layer * c.cache_width() * tokens;
        out.push_back({{"tokens", tokens}, {"f32", 4 * values}, {"f16", 2 * values}});
        if (c.head_dim % block_size(Dtype::q8_0).values == 0)
            out.back()["q8_0"] = row_bytes(Dtype::q8_0, values);
    }
    return out;
}

// The tokens that end a text: the config's, and those that the tokenizer's files name.
ordered_json end_tokens(const gpt::ModelFile& file) {
    const auto tokenizer = file.tokenizer();
    std::vector<int32_t> ids = file.config().eos_token_ids;
    for (const int32_t id : tokenizer->special_ids().ends)
        if (std::count(ids.begin(), ids.end(), id) == 0) ids.push_back(id);
    ordered_json out = ordered_json::array();
    for (const int32_t id : ids)
        if (id >= 0 && id < tokenizer->vocab_size())
            out.push_back({{"id", id}, {"token", tokenizer->token(id)}});
    return out;
}

void describe_gpt(const gpt::ModelFile& file, ordered_json& out) {
    const gpt::DecoderConfig& c = file.config();
    out["family"] = c.family;
    if (const auto widening = file.widening()) out["quantization"] = widening->format;
    out["decoder"] = layers(c.n_layer, c.n_embd, c.n_head, c.n_inner);
    if (c.experts.count > 0) {
        out["decoder"]["experts"] = c.experts.count;
        out["decoder"]["experts_per_token"] = c.experts.per_token;
        out["decoder"]["expert_mlp"] = c.experts.n_inner;
        if (c.experts.n_shared_inner > 0)
            out["decoder"]["shared_expert_mlp"] = c.experts.n_shared_inner;
    }
    if (c.is_latent()) {
        out["decoder"]["latent_channels"] = c.latent.channels;
        out["decoder"]["rotary_channels"] = c.latent.rotary;
        out["decoder"]["head_channels"] = c.latent.plain + c.latent.rotary;
        out["decoder"]["value_channels"] = c.latent.value;
    } else {
        out["decoder"]["key_value_heads"] = c.n_kv_head;
        out["decoder"]["head_channels"] = c.head_dim;
    }
    out["activation"] = name_of(c.activation);
    out["positions"] = {{"text", c.n_positions}};
    out["vocabulary"] = c.n_vocab;
    out["tied_output"] = c.tie_word_embeddings;
    out["context_memory"] = context_memory(c);
    out["chat_template"] = file.chat_template() ? "yes" : "none";
}

// Of a file without a vocabulary, why.
void describe_tokenizer(const ModelHandle& model, ordered_json& out) {
    try {
        if (model.gpt) {
            out["tokenizer"]["tokens"] = model.gpt->tokenizer()->vocab_size();
            out["end_of_text"] = end_tokens(*model.gpt);
            return;
        }
        const whisper::SpecialTokens special = model.whisper->tokenizer().special();
        out["tokenizer"] = {{"tokens", special.eot}, {"first_timestamp", special.timestamp_begin}};
        ordered_json languages = ordered_json::array();
        for (const auto& [code, id] : special.languages) languages.push_back(code);
        if (languages.empty()) languages.push_back("en");
        out["languages"] = languages;
    } catch (const Error& why) {
        out["tokenizer"] = {{"missing", why.what()}};
    }
}

// --- as text -------------------------------------------------------------------------------------

std::string plain(const ordered_json& value) {
    return value.is_string() ? value.get<std::string>() : value.dump();
}

std::string mlp_text(const ordered_json& part) {
    if (!part.contains("experts")) return concat("MLP of ", part["mlp"].dump());
    std::string text = concat(part["experts_per_token"].dump(), " of ", part["experts"].dump(),
                              " experts of ", part["expert_mlp"].dump());
    if (part.contains("shared_expert_mlp"))
        text += concat(" and a shared one of ", part["shared_expert_mlp"].dump());
    return text;
}

std::string layers_text(const ordered_json& part) {
    std::string heads = concat(part["heads"].dump(), " heads");
    if (part.contains("latent_channels"))
        heads += concat(" over latent rows of ", part["latent_channels"].dump(), " + ",
                        part["rotary_channels"].dump());
    return concat(part["layers"].dump(), " layers of ", part["channels"].dump(), ", ", heads, ", ",
                  mlp_text(part));
}

// What text(name, value) makes of each, with `between` two of them.
template <class Text>
std::string joined_items(const ordered_json& values, const char* between, const Text& text) {
    std::string all;
    for (const auto& [name, value] : values.items())
        all += (all.empty() ? "" : between) + text(name, value);
    return all;
}

std::string tokenizer_text(const ordered_json& tokenizer) {
    if (tokenizer.contains("missing")) return "none: " + plain(tokenizer["missing"]);
    std::string text = concat(tokenizer["tokens"].dump(), " tokens");
    if (tokenizer.contains("first_timestamp"))
        text += concat(" of text, timestamps from ", tokenizer["first_timestamp"].dump());
    return text;
}

// "attention v q4_k 3, q6_k 1": counts only if there are several types.
std::string types_text(const ordered_json& types) {
    return joined_items(types, "; ", [](const std::string& kind, const ordered_json& counts) {
        std::string text = kind;
        std::replace(text.begin(), text.end(), '_', ' ');
        const bool one = counts.size() == 1;
        return text + " " +
               joined_items(counts, ", ", [&](const std::string& type, const ordered_json& count) {
                   return one ? type : concat(type, " ", count.dump());
               });
    });
}

std::string context_text(const ordered_json& contexts) {
    return joined_items(contexts, "; ", [](const std::string&, const ordered_json& at) {
        std::string text = at["tokens"].dump() + " tokens:";
        for (const char* type : {"f32", "f16", "q8_0"})
            if (at.contains(type))
                text += concat(text.ends_with(':') ? " " : ", ", type, " ",
                               megabytes(at[type].get<uint64_t>()));
        return text;
    });
}

std::string end_text(const ordered_json& tokens) {
    if (tokens.empty()) return "none";
    return joined_items(tokens, ", ", [](const std::string&, const ordered_json& token) {
        return concat(printable(token["token"].get<std::string>()), " (", token["id"].dump(), ")");
    });
}

std::string text_of(const std::string& key, const ordered_json& value) {
    if (key == "types") return types_text(value);
    if (key == "context_memory") return context_text(value);
    if (key == "end_of_text") return end_text(value);
    if (key == "encoder" || key == "decoder") return layers_text(value);
    if (key == "tied_output") return value.get<bool>() ? "the token table" : "weights of its own";
    if (key == "tokenizer") return tokenizer_text(value);
    if (key == "alignment_heads")
        return joined_items(value, " ", [](const std::string&, const ordered_json& head) {
            return concat(head[0].dump(), ":", head[1].dump());
        });
    if (key == "positions")
        return joined_items(value, ", ", [](const std::string& of, const ordered_json& count) {
            return concat(count.dump(), " of ", of);
        });
    if (key == "memory")
        return joined_items(value, ", ", [](const std::string& dtype, const ordered_json& bytes) {
            return concat(dtype, " ", megabytes(bytes.get<uint64_t>()));
        });
    if (value.is_object())
        return joined_items(value, ", ", [](const std::string& name, const ordered_json& part) {
            return concat(name, " ", plain(part));
        });
    if (value.is_array())
        return joined_items(
            value, " ", [](const std::string&, const ordered_json& part) { return plain(part); });
    return plain(value);
}

}  // namespace

std::string megabytes(uint64_t bytes) {
    char text[32];
    std::snprintf(text, sizeof text, "%.1f MB", static_cast<double>(bytes) / 1e6);
    return text;
}

ordered_json describe_model(const ModelHandle& model) {
    ordered_json out;
    out["kind"] = model.kind();
    out["format"] = model.format();
    if (model.whisper)
        describe_whisper(*model.whisper, out);
    else
        describe_gpt(*model.gpt, out);
    describe_tokenizer(model, out);
    describe_tensors(model, out);
    return out;
}

void describe_origin(const ModelHandle& model, const std::filesystem::path& path,
                     ordered_json& out) {
    const ModelRecord record = read_record(path).value_or(ModelRecord{});
    const auto add = [&](const char* key, const std::string& text) {
        if (!text.empty()) out[key] = text;
    };
    add("repository", record.repository);
    add("revision", record.revision);
    add("commit", record.commit);
    const bool says_own = record.license.empty() && model.gpt;
    add("license", says_own ? license_word(model.gpt->license()) : record.license);
}

std::string shape_of(const ModelHandle& model) {
    if (model.gpt) {
        const gpt::DecoderConfig& c = model.gpt->config();
        return concat(c.n_layer, " layers of ", c.n_embd);
    }
    const whisper::Config& c = model.whisper->config();
    return concat(c.n_audio_layer, " + ", c.n_text_layer, " layers of ", c.n_text_state);
}

std::string as_text(const ordered_json& description) {
    size_t width = 0;
    for (const auto& [key, value] : description.items()) width = std::max(width, key.size());
    std::string text;
    for (const auto& [key, value] : description.items()) {
        std::string title = key == "tied_output" ? "output" : key;
        std::replace(title.begin(), title.end(), '_', ' ');
        text += title + std::string(width + 2 - title.size(), ' ') + text_of(key, value) + "\n";
    }
    return text;
}

}  // namespace hark::models
