// One forward pass of a decoder over the packed rows of several sequences, and their caches.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "kernels/batch_layout.h"
#include "kernels/runtime/upload_ahead.h"
#include "whisper/model/model.h"

namespace hark::whisper {

// A decoder's caches for `rows` sequences over `windows` windows. A CPU's memory is committed on
// first write, a GPU's at construction.
struct Caches {
    Caches(const Model& model, int64_t rows, int64_t windows, CrossKvMode mode,
           const MemorySource& memory);

    KvCache self;
    CrossKvCache cross;
};

// Encodes mel (B, 3000, n_mels), normalised and time-major, on the host, into the slots `windows`.
// With `uploads` mel is copied while earlier windows are encoded.
void encode_windows(Context& ctx, const Model& model, Caches& caches,
                    std::span<const int64_t> windows, Tensor mel, UploadAhead* uploads = nullptr);

class Pass {
  public:
    // Adds the tokens of a sequence from index `begin` on; cache row `row` has those before it. Its
    // cross-attention reads slot `window`.
    void add(std::span<const int32_t> tokens, int64_t begin, int64_t row, int64_t window,
             int64_t n_audio_ctx);
    // Requests the logits after the packed row; rows() - 1 is the one added last.
    void want(int64_t packed_row) { wanted_.push_back(static_cast<int32_t>(packed_row)); }

    int64_t rows() const { return self_rows_.rows(); }
    int64_t wanted() const { return std::ssize(wanted_); }
    // Whether each sequence has one token, and all rows are wanted in order.
    bool is_step() const;
    // The pass's inputs, on the host: views that add() invalidates.
    Tensor tokens() { return ints(tokens_); }
    Tensor position() { return ints(position_); }
    BatchLayout self_rows() const { return self_rows_.view(); }
    BatchLayout cross_rows() const { return cross_rows_.view(); }

    // Logits (n, n_vocab) of the wanted rows, in the order of want(), on the host: valid until the
    // caller's Scratch ends. Fills in `requests`, one per layer, if given.
    Tensor logits(Context& ctx, const Model& model, Caches& caches,
                  const std::vector<ScoresRequest>* requests = nullptr);
    // logits() on the context's device.
    Tensor device_logits(Context& ctx, const Model& model, Caches& caches,
                         const std::vector<ScoresRequest>* requests = nullptr);

  private:
    CrossAttentionInput cross_attention_input(Context& ctx, const Model& model,
                                              const Caches& caches, bool materialize_kv) const;
    static Tensor ints(std::vector<int32_t>& values) {
        return Tensor(values.data(), Dtype::i32, {std::ssize(values)});
    }
    std::vector<int32_t> tokens_, position_, wanted_;
    std::vector<int64_t> windows_;  // of the sequences
    HostBatchLayout self_rows_, cross_rows_;
};

}  // namespace hark::whisper
