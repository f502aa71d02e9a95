// Requests of transcripts in OpenAI's form, and their answers.
#pragma once

#include <memory>
#include <string>

#include "serve/audio/audio_job.h"
#include "serve/models/served_model.h"
#include "serve/web/message.h"

namespace hark::serve {

class AudioService;

// Of /v1/audio/transcriptions and /v1/audio/translations.
struct AudioQuery {
    std::string model;
    std::string format = "json";  // json, text, srt, vtt or verbose_json
    bool streams = false;
    bool has_segments = true, has_words = false;  // in verbose_json
    whisper::TranscribeOptions options;
};
// Throws WebError 400 that names the field that is wrong. `task`: transcribe or translate.
AudioQuery read_audio_query(const Form& form, const std::string& task);
// The code of a language that is given by its code or an English name. Throws the same.
std::string read_language(const std::string& value);

// The whole answer.
WebResponse transcript_response(const AudioQuery& query, const Transcript& transcript);

// From the segments of a recording to the answer of a request: whole, or as server-sent events.
class TranscriptAnswer : public AudioListener {
  public:
    // Throws WebError if it cannot begin.
    // The answer holds the lease of the service's model.
    static void start(AudioService& service, ModelLease lease, AudioQuery query,
                      std::shared_ptr<SpooledFile> file, std::shared_ptr<WebAnswer> out);

    TranscriptAnswer(ModelLease lease, AudioQuery query, std::shared_ptr<WebAnswer> out)
        : lease_(std::move(lease)), query_(std::move(query)), out_(std::move(out)) {}

    void segment(const whisper::Segment& segment) override;
    void ended(const Transcript& transcript) override;
    void failed(const WebError& why) override;

  private:
    void begin_stream();

    ModelLease lease_;
    AudioQuery query_;
    std::shared_ptr<WebAnswer> out_;
    bool has_begun_ = false;  // the stream
};

}  // namespace hark::serve
