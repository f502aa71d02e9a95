// config.json and generation_config.json of a Whisper model.
#include "core/error.h"
#include "fuzz/target.h"
#include "support/byte_vocabulary.h"
#include "whisper/model/alignment_heads.h"
#include "whisper/model/tokenizer.h"

static std::vector<std::string> whisper_config_seeds() {
    return {R"({"model_type":"whisper","d_model":256,"encoder_layers":4,"decoder_layers":4,)"
            R"("encoder_attention_heads":4,"decoder_attention_heads":4,"encoder_ffn_dim":1024,)"
            R"("decoder_ffn_dim":1024,"num_mel_bins":80,"max_source_positions":1500,)"
            R"("max_target_positions":448,"vocab_size":5448})",
            R"({"eos_token_id":256,"decoder_start_token_id":257,"no_timestamps_token_id":262,)"
            R"("prev_sot_token_id":261,"is_multilingual":true,"lang_to_id":{"<|en|>":258},)"
            R"("task_to_id":{"transcribe":259,"translate":260}})",
            R"({"alignment_heads":[[2,2],[3,0]]})", R"({"alignment_heads":[[2],[3,-1],7]})",
            R"({"lang_to_id":[1],"task_to_id":7,"is_multilingual":1})"};
}

static int whisper_config_input(const uint8_t* data, size_t size) {
    using namespace hark;
    static const Bpe bpe = Bpe::parse_tiktoken(test::byte_vocabulary(), "ranks");
    const std::string text(reinterpret_cast<const char*>(data), size);
    try {
        whisper::parse_config(text, "config.json");
    } catch (const Error&) {
    }
    try {
        whisper::find_special_tokens(bpe, text, 300, "generation_config.json");
    } catch (const Error&) {
    }
    try {
        const whisper::Tokenizer tokenizer(bpe, text, 300, "generation_config.json");
        tokenizer.sot_sequence("en", whisper::Task::transcribe);
        tokenizer.non_speech_tokens();
        tokenizer.matching_tokens("[a-z]");
        tokenizer.decode(std::vector<int32_t>{tokenizer.single("a"), 299});
        tokenizer.language_token("xx");
    } catch (const Error&) {
    }
    try {
        whisper::parse_alignment_heads(text, whisper::official_config("tiny"), "generation_config");
    } catch (const Error&) {
    }
    return 0;
}

static const hark::fuzz::Target kWhisperConfig{"whisper_config", whisper_config_seeds,
                                               whisper_config_input};
