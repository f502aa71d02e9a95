#include "whisper/transcribe/live_session.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "whisper/model/config.h"
#include "whisper/output/output.h"
#include "whisper/output/strings.h"
#include "whisper/transcribe/decoding.h"
#include "whisper/transcribe/recording_queue.h"
#include "whisper/transcribe/window_loop.h"
#include "whisper/transcribe/words.h"

namespace hark::whisper {
namespace {

constexpr int64_t kStepFrames = static_cast<int64_t>(kLiveStep * kFramesPerSecond);
constexpr int64_t kQuietFrames = static_cast<int64_t>(kLiveQuiet * kFramesPerSecond);
constexpr int64_t kLongChunk = 1000;     // frames
constexpr ptrdiff_t kPromptTokens = 50;  // of final text: one to three sentences

// The slices of the window, and one of the tokens after its last pair of timestamps: no later
// window would decode them.
std::vector<Slice> all_slices(std::span<const int32_t> tokens, int32_t timestamp_begin,
                              int64_t size) {
    std::vector<Slice> slices = slice_window(tokens, timestamp_begin, size).slices;
    const size_t rest = slices.back().end;
    if (rest < tokens.size())
        slices.push_back({rest, tokens.size(), std::max(tokens[rest] - timestamp_begin, 0), -1});
    return slices;
}

}  // namespace

void check_live(const TranscribeOptions& options, const OutputOptions& output) {
    const TranscribeOptions standard;
    const auto excludes = [](bool given, const char* flag, const char* why) {
        require_usage(!given, "--live: ", flag, " ", why);
    };
    const char* kWhole = "needs whole recordings";
    const char* kSubtitles = "is for subtitles, which --live does not write";
    const char* kNoEffect = "has no effect";
    for (const std::string& format : output.formats)
        require_usage(format == "jsonl" || format == "text",
                      "--live: expected --format jsonl or text, got '", format, "'");
    require_usage(output.formats.size() == 1, "--live: expected one --format, got ",
                  output.formats.size());
    const SubtitleLayout& layout = output.subtitles;
    excludes(layout.max_line_width > 0, "--max-line-width", kSubtitles);
    excludes(layout.max_line_count > 0, "--max-line-count", kSubtitles);
    excludes(layout.max_words_per_line > 0, "--max-words-per-line", kSubtitles);
    excludes(layout.highlight_words, "--highlight-words", kSubtitles);
    excludes(!output.directory.empty(), "--output-dir", kWhole);
    excludes(!output.summary.empty(), "--summary", kWhole);
    excludes(!options.clips.empty(), "--clip", kWhole);
    excludes(options.batch_size != 0, "--batch-size", kWhole);
    excludes(options.windows != standard.windows, "--windows independent", kWhole);
    excludes(options.language_windows != 1, "--language-windows", kWhole);
    excludes(options.language_threshold != standard.language_threshold, "--language-threshold",
             "needs --language-windows");
    excludes(options.vad, "--vad", "finds speech only seconds after it was spoken");
    excludes(options.task == "detect", "--task detect", kWhole);
    excludes(!options.timestamps, "--no-timestamps", "would leave no segment to end");
    excludes(!options.prefix.empty(), "--prefix", "would begin each attempt at the same sound");
    excludes(!options.draft_model.empty(), "--draft-model", kNoEffect);
    excludes(options.draft_tokens != standard.draft_tokens, "--draft-tokens", kNoEffect);
    excludes(options.words.hallucination_silence.has_value(), "--hallucination-silence-threshold",
             kNoEffect);
    excludes(options.words.timestamps, "--word-timestamps",
             "has no effect: words always have times");
}

LiveSession::LiveSession(Context& ctx, const Model& model, const Tokenizer& tokenizer,
                         const TranscribeOptions& options, Listener listener)
    : tokenizer_(tokenizer),
      options_(options),
      listener_(std::move(listener)),
      decoder_(
          std::make_unique<WindowDecoder>(ctx, model, tokenizer, options.decoding(tokenizer), 1)),
      loop_options_(options.loop(tokenizer, decoder_->max_prompt())),
      memory_(ctx.host_arena.source()),
      window_(memory_.tensor(Dtype::f32, {1, kWindowFrames, model.config.n_mels})) {
    options_.language = options.language_for(tokenizer, loop_options_);
}

int64_t LiveSession::Recording::begin() const {
    return std::llround(text.begin() * kFramesPerSecond);
}

LiveSession::~LiveSession() = default;

void LiveSession::add(const Chunk& chunk) {
    const std::string& where = chunk.document.where;
    require(!speech_of(chunk.document), where,
            ": the stream has been through vad, which finds speech only seconds after it was "
            "spoken; leave out vad with --live");
    if (!now_) {
        now_.emplace();
        now_->id = chunk.recording;
        now_->info = {chunk.source, chunk.channel, options_.language, 0};
        now_->language_is_certain = !options_.language.empty();
        if (!loop_options_.carry_initial_prompt) now_->prompt = loop_options_.initial_prompt;
    }
    require(now_->id == chunk.recording, where, ": recording '", chunk.recording,
            "' starts before '", now_->id, "' has ended; --live takes one at a time");
    const int64_t before = now_->end();
    now_->mel.add(chunk, window_.dim(2));
    warn_of(chunk, now_->end() - before);
    now_->last = chunk.last;
    now_->error = chunk.error;
}

// A chunk is transcribed only after all of it has been read.
void LiveSession::warn_of(const Chunk& chunk, int64_t frames) {
    if (warned_ || chunk.last || frames <= kLongChunk || !listener_.warn) return;
    warned_ = true;
    listener_.warn(concat(chunk.document.where, ": chunks of ", seconds_of(frames),
                          " s delay the text as long; use mel --chunk 1"));
}

bool LiveSession::has_room() const {
    return !now_ || (!now_->last && now_->end() - now_->begin() < kWindowFrames);
}

void LiveSession::update() {
    while (now_ && now_->transcribed < now_->end()) {
        const int64_t full = now_->begin() + kWindowFrames, end = std::min(full, now_->end());
        update_until(end, end == full || (now_->last && end == now_->end()));
        if (end == full) {
            confirm();
            if (now_->begin() + kWindowFrames == full) now_->text.finish();
            emit_ready();
        }
        if (end == now_->end()) break;
    }
    if (now_ && now_->last) finish();
}

void LiveSession::finish() {
    if (!now_) return;
    if (now_->transcribed < now_->end()) update_until(now_->end(), true);
    now_->text.finish();
    emit_ready();
    if (listener_.end) listener_.end(now_->info, now_->error);
    now_.reset();
}

void LiveSession::update_until(int64_t end, bool must) {
    std::optional<std::vector<LiveWord>> words = words_until(end, must);
    if (!words) return;
    now_->transcribed = end;
    const auto [quiet_begin, quiet_end] = now_->mel.last_quiet(now_->begin(), end, kQuietFrames);
    const auto seconds = [](int64_t frame) { return seconds_of(frame); };
    now_->text.update({std::move(*words), seconds(end), seconds(quiet_begin), seconds(quiet_end)});
    emit_ready();
}

void LiveSession::confirm() {
    if (!now_ || !now_->text.can_confirm()) return;
    const int64_t end = now_->transcribed - kStepFrames;
    if (end <= now_->begin()) return;
    if (std::optional<std::vector<LiveWord>> words = words_until(end, false))
        now_->text.confirm(std::move(*words));
    emit_ready();
}

std::optional<std::vector<LiveWord>> LiveSession::words_until(int64_t end, bool must) {
    const int64_t begin = now_->begin(), size = end - begin;
    now_->mel.window(begin, size, {window_.as<float>(), static_cast<size_t>(window_.size())});
    const int64_t slot = 0;
    decoder_->encode({&slot, 1}, window_);
    if (!now_->language_is_certain || options_.multilingual)
        now_->info.language = decoder_->likeliest_language(slot);
    const std::optional<DecodingResult> result = decode(must);
    if (!result) return std::nullopt;
    if (result->temperature > kPromptResetTemperature) now_->prompt.clear();
    return words_of(*result, size);
}

std::optional<DecodingResult> LiveSession::decode(bool must) {
    const size_t attempts = must ? options_.temperatures().size() : 1;
    DecodingResult result;
    for (size_t attempt = 0; attempt < attempts; ++attempt) {
        result = decode_at(attempt);
        if (rejection(result, options_.thresholds) == Rejection::none) return result;
    }
    if (must) return result;
    return std::nullopt;
}

DecodingResult LiveSession::decode_at(size_t attempt) {
    WindowTask task;
    task.prompt = prompt_after(loop_options_, now_->prompt);
    task.task = options_.window_task();
    task.language = now_->info.language;
    task.temperature = options_.temperatures()[attempt];
    task.seed = options_.window_seed(now_->begin(), attempt);
    decoder_->start({&task, 1});
    for (;;) {
        if (listener_.token) listener_.token();
        if (std::vector<WindowDecoder::Finished> done = decoder_->step(); !done.empty())
            return std::move(done.front().result);
    }
}

std::vector<LiveWord> LiveSession::words_of(const DecodingResult& result, int64_t size) {
    if (result.tokens.empty() || is_silence(result, options_.thresholds)) return {};
    const std::vector<Slice> slices =
        all_slices(result.tokens, tokenizer_.special().timestamp_begin, size);
    std::vector<Segment> segments = segments_of(result, slices, now_->begin(), size, tokenizer_);
    add_words(segments, *decoder_, 0, now_->info.language, size, options_.words,
              now_->text.begin());
    std::vector<LiveWord> words;
    for (const Segment& segment : segments) {
        if (!words.empty()) words.back().ends_segment = true;
        for (const Word& word : *segment.words)
            if (!strip(word.text).empty()) words.push_back({word, false});
    }
    return words;
}

void LiveSession::emit_ready() {
    Recording& now = *now_;
    for (const LiveSegment& segment : now.text.take_finals()) {
        now.language_is_certain = true;
        now.shown.reset();
        if (listener_.final) listener_.final(now.info, segment);
    }
    const std::string left = now.text.take_dropped_text();
    if (!left.empty() && options_.previous_text) {
        const std::vector<int32_t> tokens = tokenizer_.encode(left);
        now.prompt.insert(now.prompt.end(), tokens.begin(), tokens.end());
        const ptrdiff_t most = kPromptTokens;
        if (std::ssize(now.prompt) > most)
            now.prompt.erase(now.prompt.begin(), now.prompt.end() - most);
    }
    std::optional<LivePartial> partial = now.text.partial();
    if (partial && partial != now.shown && listener_.partial) listener_.partial(now.info, *partial);
    now.shown = std::move(partial);
    now.mel.forget_before(std::min(now.begin(), now.end()));
}

void transcribe_chunks(const Chunk& chunk, const LiveSource& source, LiveSession& session) {
    // Text before a chunk that the session rejects becomes final too.
    const auto add = [&](const Chunk& one) {
        try {
            session.add(one);
        } catch (const Error&) {
            session.finish();
            throw;
        }
    };
    add(chunk);
    // Takes all available chunks at once, so that a slow machine does not lag.
    while (session.has_room()) {
        const std::optional<Chunk> more = source.next();
        if (!more) break;
        add(*more);
    }
    session.update();
    if (source.empty()) session.confirm();
}

void transcribe_live(LiveChunkQueue& queue, LiveSession& session) {
    const LiveSource source = {[&] { return queue.next(false); }, [&] { return queue.empty(); }};
    while (const std::optional<Chunk> chunk = queue.next(true))
        transcribe_chunks(*chunk, source, session);
    session.finish();
    queue.check();
}

}  // namespace hark::whisper
