#include "hub/verify.h"

#include <chrono>
#include <cmath>

#include "audio/audio_chunks.h"
#include "audio/mel_stream.h"
#include "core/error.h"
#include "core/profile/profile.h"
#include "eval/normalizer.h"
#include "hub/tensor_list.h"
#include "kernels/runtime/backend.h"
#include "whisper/model/model.h"
#include "whisper/transcribe/transcribe.h"

namespace hark::models {
namespace {

struct Spectrum {
    whisper::MelRecording mel;
    std::string error;
};

// The log-mel spectrogram of a file, as audio-decode and mel make it.
Spectrum spectrum_of(const std::string& path, int64_t n_mels) {
    Spectrum spectrum;
    AudioChunks chunks(path, "1", ReadOptions{}, ChunkOptions{}.length(kSampleRate));
    MelOptions options;
    options.mels = std::to_string(n_mels);
    MelStream stream(options);
    while (const std::optional<Chunk> chunk = chunks.next())
        stream.push(*chunk, [&](const Chunk& mel) {
            spectrum.mel.add(mel, n_mels);
            if (!mel.error.empty()) spectrum.error = mel.error;
        });
    return spectrum;
}

}  // namespace

TensorCheck check_tensors(const ModelHandle& model) {
    TensorCheck check;
    TensorSource& source = model.tensors();
    for (const ModelTensor& tensor : tensor_list(model)) {
        try {
            check.values += static_cast<int64_t>(values_of(source, tensor).size());
            ++check.tensors;
        } catch (const Error& why) {
            check.problems.push_back(why.what());
        }
    }
    return check;
}

std::vector<Transcript> transcribe_files(Context& ctx, whisper::ModelFile& file,
                                         const std::string& dtype,
                                         const std::vector<std::string>& paths) {
    const whisper::Model model = whisper::read_model(
        file, precision_of(dtype, ctx.device, file.stored_type()), ctx.arena.source(), ctx.threads);
    const whisper::TranscribeOptions standard;
    return transcribe_files(ctx, model, file.tokenizer(), standard, paths).transcripts;
}

TranscribedFiles transcribe_files(Context& ctx, const whisper::Model& model,
                                  const whisper::Tokenizer& tokenizer,
                                  const whisper::TranscribeOptions& options,
                                  const std::vector<std::string>& paths) {
    TranscribedFiles files;
    whisper::Transcriber::Listener listener;
    listener.end = [&](const whisper::Transcription& recording) {
        files.transcripts.push_back(
            {.source = recording.info.source, .text = recording.text(), .error = recording.error});
    };
    whisper::Transcriber transcriber(ctx, model, tokenizer, options, listener);
    for (const std::string& path : paths) {
        while (!transcriber.has_room()) transcriber.advance();
        const auto begin = std::chrono::steady_clock::now();
        Spectrum spectrum = spectrum_of(path, model.config.n_mels);
        files.decode_seconds +=
            std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
        files.seconds += whisper::seconds_of(spectrum.mel.content_frames());
        transcriber.add({.source = path}, spectrum.error, std::move(spectrum.mel));
    }
    while (!transcriber.idle()) transcriber.advance();
    return files;
}

TranscriptCheck check_transcripts(const std::vector<Transcript>& references,
                                  const std::vector<Transcript>& transcripts) {
    const ProfileSpan span("compare");
    const TranscriptPairs pairs = pair_transcripts(references, transcripts);
    TranscriptCheck check;
    ErrorCounts sum;
    for (size_t i = 0; i < references.size(); ++i) {
        const Transcript* found = pairs.hypotheses[i];
        if (!found) continue;
        if (!found->error.empty()) check.problems.push_back(found->error);
        const Comparison comparison =
            compare_words(normalize_english(references[i].text), normalize_english(found->text));
        sum += comparison.counts;
        const std::string difference = first_difference(comparison);
        check.lines.push_back(
            concat(found->source, ": ", difference.empty() ? "as expected" : difference));
    }
    for (const Transcript* extra : pairs.extra)
        check.problems.push_back(
            extra->error.empty() ? extra->name() + ": no reference of this name" : extra->error);
    if (pairs.extra.size() == transcripts.size()) return check;
    const std::optional<double> rate = sum.word_rate();
    check.percent = 100 * rate.value_or(1);
    check.rate = rate ? concat("word error rate ", std::round(*check.percent * 100) / 100, "% of ",
                               sum.reference_words(), " words")
                      : concat(sum.words.insertions, " words, expected none");
    check.lines.push_back(check.rate);
    return check;
}

std::string first_difference(const Comparison& comparison) {
    int64_t word = 0;
    for (const AlignedWords& place : aligned_words(comparison)) {
        if (place.edit != Edit::insertion) ++word;
        if (place.edit == Edit::match) continue;
        const auto quoted = [](std::string_view text) {
            return text.empty() ? std::string("nothing") : concat("'", text, "'");
        };
        const std::string where = place.edit != Edit::insertion ? concat("word ", word)
                                  : word == 0                   ? "before word 1"
                                                                : concat("after word ", word);
        return concat(where, ": expected ", quoted(place.reference), ", found ",
                      quoted(place.hypothesis));
    }
    return "";
}

}  // namespace hark::models
