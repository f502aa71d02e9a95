// vad: finds the speech in an audio stream and tells the stages that follow where it is.
//
//   stdin -> audio chunks -> LogMel -> Detector ----> probabilities -> regions -> stdout
//                        \-> Silero, with --model --/
//
// Every chunk goes out as soon as it has come, unchanged except for the tensor `speech` and the
// name of the detector: a region travels on the first chunk by whose end it is known, the last of
// them on the recording's last chunk. A recording that broke is passed on with its error, as mel
// does.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <variant>

#include "audio/log_mel.h"
#include "core/recordings.h"
#include "speech/detector.h"
#include "speech/silero.h"

namespace {

using namespace hark;

struct Options {
    std::string model;
    RegionOptions regions;

    void flags(Flags& flags) {
        flags.add_name("model", model,
                       "FILE of Silero VAD's weights; without it, the built-in detector");
        regions.flags(flags);
    }

    void check() const {
        require_not_terminal("an audio stream");
        require_piped_stdin("an audio stream");
    }
};

// The built-in detector, which reads mel frames.
struct MelDetector {
    static constexpr int kMels = 80;
    LogMel log_mel{kMels};
    Detector detector{kMels};

    void push(std::span<const float> samples, std::vector<float>& probabilities) {
        std::vector<float> frames;
        while (!samples.empty()) {  // in pieces, so that a long document's frames are not kept
            const auto piece = samples.first(std::min<size_t>(samples.size(), kSampleRate));
            samples = samples.subspan(piece.size());
            log_mel.push(piece, frames);
            detector.push(frames, probabilities);
            frames.clear();
        }
    }
    void finish(std::vector<float>& probabilities) {
        std::vector<float> frames;
        log_mel.finish(frames);
        detector.push(frames, probabilities);
        detector.finish(probabilities);
    }
};

// One recording as its chunks pass.
class Passage {
  public:
    Passage(const Options& options, const std::shared_ptr<const SileroModel>& silero)
        : finder_(options.regions, silero ? SileroModel::kStep : Detector::kStep) {
        if (silero) detector_.emplace<Silero>(silero);
    }

    // Adds the regions that are known now and were not before.
    void mark(Chunk& chunk) {
        const Tensor samples = chunk.values();
        const std::span<const float> values{samples.as<float>(),
                                            static_cast<size_t>(samples.size())};
        std::vector<float> probabilities;
        std::vector<Region> regions;
        std::visit(
            [&](auto& detector) {
                detector.push(values, probabilities);
                if (chunk.last) detector.finish(probabilities);
            },
            detector_);
        finder_.push(probabilities, regions);
        if (chunk.last) finder_.finish(chunk.start + samples.size(), regions);
        add_speech(chunk.document, regions);
        chunk.document.header.metadata["speech_detector"] =
            std::holds_alternative<Silero>(detector_) ? "silero" : "spectral";
        rest_ = chunk;
        rest_.start += samples.size();
        rest_.document = {};
    }

    // The last chunk of a recording whose own will not come: what was read is not lost.
    Chunk broken(const std::string& error) {
        Chunk chunk = rest_;
        chunk.document.add("samples", Tensor(nullptr, Dtype::f32, {0}));
        chunk.last = true;
        chunk.error = error;
        mark(chunk);
        return chunk;
    }

  private:
    std::variant<MelDetector, Silero> detector_;
    RegionFinder finder_;
    Chunk rest_;  // names the recording, and where it continues
};

void run(const Options& options, Console& console) {
    options.check();
    const auto silero = options.model.empty() ? nullptr : load_silero(options.model);
    ByteWriter out(STDOUT_FILENO, "stdout");
    ByteReader in(STDIN_FILENO, "stdin");
    RecordingReader reader(in, "audio", "vad comes before mel: audio-decode FILE | vad | mel");
    std::map<std::string, Passage> open;
    try {
        while (std::optional<Chunk> chunk = reader.next()) {
            const auto began = std::chrono::steady_clock::now();
            require(!chunk->document.find("speech"), chunk->document.where,
                    ": expected audio without speech, found speech; it has been through vad");
            const auto passage = open.try_emplace(chunk->recording, options, silero).first;
            passage->second.mark(*chunk);
            if (chunk->last) open.erase(passage);
            const std::chrono::duration<double, std::milli> took =
                std::chrono::steady_clock::now() - began;
            console.stage("speech", describe(chunk->document.tensor("speech")), took.count());
            write_chunk(out, std::move(*chunk));
            out.flush();
        }
    } catch (const Error& failure) {
        for (auto& [id, passage] : open) write_chunk(out, passage.broken(failure.what()));
        out.flush();
        throw;
    }
}

}  // namespace

int main(int argc, char** argv) {
    return hark::tool_main(
        {.name = "vad", .summary = "Finds the speech in an audio stream and passes the stream on."},
        argc, argv, run);
}
