// What the layers of a decoder keep of its sequences between steps: keys and values, in blocks that
// are taken as the text grows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/arena.h"
#include "kernels/batch_layout.h"
#include "nn/block_pool.h"
#include "nn/prefix_cache.h"

namespace hark {

// Tokens of a block where sequences grow by blocks.
inline constexpr int64_t kBlockTokens = 32;

// What a layer keeps of a sequence. Layers that keep the same are a group: they share block tables.
struct LayerKeeps {
    enum class Kind { all_keys, window } kind = Kind::all_keys;
    int64_t window = 0;  // the newest keys that are kept; Kind::window only

    // All keys for a window of 0, or one as long as the longest sequence.
    static LayerKeeps keys(int64_t window, int64_t capacity) {
        if (window <= 0 || window >= capacity) return {};
        return {Kind::window, window};
    }
    bool operator==(const LayerKeeps&) const = default;
};

struct KvCacheShape {
    std::vector<LayerKeeps> layers;
    int64_t heads = 0, head_dim = 0;  // of keys and values
    bool has_values = true;  // false: the values are columns of the keys (latent attention)
    Dtype dtype = Dtype::f32;
    int64_t sequences = 1;
    int64_t capacity = 0;     // tokens of a sequence, at most
    int64_t block = 0;        // tokens of a block; 0: capacity, one block per sequence (a slot)
    int64_t most_rows = 512;  // rows of a sequence in one pass, at most: they follow a full window
    // Tokens of all sequences together, at most; 0: sequences * capacity. Their memory comes by
    // slabs at addresses that stay, if the device can do that, else at once.
    int64_t pool_tokens = 0;
};

// Keys and values of all layers for several sequences. A slot's memory is taken at once; a CPU
// commits it on first write. On a CPU the memory of smaller blocks follows the text, and moves if
// there are no pool_tokens.
class KvCache {
  public:
    KvCache(const KvCacheShape& shape, const MemorySource& memory);
    ~KvCache();
    KvCache(const KvCache&) = delete;
    KvCache& operator=(const KvCache&) = delete;

    // Per layer (blocks, heads, tokens of a block, head_dim); layouts() may change them. Values are
    // none where the shape has none.
    std::vector<Tensor> keys, values;

    // Makes room for a pass whose rows are the newest of their sequences. The slots in `rows` are
    // numbers of sequences, each at most once. Gives back blocks wholly before the window of a
    // sequence's first row, then takes those that are missing. Returns the pass's layout per group,
    // on the context's device; it is valid until the next call and while `rows` lives. Throws Error
    // if the cache is full.
    std::vector<BatchLayout> layouts(Context& ctx, const HostBatchLayout& rows);
    // Whether the pass's rows [begin, end) of a sequence have room. If so, their blocks are taken.
    // Where the device has no memory for more slabs, blocks of kept beginnings are used.
    bool make_room(int64_t sequence, int64_t begin, int64_t end);
    // Why the last slab that was needed could not be had; empty: it could.
    const std::string& lack() const { return lack_; }
    // Gives the memory of slabs back that no sequence has blocks in or before, and loses all kept
    // beginnings. Waits for the context's stream.
    void give_memory_back(Context& ctx);
    // Whether a sequence alone in the cache can have `length` tokens.
    bool can_hold(int64_t length) const;
    // The blocks of a sequence in the layers of a group; PrefixCache::kNone: given back.
    std::span<const int32_t> table(size_t group, int64_t sequence) const {
        return groups_[group].tables[static_cast<size_t>(sequence)];
    }

    // Starts an empty sequence with the longest beginning of `tokens` that add_prefix() has been
    // told of and that is still in memory, in whole blocks. Returns its tokens.
    int64_t start_with_prefix(int64_t sequence, std::span<const int32_t> tokens);
    // Tells that the sequence has the keys and values of `tokens`, its first ones. Its whole blocks
    // of them are for other sequences too.
    void add_prefix(int64_t sequence, std::span<const int32_t> tokens);

