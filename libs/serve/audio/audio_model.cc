#include "serve/audio/audio_model.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "audio/mel_stream.h"
#include "kernels/runtime/transfer.h"
#include "serve/audio/audio_job.h"
#include "serve/audio/decoder_process.h"
#include "serve/web/web_error.h"
#include "whisper/model/model.h"
#include "whisper/transcribe/decoding.h"
#include "whisper/transcribe/transcribe.h"

namespace hark::serve {
namespace {

// The encoder's and the decoder's activations next to `caches`, as whisper-transcribe has them on a
// GPU.
int64_t scratch_beside(int64_t caches) { return caches / 4; }

}  // namespace

ModelNeed AudioModel::cache_need(const whisper::ModelFile& file, const Precision& precision,
                                 const AudioModelOptions& options, const Context& ctx) {
    const auto [window, windows] =
        whisper::batch_memory(ctx, file.config(), precision, whisper::TranscribeOptions());
    const int64_t most = window * (windows + options.live_sessions);
    return {.scratch = scratch_beside(most),
            .least = window * (1 + options.live_sessions),
            .most = most};
}

std::vector<std::string> languages_of(const whisper::Tokenizer& tokenizer) {
    const whisper::SpecialTokens& special = tokenizer.special();
    if (!special.multilingual) return {"en"};
    std::vector<std::string> codes;
    for (const auto& [code, token] : special.languages) codes.push_back(code);
    return codes;
}

AudioModel::AudioModel(std::unique_ptr<whisper::ModelFile> file, const AudioModelOptions& options,
                       Console& console)
    : options_(options),
      decoder_(decoder_program()),
      ctx_(options.compute.context(console)),
      file_(std::move(file)),
      tokenizer_(file_->tokenizer()) {
    const Precision precision =
        precision_of(options.compute.dtype, ctx_.device, file_->stored_type());
    model_ = std::make_unique<const whisper::Model>(
        whisper::read_model(*file_, precision, ctx_.arena.source(), ctx_.threads));
    const auto [window, windows] =
        whisper::batch_memory(ctx_, model_->config, model_->precision, batch_);
    // A live session has the caches of a window.
    const int64_t fit = options.cache_bytes / window - options.live_sessions;
    batch_.most_windows = options.cache_bytes > 0 ? std::clamp<int64_t>(fit, 1, windows) : windows;
    caches_ = window * (batch_.most_windows + options.live_sessions);
    used_ = caches_ + scratch_beside(caches_);
}

AudioModel::~AudioModel() = default;

int64_t AudioModel::n_mels() const { return model_->config.n_mels; }
int64_t AudioModel::bytes() const { return static_cast<int64_t>(model_->weights.bytes()) + used_; }

void AudioModel::count_scratch() {
    used_ = std::max(used_.load(), caches_ + static_cast<int64_t>(ctx_.arena.capacity()));
}

whisper::MelRecording AudioModel::decode(AudioJob& job) const {
    const auto refuse = [](std::string why) {
        constexpr std::string_view kName = "stdin: ";  // the decoder's for it
        if (why.starts_with(kName)) why.erase(0, kName.size());
        return WebError(400, concat("file: cannot be decoded: ", why), "file");
    };
    const auto most = static_cast<int64_t>(options_.most_seconds * kSampleRate);
    whisper::MelRecording recording;
    std::string error;
    const auto add = [&](const Chunk& chunk) {
        recording.add(chunk, n_mels());
        error = chunk.error;
    };
    const DecoderProcess decoder(decoder_, job.file->fd());
    try {
        ByteReader in(decoder.out(), "the recording", &job.stop);
        RecordingReader audio(in, "audio", "");
        MelOptions options;
        options.mels = std::to_string(n_mels());
        MelStream mel(options);
        int64_t samples = 0;
        while (const std::optional<Chunk> chunk = audio.next()) {
            samples += chunk->length();
            if (samples > most)
                throw WebError(400, concat("file: longer than ", options_.most_seconds, " seconds"),
                               "file");
            mel.push(*chunk, add);
        }
    } catch (const WebError&) {
        throw;
    } catch (const Error& why) {
        throw refuse(why.what());
    }
    if (!error.empty()) throw refuse(error);
    return recording;
}

void AudioModel::check(const whisper::TranscribeOptions& options) const {
    const size_t max_prompt = whisper::max_prompt_of(model_->config);
    try {
        options.language_for(tokenizer_, options.loop(tokenizer_, max_prompt));
    } catch (const Error& why) {
        throw WebError(400, why.what());
    }
}

std::unique_ptr<whisper::Transcriber> AudioModel::begin_batch() {
    wait_for(ctx_);  // memory of a GPU is that of the thread's current one: sets it
    return std::make_unique<whisper::Transcriber>(ctx_, *model_, tokenizer_, batch_,
                                                  whisper::Transcriber::Listener());
}

std::unique_ptr<whisper::LiveSession> AudioModel::begin_live(
    const whisper::TranscribeOptions& options, whisper::LiveSession::Listener listener) {
    wait_for(ctx_);
    return std::make_unique<whisper::LiveSession>(ctx_, *model_, tokenizer_, options,
                                                  std::move(listener));
}

}  // namespace hark::serve
