// One forward pass of a decoder: the packed rows of several sequences, and their caches.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "kernels/ragged.h"
#include "whisper/model/model.h"

namespace hark::whisper {

// What a model's decoder remembers: `rows` sequences that listen to `windows` windows.
// On the CPU memory is taken when it is first written, on a GPU at once.
struct Caches {
    Caches(const Model& model, int64_t rows, int64_t windows, Keep keep,
           const MemorySource& memory);

    KeyValues self;
    Heard heard;
};

// Encodes mel (B, 3000, n_mels) of the host, normalised and time-major, into the slots of B
// windows.
void encode_windows(Context& ctx, const Model& model, Caches& caches,
                    std::span<const int64_t> windows, Tensor mel);

class Pass {
  public:
    // The tokens [begin, end) of a sequence, the first `begin` of which are in cache row `row`
    // already; it listens to `window`.
    void add(std::span<const int32_t> tokens, int64_t begin, int64_t row, int64_t window,
             int64_t n_audio_ctx);
    // Asks for the logits behind the packed row; those of the newest one is rows() - 1.
    void want(int64_t packed_row) { wanted_.push_back(static_cast<int32_t>(packed_row)); }

    int64_t rows() const { return own_.rows(); }
    int64_t wanted() const { return std::ssize(wanted_); }
    // Whether it is one more token for each sequence, and all of its rows are wanted in their
    // order.
    bool is_step() const;
    // What the pass is made of, on the host: views as long as nothing is added.
    Tensor tokens() { return ints(tokens_); }
    Tensor position() { return ints(position_); }
    Ragged own() const { return own_.view(); }
    Ragged listens() const { return listens_.view(); }

    // Logits (n, n_vocab) of the rows wanted, in the order of want(), on the host: valid until the
    // caller's Scratch ends. Fills in the requests, one a layer, where there are any.
    Tensor logits(Context& ctx, const Model& model, Caches& caches,
                  const std::vector<ScoresRequest>* requests = nullptr);
    // The same on the context's device.
    Tensor device_logits(Context& ctx, const Model& model, Caches& caches,
                         const std::vector<ScoresRequest>* requests = nullptr);

  private:
    Listening listening(Context& ctx, const Model& model, const Caches& caches,
                        bool unfolded) const;
    static Tensor ints(std::vector<int32_t>& values) {
        return Tensor(values.data(), Dtype::i32, {std::ssize(values)});
    }
    std::vector<int32_t> tokens_, position_, wanted_;
    std::vector<int64_t> windows_;  // of the sequences
    HostRagged own_, listens_;
};

}  // namespace hark::whisper
