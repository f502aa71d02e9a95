#include "models/describe.h"

#include <algorithm>
#include <cstdio>
#include <map>

#include "core/error.h"
#include "models/tensor_list.h"

namespace hark::models {
namespace {

using json = nlohmann::ordered_json;

// What kernels/weights.h makes of them: vectors and positions are f32 whatever --dtype says, and
// int8 has a scale a row.
int64_t bytes_at(const std::string& dtype, const std::vector<ModelTensor>& tensors) {
    int64_t bytes = 0;
    for (const ModelTensor& tensor : tensors) {
        const int64_t n = tensor.size();
        if (!tensor.matrix || dtype == "f32")
            bytes += 4 * n;
        else if (dtype == "int8")
            bytes += n + 4 * (tensor.in_out ? tensor.shape[1] : tensor.shape[0]);
        else
            bytes += 2 * n;
    }
    return bytes;
}

void describe_tensors(const AnyModel& model, json& out) {
    TensorSource& source = model.tensors();
    const std::vector<ModelTensor> tensors = tensor_list(model);
    int64_t parameters = 0;
    std::map<std::string, int64_t> stored;
    for (const ModelTensor& tensor : tensors) {
        parameters += tensor.size();
        stored[name_of(take(source, tensor).dtype)] += tensor.size();
        source.forget_taken();
    }
    out["parameters"] = parameters;
    for (const auto& [dtype, count] : stored) out["stored"][dtype] = count;
    for (const char* dtype : {"f32", "f16", "bf16", "int8"})
        out["memory"][dtype] = bytes_at(dtype, tensors);
}

void describe_whisper(const whisper::ModelFile& file, json& out) {
    const whisper::Config& c = file.config();
    out["encoder"] = concat(c.n_audio_layer, " layers of ", c.n_audio_state, ", ", c.n_audio_head,
                            " heads, MLP of ", c.n_audio_mlp);
    out["decoder"] = concat(c.n_text_layer, " layers of ", c.n_text_state, ", ", c.n_text_head,
                            " heads, MLP of ", c.n_text_mlp);
    out["mels"] = c.n_mels;
    out["positions"] = concat(c.n_audio_ctx, " of sound, ", c.n_text_ctx, " of text");
    out["vocabulary"] = c.n_vocab;
    json heads = json::array();
    for (const auto& [layer, head] : c.alignment_heads) heads.push_back(concat(layer, ":", head));
    out["alignment heads"] = heads;
}

void describe_gpt(const gpt::ModelFile& file, json& out) {
    const gpt::Config& c = file.config();
    out["layers"] =
        concat(c.n_layer, " of ", c.n_embd, ", ", c.n_head, " heads, MLP of ", c.n_inner);
    out["activation"] = c.activation == Activation::gelu ? "gelu" : "gelu_new";
    out["positions"] = c.n_positions;
    out["vocabulary"] = c.n_vocab;
    out["output"] = c.tie_word_embeddings ? "the token table" : "weights of its own";
}

// Of a file without a vocabulary, why.
void describe_tokenizer(const AnyModel& model, json& out) {
    try {
        if (model.gpt) {
            out["tokenizer"] = concat(model.gpt->tokenizer().vocab_size(), " tokens");
            return;
        }
        const whisper::SpecialTokens special = model.whisper->tokenizer().special();
        out["tokenizer"] =
            concat(special.eot, " tokens of text, timestamps from ", special.timestamp_begin);
        json languages = json::array();
        for (const auto& [code, id] : special.languages) languages.push_back(code);
        if (languages.empty()) languages.push_back("en");
        out["languages"] = languages;
    } catch (const Error& why) {
        out["tokenizer"] = concat("none: ", why.what());
    }
}

}  // namespace

std::string megabytes(uint64_t bytes) {
    char text[32];
    std::snprintf(text, sizeof text, "%.1f MB", static_cast<double>(bytes) / 1e6);
    return text;
}

json describe_model(const AnyModel& model) {
    json out;
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

std::string shape_of(const AnyModel& model) {
    if (model.gpt) {
        const gpt::Config& c = model.gpt->config();
        return concat(c.n_layer, " layers of ", c.n_embd);
    }
    const whisper::Config& c = model.whisper->config();
    return concat(c.n_audio_layer, " + ", c.n_text_layer, " layers of ", c.n_text_state);
}

std::string as_text(const json& description) {
    size_t width = 0;
    for (const auto& [key, value] : description.items()) width = std::max(width, key.size());
    std::string text;
    for (const auto& [key, value] : description.items()) {
        const bool memory = key == "memory";
        const auto plain = [&](const json& part) {
            return memory             ? megabytes(part.get<uint64_t>())
                   : part.is_string() ? part.get<std::string>()
                                      : part.dump();
        };
        std::string line;
        for (const auto& [name, part] : value.items()) {
            if (!line.empty()) line += value.is_object() ? ", " : " ";
            line += value.is_object() ? name + " " + plain(part) : plain(part);
        }
        if (!value.is_structured()) line = plain(value);
        text += key + std::string(width + 2 - key.size(), ' ') + line + "\n";
    }
    return text;
}

}  // namespace hark::models
