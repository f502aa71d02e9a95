// Live transcription with the demo model, chunk by chunk: what is final, and when.
#include "whisper/transcribe/live_session.h"

#include <gtest/gtest.h>

#include "whisper/model/model.h"
#include "whisper/model/model_file.h"
#include "whisper/support.h"

namespace hark::test {
namespace {

using namespace hark::whisper;

constexpr int kMels = 80;

std::vector<float> clip(const std::string& name) {
    return as_float(read_plain_wav(samples_dir() / name));
}

// The clips, each followed by `silence` seconds of silence.
std::vector<float> clips(const std::vector<std::string>& names, double silence) {
    std::vector<float> all;
    for (const std::string& name : names) {
        const std::vector<float> one = clip(name);
        all.insert(all.end(), one.begin(), one.end());
        all.resize(all.size() + static_cast<size_t>(silence * 16000));
    }
    return all;
}

// A recording's mel in chunks of `frames` frames.
std::vector<Chunk> chunks_of(const std::vector<float>& samples, int64_t frames) {
    const Chunk whole = mel_chunk(samples, kMels);
    const Tensor mel = whole.values();
    const int64_t all = mel.dim(1);
    std::vector<Chunk> chunks;
    for (int64_t start = 0; start < all; start += frames) {
        const int64_t size = all - start < 2 * frames ? all - start : frames;
        std::vector<float> part;
        for (int64_t m = 0; m < kMels; ++m)
            for (int64_t t = start; t < start + size; ++t)
                part.push_back(mel.as<float>()[m * all + t]);
        Chunk chunk = whole;
        chunk.document = {};
        chunk.document.where = "test: document " + std::to_string(chunks.size() + 1);
        chunk.start = start;
        chunk.last = start + size == all;
        if (chunk.last) chunk.document.header.metadata = whole.document.header.metadata;
        chunk.document.add("log_mel", Tensor(part.data(), Dtype::f32, {kMels, size}));
        chunks.push_back(std::move(chunk));
        if (size != frames) break;
    }
    return chunks;
}

struct LiveResult {
    std::string text;  // of the finals, a line each
    std::vector<LiveSegment> finals;
    std::vector<LivePartial> partials;
    std::vector<double> late;  // seconds of sound after each final's end when it came
    std::vector<std::string> ended;
    std::string language;
};

class LiveSessionTest : public testing::Test {
  protected:
    LiveSession session(const TranscribeOptions& options = {}) {
        return LiveSession(ctx_, model(), tokenizer(), options,
                           {[this](const RecordingInfo&, const LivePartial& partial) {
                                result_.partials.push_back(partial);
                            },
                            [this](const RecordingInfo& info, const LiveSegment& segment) {
                                result_.text += segment.text + "\n";
                                result_.finals.push_back(segment);
                                result_.late.push_back(came_ - segment.end);
                                result_.language = info.language;
                            },
                            [this](const RecordingInfo&, const std::string& error) {
                                result_.ended.push_back(error);
                            },
                            nullptr, nullptr});
    }
    // Transcribes each chunk at once, as a fast machine does.
    void feed(LiveSession& session, const std::vector<Chunk>& chunks) {
        for (const Chunk& chunk : chunks) {
            came_ = static_cast<double>(chunk.start + chunk.length()) / 100;
            session.add(chunk);
            session.update();
            session.confirm();
        }
    }
    static const Model& model() {
        static const Model kModel =
            load_model(whisper_demo(), precision_of("auto", Device::cpu), cpu_memory());
        return kModel;
    }
    static const Tokenizer& tokenizer() {
        static const Tokenizer kTokenizer(whisper_demo(), model().config.n_vocab);
        return kTokenizer;
    }

    Context ctx_{1};
    LiveResult result_;
    double came_ = 0;
};

const std::vector<std::string> kClips = {"harbour.wav", "hat.wav", "lights.wav", "key.wav"};
const char* kText =
    " The old captain walked slowly down to the harbour.\n"
    " He took off his hat and sat down by the fire.\n"
    " Turn off the lights in the kitchen.\n"
    " Where did you leave the key to the door?\n";

// A sentence that ends just after a chunk's end waits for the next one, and for 0.3 s of quiet. The
// model's text of these clips does not depend on the sound after them.
TEST_F(LiveSessionTest, SentencesAreFinalBeforeTwoSecondsMoreHaveCome) {
    LiveSession live = session();
    feed(live, chunks_of(clips(kClips, 1), 100));
    EXPECT_EQ(result_.text, kText);
    EXPECT_EQ(result_.language, "en");
    EXPECT_EQ(result_.ended, std::vector<std::string>{""});
    for (size_t i = 0; i < result_.late.size(); ++i)
        EXPECT_LT(result_.late[i], 1.7) << result_.finals[i].text;
    EXPECT_GT(result_.partials.size(), result_.finals.size());
}

TEST_F(LiveSessionTest, OneChunkOfAllIsHeardToo) {
    LiveSession live = session();
    const std::vector<float> sound =
        clips({"hat.wav", "key.wav", "lights.wav", "train.wav", "answer.wav", "harbour.wav"}, 2.5);
    ASSERT_GT(sound.size(), 30u * 16000);  // more than a window
    feed(live, chunks_of(sound, 1 << 20));
    EXPECT_EQ(result_.text,
              " He took off his hat and sat down by the fire.\n"
              " Where did you leave the key to the door?\n"
              " Turn off the lights in the kitchen.\n"
              " The train to the city leaves at seven in the morning.\n"
              " Nobody answered, and the door was shut.\n"
              " The old captain walked slowly down to the harbour.\n");
}

TEST_F(LiveSessionTest, WhatHasComeIsFinalWhereItIsFinished) {
    LiveSession live = session();
    live.finish();  // nothing has begun
    const std::vector<Chunk> chunks = chunks_of(clips({"hat.wav"}, 4), 320);
    ASSERT_FALSE(chunks[0].last);
    live.add(chunks[0]);
    live.finish();
    EXPECT_EQ(result_.text, " He took off his hat and sat down by the fire.\n");
    EXPECT_EQ(result_.ended.size(), 1u);
    // Then another recording may begin.
    live.add(chunks_of(clip("key.wav"), 1 << 20)[0]);
    live.update();
    EXPECT_EQ(result_.ended.size(), 2u);
    EXPECT_EQ(result_.finals.back().text, " Where did you leave the key to the door?");
}

TEST_F(LiveSessionTest, TakesOneRecordingAfterAnotherWithoutRegions) {
    std::vector<Chunk> chunks = chunks_of(clip("hat.wav"), 100);
    LiveSession live = session();
    live.add(chunks[0]);
    chunks[1].recording = "another";
    EXPECT_THROW(live.add(chunks[1]), Error);
    add_speech(chunks[2].document, std::vector<Region>{});
    EXPECT_THROW(live.add(chunks[2]), Error);
}

}  // namespace
}  // namespace hark::test
