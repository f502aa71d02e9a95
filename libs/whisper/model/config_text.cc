#include "whisper/model/config_text.h"

#include <algorithm>

#include "core/error.h"
#include "core/json/json.h"

namespace hark::whisper {
namespace {

using nlohmann::ordered_json;

// The tokens that the reference never samples. Source: openai/whisper decoding.py,
// _get_suppress_tokens.
std::vector<int32_t> suppressed(const Tokenizer& tokenizer) {
    const SpecialTokens& special = tokenizer.special();
    std::vector<int32_t> ids = tokenizer.non_speech_tokens();
    for (const int32_t id : {special.transcribe, special.translate, special.sot, special.sot_prev,
                             special.sot_lm, special.no_speech})
        if (id >= 0) ids.push_back(id);
    std::sort(ids.begin(), ids.end());
    return ids;
}

void add_ids(ordered_json& root, const SpecialTokens& special) {
    root["bos_token_id"] = special.eot;
    root["eos_token_id"] = special.eot;
    root["pad_token_id"] = special.eot;
    root["decoder_start_token_id"] = special.sot;
}

}  // namespace

std::string torch_name(Dtype dtype) {
    require(dtype == Dtype::f32 || dtype == Dtype::f16 || dtype == Dtype::bf16,
            "expected f32, f16 or bf16, found ", name_of(dtype));
    return dtype == Dtype::f32 ? "float32" : dtype == Dtype::f16 ? "float16" : "bfloat16";
}

std::string format_config(const Config& c, const SpecialTokens& special, Dtype dtype) {
    ordered_json root = {{"architectures", {"WhisperForConditionalGeneration"}},
                         {"model_type", "whisper"},
                         {"is_encoder_decoder", true},
                         {"activation_function", "gelu"},
                         {"scale_embedding", false},
                         {"d_model", c.n_audio_state},
                         {"encoder_layers", c.n_audio_layer},
                         {"encoder_attention_heads", c.n_audio_head},
                         {"encoder_ffn_dim", c.n_audio_mlp},
                         {"decoder_layers", c.n_text_layer},
                         {"decoder_attention_heads", c.n_text_head},
                         {"decoder_ffn_dim", c.n_text_mlp},
                         {"num_hidden_layers", c.n_audio_layer},
                         {"num_mel_bins", c.n_mels},
                         {"max_source_positions", c.n_audio_ctx},
                         {"max_target_positions", c.n_text_ctx},
                         {"vocab_size", c.n_vocab},
                         {"torch_dtype", torch_name(dtype)}};
    add_ids(root, special);
    return root.dump(2) + "\n";
}

std::string format_generation_config(const Config& config, const Tokenizer& tokenizer) {
    const SpecialTokens& special = tokenizer.special();
    ordered_json root;
    for (const auto& [layer, head] : config.alignment_heads)
        root["alignment_heads"].push_back({layer, head});
    root["begin_suppress_tokens"] = {tokenizer.encode(" ").at(0), special.eot};
    add_ids(root, special);
    root["is_multilingual"] = special.multilingual;
    if (special.multilingual) {
        for (const auto& [code, id] : special.languages)
            root["lang_to_id"]["<|" + code + "|>"] = id;
        root["task_to_id"]["transcribe"] = special.transcribe;
        if (special.translate >= 0) root["task_to_id"]["translate"] = special.translate;
    }
    root["max_initial_timestamp_index"] = 50;
    root["max_length"] = config.n_text_ctx;
    root["no_timestamps_token_id"] = special.no_timestamps;
    root["prev_sot_token_id"] = special.sot_prev;
    root["return_timestamps"] = false;
    root["suppress_tokens"] = suppressed(tokenizer);
    return root.dump(2) + "\n";
}

std::string format_preprocessor_config(const Config& config) {
    const ordered_json root = {{"feature_extractor_type", "WhisperFeatureExtractor"},
                               {"processor_class", "WhisperProcessor"},
                               {"feature_size", config.n_mels},
                               {"sampling_rate", 16000},
                               {"hop_length", 160},
                               {"n_fft", 400},
                               {"chunk_length", 30},
                               {"n_samples", 480000},
                               {"nb_max_frames", kWindowFrames},
                               {"padding_side", "right"},
                               {"padding_value", 0.0},
                               {"return_attention_mask", false}};
    return root.dump(2) + "\n";
}

}  // namespace hark::whisper
