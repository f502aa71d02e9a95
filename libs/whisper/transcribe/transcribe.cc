#include "whisper/transcribe/transcribe.h"

#include <algorithm>
#include <utility>

#include "core/error.h"
#include "core/profile/profile.h"
#include "kernels/runtime/backend.h"
#include "kernels/runtime/gpu_limits.h"
#include "kernels/runtime/parallel.h"
#include "kernels/runtime/transfer.h"
#include "whisper/model/model.h"
#include "whisper/transcribe/decoding.h"
#include "whisper/transcribe/language_detection.h"
#include "whisper/transcribe/words.h"

namespace hark::whisper {
namespace {

// Default number of windows decoded at once. More are not faster on a CPU.
constexpr int64_t kMostWindows = 8, kMostWindowsOnGpu = 32;
constexpr int64_t kWindowsInMemory = 64;           // mel for a GPU: 4 x windows_at_once()
constexpr int64_t kBatchBytes = int64_t{1} << 30;  // limit of the KV caches on a CPU

// Bytes of KV cache per window: cross-attention and the self-attention of its rows.
int64_t window_bytes(const Config& c, const Precision& precision, int64_t rows, CrossKvMode mode,
                     Device device) {
    return CrossKvCache::window_bytes(c, precision, mode, device) +
           2 * c.n_text_layer * rows * c.n_text_ctx * c.n_text_state *
               static_cast<int64_t>(size_of(precision.cache));
}

// `window`: bytes of one.
int64_t default_windows(const Context& ctx, int64_t window, const TranscribeOptions& options) {
    const int64_t fast = ctx.on_cuda() ? kMostWindowsOnGpu
                                       : std::clamp<int64_t>(kBatchBytes / window, 1, kMostWindows);
    return options.most_windows > 0 ? std::min(options.most_windows, fast) : fast;
}

int64_t batch_of(const Context& ctx, const TranscribeOptions& options, const Model& model,
                 const Model* draft) {
    int64_t window = batch_memory(ctx, model.config, model.precision, options).window;
    if (draft)
        window += window_bytes(draft->config, draft->precision, 1, CrossKvMode::store, ctx.device);
    const int64_t windows =
        options.batch_size > 0 ? options.batch_size : default_windows(ctx, window, options);
    if (!ctx.on_cuda()) return windows;
    // A fifth stays free for activations.
    const int64_t free = free_memory(ctx);
    const int64_t fit = free / 5 * 4 / window;
    require(fit > 0 && fit >= options.batch_size, "out of GPU memory: --batch-size ",
            std::max<int64_t>(options.batch_size, 1), " needs ",
            (std::max<int64_t>(options.batch_size, 1) * window) >> 20, " MiB for KV caches, and ",
            free >> 20, " MiB are free", memory_advice(options.batch_size, fit));
    return std::min(fit, windows);
}

}  // namespace

BatchMemory batch_memory(const Context& ctx, const Config& config, const Precision& precision,
                         const TranscribeOptions& options) {
    const int64_t rows =
        std::max(options.samples() ? options.best_of : int64_t{1}, options.beam_size);
    // The default number is at most kMaxStoredKvWindows.
    const CrossKvMode mode = cross_kv_mode(options.batch_size, options.beam_size);
    const int64_t window = window_bytes(config, precision, rows, mode, ctx.device);
    return {window, default_windows(ctx, window, options)};
}

std::string memory_advice(int64_t windows, int64_t most) {
    const bool other_mode = windows > kMaxStoredKvWindows && most <= kMaxStoredKvWindows;
    if (most > 0 && !other_mode) return concat("; use --batch-size ", most, " or less");
    return "; use a smaller model, or --dtype int8";
}

Transcriber::Transcriber(Context& ctx, const Model& model, const Tokenizer& tokenizer,
                         const TranscribeOptions& options, Listener listener, const Model* draft)
    : ctx_(ctx),
      tokenizer_(tokenizer),
      decoder_(std::make_unique<WindowDecoder>(ctx, model, tokenizer, options.decoding(tokenizer),
                                               batch_of(ctx, options, model, draft), draft)),
      settings_(settings_of(options, std::move(listener))),
      slots_(static_cast<size_t>(decoder_->slots())),
      memory_(ctx.host_arena.source()),
      windows_(memory_.tensor(Dtype::f32, {std::min(decoder_->slots(), kWindowsInMemory),
                                           kWindowFrames, model.config.n_mels})) {
    const Config& config = model.config;
    check_head(ctx, config.n_audio_state / config.n_audio_head, kMostHeadChannels);
    check_head(ctx, config.n_text_state / config.n_text_head, kMostHeadChannels);
}

Transcriber::~Transcriber() = default;

int64_t Transcriber::slots() const { return decoder_->slots(); }
int64_t Transcriber::windows_at_once() const { return decoder_->windows_at_once(); }

std::shared_ptr<const Transcriber::Settings> Transcriber::settings_of(
    const TranscribeOptions& options, Listener listener) const {
    Settings settings{options, options.temperatures(),
                      options.loop(tokenizer_, decoder_->max_prompt()), std::move(listener)};
    settings.options.language = options.language_for(tokenizer_, settings.loop);
    return std::make_shared<const Settings>(std::move(settings));
}

void Transcriber::add(RecordingInfo info, std::string error, MelRecording mel) {
    add(std::move(info), std::move(error), std::move(mel), settings_, true);
}

void Transcriber::add(RecordingInfo info, std::string error, MelRecording mel,
                      const TranscribeOptions& options, Listener listener) {
    add(std::move(info), std::move(error), std::move(mel),
        settings_of(options, std::move(listener)), false);
}

void Transcriber::add(RecordingInfo info, std::string error, MelRecording mel,
                      std::shared_ptr<const Settings> settings, bool is_in_order) {
    TranscriptionPlan plan = settings->options.plan(mel, settings->loop);
    info.language = mel.content_frames() == 0 ? "" : settings->options.language;
    Transcription transcription(std::move(info), std::move(error), std::move(mel), std::move(plan),
                                tokenizer_);
    recordings_.push_back(std::make_unique<Recording>(
        Recording{std::move(transcription), std::move(settings), is_in_order}));
}

bool Transcriber::has_room() const {
    const auto undone =
        std::count_if(recordings_.begin(), recordings_.end(),
                      [](const auto& recording) { return !recording->transcription.done(); });
    return undone < decoder_->slots() && std::ssize(recordings_) < 2 * decoder_->slots();
}

void Transcriber::advance(int64_t most_new) {
    drop_unwanted();
    refill(most_new);
    start_waiting();
    const std::vector<WindowDecoder::Finished> ended = decoder_->step();
    for (const WindowDecoder::Finished& done : ended) finish(done.slot, done.result);
    start_waiting();
    emit_ready(!ended.empty());
}

void Transcriber::drop_unwanted() {
    std::erase_if(recordings_, [&](const std::unique_ptr<Recording>& recording) {
        const auto& is_wanted = recording->settings->listener.is_wanted;
        if (!is_wanted || is_wanted()) return false;
        for (int64_t slot = 0; slot < decoder_->slots(); ++slot) {
            SlotState& state = slots_[static_cast<size_t>(slot)];
            if (state.recording != recording.get()) continue;
            state.recording = nullptr;
            decoder_->stop(slot);
            std::erase(waiting_, slot);
        }
        return true;
    });
}

// Fills free slots with windows. A GPU waits until several are free: encoding windows together is
// faster.
void Transcriber::refill(int64_t most_new) {
    std::vector<int64_t> free;
    for (int64_t slot = 0; slot < decoder_->slots(); ++slot)
        if (!slots_[static_cast<size_t>(slot)].recording) free.push_back(slot);
    const int64_t together = std::min(decoder_->windows_at_once(), 1 + decoder_->slots() / 16);
    if (std::ssize(free) < together) return;
    std::vector<int64_t> claimed;  // that are not encoded yet
    for (const int64_t slot : free) {
        if (most_new-- <= 0 || !claim(slot)) break;
        (slots_[static_cast<size_t>(slot)].encoded ? waiting_ : claimed).push_back(slot);
    }
    const int64_t at_once = decoder_->windows_at_once(), n = std::ssize(claimed);
    for (int64_t i = 0; i < n; i += at_once) {
        const int64_t place = i % windows_.dim(0);
        if (i > 0 && place == 0) wait_for(ctx_);  // the first places are reused
        encode(std::span(claimed).subspan(static_cast<size_t>(i),
                                          static_cast<size_t>(std::min(at_once, n - i))),
               place);
    }
}

// Assigns the next window of a recording to the slot. Returns false if there is none.
bool Transcriber::claim(int64_t slot) {
    std::vector<Recording*> candidates;
    for (const auto& recording : recordings_) candidates.push_back(recording.get());
    std::ranges::stable_sort(candidates, {}, &Recording::windows);
    return std::ranges::any_of(candidates,
                               [&](Recording* recording) { return claim(slot, *recording); });
}

bool Transcriber::claim(int64_t slot, Recording& recording) {
    Transcription& transcription = recording.transcription;
    if (transcription.content_frames() == 0) return false;
    std::optional<Transcription::Work> work = transcription.next();
    if (!work) return false;
    RecordingInfo& info = transcription.info;
    const TranscribeOptions& options = recording.settings->options;
    // A window without padding is also the first that detection encodes.
    const bool encoded = info.language.empty() && options.language_windows == 1 &&
                         work->seek == 0 && work->size == kWindowFrames;
    const ProfileSpan span(encoded ? "window" : nullptr);  // encode() opens the others'
    if (encoded) span.follow(info.source, info.channel);
    if (info.language.empty()) {
        const auto purpose = encoded ? EncodePurpose::decode : EncodePurpose::detect_language;
        info.language = detect_language(*decoder_, slot, transcription.mel(), windows_.slice(0, 1),
                                        options, purpose)
                            .code;
    }
    slots_[static_cast<size_t>(slot)] = {&recording, std::move(*work), info.language, 0, encoded};
    if (!recording.is_in_order) ++recording.windows;
    return true;
}

void Transcriber::encode(std::span<const int64_t> slots, int64_t first) {
    {
        const ProfileSpan span("window");
        for (const int64_t i : slots) {
            const SlotState& slot = slots_[static_cast<size_t>(i)];
            const RecordingInfo& info = slot.recording->transcription.info;
            if (slot.work.seek == 0) span.follow(info.source, info.channel);
        }
        parallel_for(ctx_.threads, std::ssize(slots), [&](int64_t i) {
            const SlotState& slot = slots_[static_cast<size_t>(slots[static_cast<size_t>(i)])];
            slot.recording->transcription.mel().window(slot.work.seek, slot.work.size,
                                                       window(first + i));
        });
    }
    decoder_->encode(slots, windows_.slice(first, first + std::ssize(slots)));
    for (const int64_t slot : slots) {
        SlotState& state = slots_[static_cast<size_t>(slot)];
        if (state.recording->settings->options.multilingual)
            state.language = decoder_->likeliest_language(slot);
        waiting_.push_back(slot);
    }
}

std::span<float> Transcriber::window(int64_t i) const {
    const Tensor one = windows_.slice(i, i + 1);
    return {one.as<float>(), static_cast<size_t>(one.size())};
}

void Transcriber::start_waiting() {
    std::vector<WindowTask> tasks;
    for (const int64_t slot : waiting_) tasks.push_back(task_of(slot));
    waiting_.clear();
    decoder_->start(tasks);
}

WindowTask Transcriber::task_of(int64_t slot) const {
    const SlotState& state = slots_[static_cast<size_t>(slot)];
    const Settings& settings = *state.recording->settings;
    WindowTask task;
    task.slot = slot;
    task.prompt = state.work.prompt;
    task.task = settings.options.window_task();
    task.language = state.language;
    task.temperature = settings.temperatures[state.attempt];
    task.seed = settings.options.window_seed(state.work.seek, state.attempt);
    return task;
}

void Transcriber::finish(int64_t slot, const DecodingResult& result) {
    SlotState& state = slots_[static_cast<size_t>(slot)];
    const Settings& settings = *state.recording->settings;
    const Attempt attempt{state.work.seek, result, rejection(result, settings.options.thresholds)};
    if (settings.listener.attempt) settings.listener.attempt(attempt);
    if (attempt.rejection != Rejection::none && state.attempt + 1 < settings.temperatures.size()) {
        ++state.attempt;
        waiting_.push_back(slot);
        return;
    }
    WindowLoop::AddWords words;
    if (settings.options.words.timestamps)
        words = [&](const WindowLoop::Window& window, std::vector<Segment>& segments,
                    double last_speech) {
            add_words(segments, *decoder_, slot, state.language, window.size,
                      settings.options.words, last_speech);
        };
    state.recording->transcription.accept(state.work, result, state.language, words);
    state.recording = nullptr;
}

void Transcriber::emit_ready(bool progressed) {
    bool is_oldest = true;  // of those in order
    std::erase_if(recordings_, [&](const std::unique_ptr<Recording>& recording) {
        if (recording->is_in_order && !is_oldest) return false;
        const bool has_ended = emit(*recording, progressed);
        if (recording->is_in_order) is_oldest = has_ended;
        return has_ended;
    });
}

bool Transcriber::emit(Recording& recording, bool progressed) {
    Transcription& transcription = recording.transcription;
    const Listener& listener = recording.settings->listener;
    const bool blank = transcription.content_frames() == 0;
    // Its first window has not been claimed yet: the language is unknown.
    if (!blank && !transcription.done() && transcription.info.language.empty()) return false;
    if (!std::exchange(recording.begun, true) && listener.begin) listener.begin(transcription.info);
    for (const Segment& segment : transcription.take_segments())
        if (listener.segment) listener.segment(segment);
    if (listener.progress && progressed && !blank) listener.progress(transcription);
    if (!blank && !transcription.done()) return false;
    if (listener.end) listener.end(transcription);
    return true;
}

}  // namespace hark::whisper
