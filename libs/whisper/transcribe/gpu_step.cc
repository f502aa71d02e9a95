#include "whisper/transcribe/gpu_step.h"

#include <algorithm>
#include <bit>

#include "core/error.h"
#include "kernels/runtime/cuda_library.h"
#include "kernels/runtime/transfer.h"

namespace hark::whisper {
namespace {

static_assert(sizeof(RowChoice) == 32 && sizeof(Candidate) == 8);

// A graph is made for so many rows, or for the next such number with rows that decode nothing.
int64_t rows_of_graph(int64_t rows) {
    if (rows <= 4) return rows;
    const int64_t step = int64_t{1} << (std::bit_width(static_cast<uint64_t>(rows - 1)) - 2);
    return std::min((rows + step - 1) / step * step, kManyRowsOnGpu - 1);
}

std::vector<Candidate> candidates_of(Context& ctx, const Tensor& best) {
    const Tensor host = to_host(ctx, best);
    const auto* first = reinterpret_cast<const Candidate*>(host.as<uint8_t>());
    return {first, first + host.size() / static_cast<int64_t>(sizeof(Candidate))};
}

Candidate* candidates(const Tensor& best) {
    return reinterpret_cast<Candidate*>(best.as<uint8_t>());
}

}  // namespace

// What a step of n rows takes, in places that do not move, and the graph of its work.
struct GpuStep::Graph {
    // Index arrays, one behind the other: of n each, the last one of n + 1.
    enum Array { kTokens, kPosition, kLength, kSlot, kWindow, kHeard, kStart };

    Graph(CaptureScratch& scratch, Arena& memory, Arena& host_memory, int64_t n, int64_t k,
          int64_t keys)
        : n(n), k(k), keys(keys), step(scratch) {
        choices_at = ((7 * n + 1) * static_cast<int64_t>(sizeof(int32_t)) + 31) / 32 * 32;
        const int64_t bytes = choices_at + n * static_cast<int64_t>(sizeof(RowChoice));
        device = memory.tensor(Dtype::u8, {bytes});
        host = host_memory.tensor(Dtype::u8, {bytes});
        best = memory.tensor(Dtype::u8, {n * k * static_cast<int64_t>(sizeof(Candidate))});
    }

    static int32_t* ints(const Tensor& in, int64_t n, Array array) {
        return reinterpret_cast<int32_t*>(in.as<uint8_t>()) + array * n;
    }
    int32_t* to_fill(Array array) const { return ints(host, n, array); }
    Tensor on_device(Array array) const {
        return Tensor(ints(device, n, array), Dtype::i32, {array == kStart ? n + 1 : n},
                      Device::cuda);
    }
    RowChoice* choices(const Tensor& in) const {
        return reinterpret_cast<RowChoice*>(in.as<uint8_t>() + choices_at);
    }
    // The graph's upload reads what is filled in: only once the step before has come back.
    void fill(Pass& pass, std::span<const RowChoice> wanted, int32_t spare, int32_t heard);
    void launch(Context& ctx, const Model& model, Caches& caches, const Chooser& chooser) const;

    int64_t n, k, keys;
    Captured step;
    int64_t choices_at = 0;
    Tensor device, host, best;
};

void GpuStep::Graph::fill(Pass& pass, std::span<const RowChoice> wanted, int32_t spare,
                          int32_t heard) {
    const Ragged own = pass.own(), listens = pass.listens();
    const int64_t rows = pass.rows();
    const auto copy = [&](Array array, const Tensor& from, int32_t rest) {
        int32_t* to = to_fill(array);
        std::copy_n(from.as<int32_t>(), rows, to);
        std::fill(to + rows, to + n, rest);
    };
    copy(kTokens, pass.tokens(), 0);
    copy(kPosition, pass.position(), 0);
    copy(kLength, own.length, 1);
    copy(kSlot, own.slot, spare);
    copy(kWindow, listens.slot, 0);
    copy(kHeard, listens.length, heard);
    for (int64_t i = 0; i <= n; ++i) to_fill(kStart)[i] = static_cast<int32_t>(i);
    std::copy(wanted.begin(), wanted.end(), choices(host));
    std::fill(choices(host) + rows, choices(host) + n, wanted.front());
}

void GpuStep::Graph::launch(Context& ctx, const Model& model, Caches& caches,
                            const Chooser& chooser) const {
    cuda_runtime().upload(ctx, device.data, host.data, host.bytes());
    const Arena::Scope scope(ctx.arena);
    const Tensor start = on_device(kStart);
    // Settled: uploads, and so all copies and prompts, are in front of the embedding.
    const Ragged own{start, on_device(kSlot), on_device(kLength), 1, keys, true};
    const Ragged windows{start, on_device(kWindow),       on_device(kHeard),
                         1,     model.config.n_audio_ctx, true};
    const Listening listening{caches.heard, windows, {}, {}};
    const Tensor logits = model.decoder(ctx, on_device(kTokens), on_device(kPosition), own,
                                        listening, start.slice(0, n), caches.self);
    chooser(ctx, candidates(best), k, logits, choices(device));
}

GpuStep::GpuStep(Context& ctx, const Model& model, Caches& caches, const Rules& rules,
                 int64_t spare)
    : ctx_(ctx),
      model_(model),
      caches_(caches),
      chooser_(ctx, rules, model.config.n_vocab),
      spare_(static_cast<int32_t>(spare)),
      scratch_(ctx),
      memory_(ctx.arena.source()),
      host_memory_(ctx.host_arena.source()) {}

GpuStep::~GpuStep() = default;

std::vector<Candidate> GpuStep::operator()(Pass& pass, std::span<const RowChoice> choices,
                                           int64_t k) {
    require(std::ssize(choices) == pass.wanted(), "expected a choice for each of ", pass.wanted(),
            " rows, found ", choices.size());
    if (!pass.is_step()) return eager(pass, choices, k);
    const int64_t n = rows_of_graph(pass.rows());
    const int64_t keys = keys_of_recording(pass.own().max_length, model_.config.n_text_ctx);
    std::unique_ptr<Graph>& graph = graphs_[{n, k, keys}];
    if (!graph) graph = std::make_unique<Graph>(scratch_, memory_, host_memory_, n, k, keys);
    const Stage stage(ctx_, "decoder", pass.tokens());
    graph->fill(pass, choices, spare_, static_cast<int32_t>(model_.config.n_audio_ctx));
    graph->step([&](Context& ctx) { graph->launch(ctx, model_, caches_, chooser_); });
    const Scratch scratch(ctx_);
    std::vector<Candidate> best = candidates_of(ctx_, graph->best);
    best.resize(choices.size() * static_cast<size_t>(k));
    return best;
}

std::vector<Candidate> GpuStep::eager(Pass& pass, std::span<const RowChoice> choices, int64_t k) {
    const Scratch scratch(ctx_);
    const auto bytes = [&](const void* data, size_t size) {
        return Tensor(const_cast<void*>(data), Dtype::u8, {static_cast<int64_t>(size)});
    };
    const Tensor rows = to_device(ctx_, bytes(choices.data(), choices.size_bytes()));
    const Tensor best = ctx_.arena.tensor(
        Dtype::u8, {std::ssize(choices) * k * static_cast<int64_t>(sizeof(Candidate))});
    const Tensor logits = pass.device_logits(ctx_, model_, caches_);
    chooser_(ctx_, candidates(best), k, logits,
             reinterpret_cast<const RowChoice*>(rows.as<uint8_t>()));
    return candidates_of(ctx_, best);
}

}  // namespace hark::whisper