    // Whether the keys that follow the sequence's first `length` tokens would read are in memory:
    // those of all these tokens, or of the window before the next one.
    bool holds(int64_t sequence, int64_t length) const;
    // The first token of a sequence of `length` tokens from which on its keys are in memory, in the
    // layers of a group.
    int64_t first_held(size_t group, int64_t sequence, int64_t length) const;
    // Gives back all blocks of a sequence.
    void clear(int64_t sequence);

    // Replaces a sequence by one of `length` tokens, of which group g has memory for [first[g],
    // length). Its keys and values are undefined until write_rows() has set them.
    void start_with(int64_t sequence, std::span<const int64_t> first, int64_t length);
    // The bytes of n tokens' keys, or values, of a layer.
    int64_t rows_bytes(int64_t n) const;
    // Copies the rows of tokens [first, first + n) of a sequence, (heads, n, head_dim), between the
    // host and `cache`, the layer's keys or values; their blocks must be in memory. On a GPU
    // read_rows() waits for the stream.
    void read_rows(Context& ctx, std::byte* to, const Tensor& cache, size_t layer, int64_t sequence,
                   int64_t first, int64_t n) const;
    void write_rows(Context& ctx, const Tensor& cache, const std::byte* from, size_t layer,
                    int64_t sequence, int64_t first, int64_t n);

    size_t group_of(size_t layer) const { return group_[layer]; }
    size_t groups() const { return groups_.size(); }
    const BlockPool& pool(size_t group) const { return groups_[group].pool; }
    int64_t capacity() const { return shape_.capacity; }
    int64_t block_tokens() const { return shape_.block; }
    // The number of blocks of a sequence of that many tokens.
    int64_t blocks_for(int64_t tokens) const;
    int64_t bytes() const;       // of keys and values in memory
    int64_t most_bytes() const;  // with all blocks of the pools

  private:
    struct Group {
        LayerKeeps keeps;
        BlockPool pool;
        std::vector<std::vector<int32_t>> tables;  // per sequence; kNoBlock: given back
        std::vector<int32_t> pass;                 // the tables of the last pass (B, M)
        int64_t blocks = 0;                        // in memory
        size_t slab = 0, bytes = 0;  // of a layer's keys or values: a slab, those that have memory
    };
    // The memory of a layer's keys or values: one piece, or slabs.
    struct Memory {
        std::shared_ptr<void> piece;
        std::unique_ptr<ReservedMemory> slabs;
    };
    void give_back_before(Group& group, int64_t sequence, int64_t begin);
    int64_t missing(const Group& group, int64_t sequence, int64_t end) const;
    void take_until(Group& group, int64_t sequence, int64_t end);
    // The first of a group's blocks that a sequence of `length` tokens needs for its next token.
    int64_t first_needed(const Group& group, int64_t length) const;
    // Takes n blocks, which get memory.
    void take(Group& group, int64_t n, std::vector<int32_t>& table);
    void reserve(Group& group);
    // Gives slabs memory so that n more blocks can be taken, or sets lack_.
    void get_memory(Group& group, int64_t n);
    void commit(Group& group, int64_t blocks);
    void set_bytes(Group& group, size_t bytes);
    // Of the slabs that have that many blocks.
    size_t slab_bytes(const Group& group, int64_t blocks) const;
    int64_t block_bytes() const;
    void grow_to_touched(Group& group);
    void count_memory();
    // Calls use(tensor, memory) for the keys and the values of each of the group's layers.
    template <class Use>
    void for_tensors(const Group& group, const Use& use);
    // Calls use(offset in the cache, offset in the rows, bytes) for each run of neighbours.
    template <class Use>
    void for_runs(size_t layer, int64_t sequence, int64_t first, int64_t n, const Use& use) const;
    void grow(Group& group, int64_t blocks);

    KvCacheShape shape_;
    MemorySource source_;
    std::vector<Group> groups_;
    std::vector<size_t> group_;  // per layer
    bool has_slabs_;
    std::vector<Memory> key_memory_, value_memory_;
    std::string lack_;
    int64_t counted_ = 0;  // bytes that add_memory() has been told of
    PrefixCache prefixes_;
    struct Indexed {
        int64_t blocks = 0, node = PrefixCache::kRoot;
    };
    std::vector<Indexed> indexed_;  // per sequence: its beginning in prefixes_
};

}  // namespace hark
