#include "whisper/transcribe/transcribe.h"

#include <algorithm>

#include "core/error.h"
#include "kernels/runtime/cuda_library.h"
#include "kernels/runtime/gpu_limits.h"
#include "kernels/runtime/parallel.h"
#include "kernels/runtime/transfer.h"
#include "whisper/transcribe/language_detection.h"

namespace hark::whisper {
namespace {

// Default number of windows decoded at once. More are not faster on a CPU.
constexpr int64_t kMostWindows = 8, kMostWindowsOnGpu = 32;
constexpr int64_t kWindowsInMemory = 64;           // mel for a GPU: 4 x windows_at_once()
constexpr int64_t kBatchBytes = int64_t{1} << 30;  // limit of the KV caches on a CPU

// Bytes of KV cache per window: cross-attention and the self-attention of its rows.
int64_t window_bytes(const Model& model, int64_t rows, CrossKvMode mode, Device device) {
    const Config& c = model.config;
    return CrossKvCache::window_bytes(c, model.precision, mode, device) +
           2 * c.n_text_layer * rows * c.n_text_ctx * c.n_text_state *
               static_cast<int64_t>(size_of(model.precision.cache));
}

int64_t batch_of(const Context& ctx, const TranscribeOptions& options, const Model& model,
                 const Model* draft) {
    const int64_t rows =
        std::max(options.samples() ? options.best_of : int64_t{1}, options.beam_size);
    // The default number is at most kMaxStoredKvWindows.
    const CrossKvMode mode = cross_kv_mode(options.batch_size, options.beam_size);
    int64_t window = window_bytes(model, rows, mode, ctx.device);
    if (draft) window += window_bytes(*draft, 1, CrossKvMode::store, ctx.device);
    if (!ctx.on_cuda()) {
        if (options.batch_size > 0) return options.batch_size;
        return std::clamp<int64_t>(kBatchBytes / window, 1, kMostWindows);
    }
    // A fifth stays free for activations.
    const auto free = static_cast<int64_t>(cuda_runtime().free_memory(ctx));
    const int64_t fit = free / 5 * 4 / window;
    require(fit > 0 && fit >= options.batch_size, "out of GPU memory: --batch-size ",
            std::max<int64_t>(options.batch_size, 1), " needs ",
            (std::max<int64_t>(options.batch_size, 1) * window) >> 20, " MiB for KV caches, and ",
            free >> 20, " MiB are free", memory_advice(options.batch_size, fit));
    return options.batch_size > 0 ? options.batch_size : std::min(fit, kMostWindowsOnGpu);
}

}  // namespace

std::string memory_advice(int64_t windows, int64_t most) {
    const bool other_mode = windows > kMaxStoredKvWindows && most <= kMaxStoredKvWindows;
    if (most > 0 && !other_mode) return concat("; use --batch-size ", most, " or less");
    return "; use a smaller model, or --dtype int8";
}

Transcriber::Transcriber(Context& ctx, const Model& model, const Tokenizer& tokenizer,
                         const TranscribeOptions& options, Listener listener, const Model* draft)
    : ctx_(ctx),
      model_(model),
      tokenizer_(tokenizer),
      options_(options),
      temperatures_(options.temperatures()),
      listener_(std::move(listener)),
      decoder_(ctx, model, tokenizer, options.decoding(tokenizer),
               batch_of(ctx, options, model, draft), draft),
      loop_options_(options.loop(tokenizer, decoder_.max_prompt())),
      slots_(static_cast<size_t>(decoder_.slots())),
      memory_(ctx.host_arena.source()),
      windows_(memory_.tensor(Dtype::f32, {std::min(decoder_.slots(), kWindowsInMemory),
                                           kWindowFrames, model.config.n_mels})) {
    const Config& config = model.config;
    check_head(ctx, config.n_audio_state / config.n_audio_head, kMostHeadChannels);
    check_head(ctx, config.n_text_state / config.n_text_head, kMostHeadChannels);
    options_.language = options.language_for(tokenizer, loop_options_);
}

void Transcriber::add(RecordingInfo info, std::string error, MelRecording mel) {
    TranscriptionPlan plan = options_.plan(mel, loop_options_);
    info.language = mel.content_frames() == 0 ? "" : options_.language;
    recordings_.push_back(std::make_unique<Transcription>(
        std::move(info), std::move(error), std::move(mel), std::move(plan), tokenizer_));
}

bool Transcriber::has_room() const {
    const auto undone = std::count_if(recordings_.begin(), recordings_.end(),
                                      [](const auto& recording) { return !recording->done(); });
    return undone < decoder_.slots() && std::ssize(recordings_) < 2 * decoder_.slots();
}

void Transcriber::advance() {
    refill();
    start_waiting();
    const std::vector<WindowDecoder::Finished> ended = decoder_.step();
    for (const WindowDecoder::Finished& done : ended) finish(done.slot, done.result);
    start_waiting();
    emit_ready(!ended.empty());
}

// Fills free slots with windows. A GPU waits until several are free: encoding windows together is
// faster.
void Transcriber::refill() {
    std::vector<int64_t> free;
    for (int64_t slot = 0; slot < decoder_.slots(); ++slot)
        if (!slots_[static_cast<size_t>(slot)].recording) free.push_back(slot);
    const int64_t together = std::min(decoder_.windows_at_once(), 1 + decoder_.slots() / 16);
    if (std::ssize(free) < together) return;
    std::vector<int64_t> claimed;
    for (const int64_t slot : free)
        if (claim(slot)) claimed.push_back(slot);
    const int64_t at_once = decoder_.windows_at_once(), n = std::ssize(claimed);
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
    for (const auto& recording : recordings_) {
        if (recording->content_frames() == 0) continue;
        std::optional<Transcription::Work> work = recording->next();
        if (!work) continue;
        if (recording->info.language.empty())
            recording->info.language =
                detect_language(decoder_, slot, recording->mel(), windows_.slice(0, 1), options_)
                    .code;
        slots_[static_cast<size_t>(slot)] = {recording.get(), std::move(*work),
                                             recording->info.language, 0};
        return true;
    }
    return false;
}

void Transcriber::encode(std::span<const int64_t> slots, int64_t first) {
    parallel_for(ctx_.threads, std::ssize(slots), [&](int64_t i) {
        const SlotState& slot = slots_[static_cast<size_t>(slots[static_cast<size_t>(i)])];
        slot.recording->mel().window(slot.work.seek, slot.work.size, window(first + i));
    });
    decoder_.encode(slots, windows_.slice(first, first + std::ssize(slots)));
    for (const int64_t slot : slots) {
        if (options_.multilingual)
            slots_[static_cast<size_t>(slot)].language = decoder_.likeliest_language(slot);
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
    decoder_.start(tasks);
}

WindowTask Transcriber::task_of(int64_t slot) const {
    const SlotState& state = slots_[static_cast<size_t>(slot)];
    WindowTask task;
    task.slot = slot;
    task.prompt = state.work.prompt;
    task.language = state.language;
    task.temperature = temperatures_[state.attempt];
    task.seed = options_.window_seed(state.work.seek, state.attempt);
    return task;
}

void Transcriber::finish(int64_t slot, const DecodingResult& result) {
    SlotState& state = slots_[static_cast<size_t>(slot)];
    const Attempt attempt{state.work.seek, result, rejection(result, options_.thresholds)};
    if (listener_.attempt) listener_.attempt(attempt);
    if (attempt.rejection != Rejection::none && state.attempt + 1 < temperatures_.size()) {
        ++state.attempt;
        waiting_.push_back(slot);
        return;
    }
    WindowLoop::AddWords words;
    if (options_.words.timestamps)
        words = [&](const WindowLoop::Window& window, std::vector<Segment>& segments,
                    double last_speech) {
            add_words(segments, decoder_, slot, state.language, window.size, options_.words,
                      last_speech);
        };
    state.recording->accept(state.work, result, state.language, words);
    state.recording = nullptr;
}

void Transcriber::emit_ready(bool progressed) {
    while (!recordings_.empty()) {
        Transcription& front = *recordings_.front();
        const bool blank = front.content_frames() == 0;
        // Its first window has not been claimed yet: the language is unknown.
        if (!blank && !front.done() && front.info.language.empty()) return;
        if (!begun_ && listener_.begin) listener_.begin(front.info);
        begun_ = true;
        for (const Segment& segment : front.take_segments())
            if (listener_.segment) listener_.segment(segment);
        if (listener_.progress && progressed && !blank) listener_.progress(front);
        if (!blank && !front.done()) return;
        if (listener_.end) listener_.end(front);
        recordings_.pop_front();
        begun_ = false;
    }
}

}  // namespace hark::whisper
