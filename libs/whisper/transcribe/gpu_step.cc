#include "whisper/transcribe/gpu_step.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <chrono>
#include <thread>

#include "core/error.h"
#include "kernels/runtime/cuda_library.h"
#include "kernels/runtime/gpu_span.h"
#include "kernels/runtime/transfer.h"

namespace hark::whisper {
namespace {

static_assert(sizeof(SampleRequest) == 32 && sizeof(Candidate) == 8);

// Layers of models that start the next step early. Without that a step begins 20 us later; the one
// after a window's last token is lost, which is more in a model of 32 layers (H200).
constexpr int64_t kMostLayersAhead = 12;

// What no step returns: a result that is still to come.
constexpr uint64_t kPending = 0x8000000080000000;
// After this time without a token the host waits for the GPU and looks once more.
constexpr std::chrono::seconds kTokenTimeout{1};

// Rounds up to a size that has a graph; the extra rows decode nothing.
int64_t rows_of_graph(int64_t rows) {
    if (rows <= 4) return rows;
    const int64_t step = int64_t{1} << (std::bit_width(static_cast<uint64_t>(rows - 1)) - 2);
    return std::min((rows + step - 1) / step * step, kManyRowsOnGpu - 1);
}

Candidate* candidates(const Tensor& best) {
    return reinterpret_cast<Candidate*>(best.as<uint8_t>());
}

std::vector<Candidate> candidates_of(const Tensor& host, int64_t first, int64_t count) {
    const Candidate* from = candidates(host) + first;
    return {from, from + count};
}

}  // namespace

// The inputs and outputs of a step of n rows.
struct GpuStep::Io {
    // Consecutive index arrays of n values; kStart has n + 1. Then NextStep's turn.
    enum Array { kTokens, kPosition, kLength, kSlot, kWindow, kFrames, kStart };

    Io(Arena& memory, Arena& host_memory, int64_t n, int64_t k, int64_t keys)
        : n(n), k(k), keys(keys) {
        requests_at = ((7 * n + 2) * static_cast<int64_t>(sizeof(int32_t)) + 31) / 32 * 32;
        const int64_t bytes = requests_at + n * static_cast<int64_t>(sizeof(SampleRequest));
        device = memory.tensor(Dtype::u8, {bytes});
        host = host_memory.tensor(Dtype::u8, {bytes});
        // In pinned memory, which the sampler writes itself: a copy takes longer. Of a row alone
        // two steps' results.
        best = host_memory.tensor(Dtype::u8,
                                  {(n == 1 ? 2 : n) * k * static_cast<int64_t>(sizeof(Candidate))});
    }

    static int32_t* ints(const Tensor& in, int64_t n, Array array) {
        return reinterpret_cast<int32_t*>(in.as<uint8_t>()) + array * n;
    }
    int32_t* to_fill(Array array) const { return ints(host, n, array); }
    Tensor on_device(Array array) const {
        return Tensor(ints(device, n, array), Dtype::i32, {array == kStart ? n + 1 : n},
                      Device::cuda);
    }
    SampleRequest* requests(const Tensor& in) const {
        return reinterpret_cast<SampleRequest*>(in.as<uint8_t>() + requests_at);
    }
    NextStep next() const {
        if (n != 1) return {};
        const auto at = [&](Array array) { return ints(device, n, array); };
        return {at(kTokens), at(kPosition), at(kLength), at(kStart) + 2, requests(device)};
    }
    // Of a row alone, whose one candidate is one word: the result that `turn` is for.
    std::atomic_ref<uint64_t> result(int64_t turn) const {
        return std::atomic_ref(reinterpret_cast<uint64_t*>(best.as<uint8_t>())[turn]);
    }
    // The host's inputs of a row alone.
    Inputs inputs() const {
        return {*to_fill(kTokens), *to_fill(kPosition), *to_fill(kLength),
                *to_fill(kSlot),   *to_fill(kWindow),   *requests(host)};
    }
    // Writes the inputs. The previous step must have ended: its upload reads the same memory.
    void fill(Pass& pass, std::span<const SampleRequest> wanted, int32_t spare, int32_t frames);
    void launch(Context& ctx, const Model& model, Caches& caches,
                const TokenSampler& sampler) const;

