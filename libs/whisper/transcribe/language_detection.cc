#include "whisper/transcribe/language_detection.h"

#include <algorithm>
#include <cstdio>

#include "core/error.h"
#include "text/utf8.h"
#include "whisper/model/config.h"
#include "whisper/output/strings.h"
#include "whisper/output/transcript_json.h"
#include "whisper/transcribe/decoding.h"
#include "whisper/transcribe/transcription.h"

namespace hark::whisper {

DetectedLanguage detect_language(WindowDecoder& decoder, int64_t slot, const MelRecording& mel,
                                 const Tensor& window, const TranscribeOptions& options,
                                 EncodePurpose purpose) {
    struct Vote {
        DetectedLanguage language;  // its highest probability
        int64_t windows = 0;
    };
    std::vector<Vote> votes;  // in the order in which languages were first detected
    for (int64_t i = 0; i < options.language_windows; ++i) {
        const int64_t seek = i * kWindowFrames;
        if (i > 0 && seek >= mel.content_frames()) break;
        mel.detection_window(seek, {window.as<float>(), static_cast<size_t>(window.size())});
        decoder.encode({&slot, 1}, window, purpose);
        DetectedLanguage language;
        language.code = decoder.likeliest_language(slot, &language.probability);
        if (language.probability > options.language_threshold) return language;
        auto vote = std::find_if(votes.begin(), votes.end(), [&](const Vote& other) {
            return other.language.code == language.code;
        });
        if (vote == votes.end()) vote = votes.insert(votes.end(), {language, 0});
        ++vote->windows;
        vote->language.probability = std::max(vote->language.probability, language.probability);
    }
    return std::max_element(votes.begin(), votes.end(),
                            [](const Vote& a, const Vote& b) { return a.windows < b.windows; })
        ->language;
}

LanguageDetector::LanguageDetector(Context& ctx, const Model& model, const Tokenizer& tokenizer,
                                   const TranscribeOptions& options)
    : options_(options),
      decoder_(
          std::make_unique<WindowDecoder>(ctx, model, tokenizer, options.decoding(tokenizer), 1)),
      loop_options_(options.loop(tokenizer, decoder_->max_prompt())),
      memory_(ctx.host_arena.source()),
      window_(memory_.tensor(Dtype::f32, {1, kWindowFrames, model.config.n_mels})) {
    options_.language_for(tokenizer, loop_options_);  // checks
}

LanguageDetector::~LanguageDetector() = default;

std::optional<DetectedLanguage> LanguageDetector::detect(MelRecording mel) {
    options_.plan(mel, loop_options_);  // cuts mel down to its speech with --vad
    if (mel.content_frames() == 0) return std::nullopt;
    return detect_language(*decoder_, 0, mel, window_, options_, EncodePurpose::detect_language);
}

std::string language_line(const RecordingInfo& info, const DetectedLanguage& language,
                          const std::string& format) {
    if (format == "jsonl") {
        Json json = to_json(info);
        json["language"] = language.code;
        json["probability"] = language.probability;
        return dump(json);
    }
    char probability[16];
    std::snprintf(probability, sizeof probability, "%.4f", language.probability);
    return concat(language.code, "\t", probability, "\t", one_line(replace_invalid(info.source)),
                  info.channel == "0" ? "" : " (channel " + info.channel + ")", "\n");
}

}  // namespace hark::whisper