    int64_t n, k, keys;
    int64_t requests_at = 0;
    Tensor device, host, best;
};

void GpuStep::Io::fill(Pass& pass, std::span<const SampleRequest> wanted, int32_t spare,
                       int32_t frames) {
    const BatchLayout self = pass.self_rows(), cross = pass.cross_rows();
    const int64_t rows = pass.rows();
    const auto copy = [&](Array array, const Tensor& from, int32_t rest) {
        int32_t* to = to_fill(array);
        std::copy_n(from.as<int32_t>(), rows, to);
        std::fill(to + rows, to + n, rest);
    };
    copy(kTokens, pass.tokens(), 0);
    copy(kPosition, pass.position(), 0);
    copy(kLength, self.length, 1);
    copy(kSlot, self.block_table, spare);
    copy(kWindow, cross.block_table, 0);
    copy(kFrames, cross.length, frames);
    for (int64_t i = 0; i <= n; ++i) to_fill(kStart)[i] = static_cast<int32_t>(i);
    to_fill(kStart)[n + 1] = 0;
    std::copy(wanted.begin(), wanted.end(), requests(host));
    std::fill(requests(host) + rows, requests(host) + n, wanted.front());
}

void GpuStep::Io::launch(Context& ctx, const Model& model, Caches& caches,
                         const TokenSampler& sampler) const {
    const Arena::Scope scope(ctx.arena);
    const Tensor start = on_device(kStart);
    // true: the inputs, and so all earlier copies and prompts, precede the embedding.
    const BatchLayout self{start, on_device(kSlot), on_device(kLength), 1, keys, true};
    const BatchLayout windows{start, on_device(kWindow),       on_device(kFrames),
                              1,     model.config.n_audio_ctx, true};
    const CrossAttentionInput cross{caches.cross, windows, {}, {}};
    const Tensor logits = model.decoder(ctx, on_device(kTokens), on_device(kPosition), self, cross,
                                        start.slice(0, n), caches.self);
    sampler(ctx, candidates(best), k, logits, requests(device), next());
}

GpuStep::GpuStep(Context& ctx, const Model& model, Caches& caches,
                 const LogitConstraints& constraints, int64_t spare)
    : ctx_(ctx),
      model_(model),
      caches_(caches),
      sampler_(ctx, constraints, model.config.n_vocab),
      spare_(static_cast<int32_t>(spare)),
      graphs_(std::make_unique<GraphRunner<Io>>(ctx)),
      memory_(ctx.arena.source()),
      host_memory_(ctx.host_arena.source()) {}

GpuStep::~GpuStep() { wait_for(ctx_); }

std::vector<Candidate> GpuStep::operator()(Pass& pass, std::span<const SampleRequest> requests,
                                           int64_t k) {
    require(std::ssize(requests) == pass.wanted(), "expected a choice for each of ", pass.wanted(),
            " rows, found ", requests.size());
    if (!pass.is_step()) {
        ahead_ = nullptr;  // its sequence may begin again; eager() waits for it
        return eager(pass, requests, k);
    }
    const int64_t n = rows_of_graph(pass.rows());
    const int64_t keys = graph_bucket(pass.self_rows().max_length, model_.config.n_text_ctx);
    const GraphKey key{n, k, keys};
    Io& io = graphs_->io(key, [&] { return Io(memory_, host_memory_, n, k, keys); });
    const Stage stage(ctx_, "decoder", pass.tokens());
    io.fill(pass, requests, spare_, static_cast<int32_t>(model_.config.n_audio_ctx));
    if (ahead_ == &io && io.inputs() == ahead_inputs_) {
        turn_ = 1 - turn_;
    } else {
        if (ahead_) cuda_runtime().synchronize(ctx_);  // it writes a result too
        turn_ = 0;
        io.result(turn_).store(kPending);
        cuda_runtime().upload(ctx_, io.device.data, io.host.data, io.host.bytes());
        launch(key);
    }
    ahead_ = nullptr;
    if (looks_ahead(io)) {
        io.result(1 - turn_).store(kPending);
        launch(key);
        ahead_ = &io;
        wait_for_result(io);
    } else {
        cuda_runtime().synchronize(ctx_);
    }
    const std::vector<Candidate> best = candidates_of(io.best, turn_ * k, std::ssize(requests) * k);
    if (ahead_) ahead_inputs_ = after(io.inputs(), best.front().token);
    return best;
}

void GpuStep::wait_for_result(const Io& io) {
    const std::atomic_ref<uint64_t> result = io.result(turn_);
    const auto begin = std::chrono::steady_clock::now();
    while (result.load(std::memory_order_acquire) == kPending) {
        std::this_thread::yield();
        if (std::chrono::steady_clock::now() - begin < kTokenTimeout) continue;
        cuda_runtime().synchronize(ctx_);  // throws the GPU's error
        require(result.load(std::memory_order_acquire) != kPending,
                "internal error: the sampling kernel returned no token");
    }
}

void GpuStep::launch(const GraphKey& key) {
    const GpuSpan span(ctx_, "gpu.step");
    graphs_->launch(key, [&](Context& ctx, Io& of) { of.launch(ctx, model_, caches_, sampler_); });
}

bool GpuStep::looks_ahead(const Io& io) const {
    if (io.n != 1 || io.k != 1 || model_.config.n_text_layer > kMostLayersAhead) return false;
    const SampleRequest& request = *io.requests(io.host);
    return request.temperature == 0 && request.only < 0 && *io.to_fill(Io::kLength) < io.keys;
}

// As the kernel makes them.
GpuStep::Inputs GpuStep::after(const Inputs& step, int32_t sampled) const {
    return {
        sampled,         step.position + 1,
        step.length + 1, step.slot,
        step.window,     next_request(sampler_.constraints(), step.request, step.token, sampled)};
}

std::vector<Candidate> GpuStep::eager(Pass& pass, std::span<const SampleRequest> requests,
                                      int64_t k) {
    const Scratch scratch(ctx_);
    const GpuSpan span(ctx_, "gpu.prefill");
    const auto bytes = [&](const void* data, size_t size) {
        return Tensor(const_cast<void*>(data), Dtype::u8, {static_cast<int64_t>(size)});
    };
    const Tensor rows = to_device(ctx_, bytes(requests.data(), requests.size_bytes()));
    const Tensor best = ctx_.arena.tensor(
        Dtype::u8, {std::ssize(requests) * k * static_cast<int64_t>(sizeof(Candidate))});
    const Tensor logits = pass.device_logits(ctx_, model_, caches_);
    sampler_(ctx_, candidates(best), k, logits,
             reinterpret_cast<const SampleRequest*>(rows.as<uint8_t>()));
    return candidates_of(to_host(ctx_, best), 0, std::ssize(requests) * k);
}

}  // namespace hark::whisper
