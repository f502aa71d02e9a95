#include "nn/kv_cache.h"

#include <algorithm>
#include <cstring>

#include "core/error.h"
#include "core/profile/run_counts.h"
#include "kernels/runtime/transfer.h"

namespace hark {
namespace {

constexpr int32_t kNoBlock = PrefixCache::kNone;

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

// Blocks of a sequence that are in use at once, at most.
int64_t most_of_sequence(const LayerKeeps& keeps, const KvCacheShape& shape) {
    const int64_t all = ceil_div(shape.capacity, shape.block);
    if (keeps.kind == LayerKeeps::Kind::all_keys) return all;
    // The window of a pass's first row and the rows after it; they may begin within a block.
    const int64_t tokens = keeps.window - 1 + shape.most_rows;
    return std::min(all, ceil_div(tokens - 1, shape.block) + 1);
}

// Blocks of all sequences.
int64_t most_blocks(const LayerKeeps& keeps, const KvCacheShape& shape) {
    const int64_t all = shape.sequences * most_of_sequence(keeps, shape);
    return shape.pool_tokens > 0 ? std::min(all, ceil_div(shape.pool_tokens, shape.block)) : all;
}

KvCacheShape with_block(KvCacheShape shape) {
    if (shape.block == 0) shape.block = shape.capacity;
    return shape;
}

}  // namespace

KvCache::KvCache(const KvCacheShape& shape, const MemorySource& memory)
    : shape_(with_block(shape)),
      source_(memory),
      has_slabs_(shape.pool_tokens > 0 && memory.reserve != nullptr),
      prefixes_(shape_.block),
      indexed_(static_cast<size_t>(shape.sequences)) {
    const size_t layers = shape.layers.size();
    for (std::vector<Tensor>* tensors : {&keys, &values}) tensors->resize(layers);
    for (auto* memories : {&key_memory_, &value_memory_}) memories->resize(layers);
    for (const LayerKeeps& keeps : shape.layers) {
        const auto same = [&](const Group& group) { return group.keeps == keeps; };
        const auto found = std::find_if(groups_.begin(), groups_.end(), same);
        group_.push_back(static_cast<size_t>(found - groups_.begin()));
        if (found != groups_.end()) continue;
        groups_.push_back({keeps,
                           BlockPool(most_blocks(keeps, shape_), !has_slabs_),
                           std::vector<std::vector<int32_t>>(static_cast<size_t>(shape.sequences)),
                           {}});
    }
    const bool at_once =
        shape_.block == shape_.capacity || shape_.pool_tokens > 0 || memory.device != Device::cpu;
    for (size_t g = 0; g < groups_.size(); ++g) {
        Group& group = groups_[g];
        group.pool.on_loss([this, g](int32_t block) { prefixes_.lose(g, block); });
        has_slabs_ ? reserve(group) : grow(group, at_once ? group.pool.most() : 0);
    }
}

KvCache::~KvCache() { add_memory("keys and values", -counted_); }

template <class Use>
void KvCache::for_tensors(const Group& group, const Use& use) {
    for (size_t layer = 0; layer < group_.size(); ++layer) {
        if (&groups_[group_[layer]] != &group) continue;
        use(keys[layer], key_memory_[layer]);
        if (shape_.has_values) use(values[layer], value_memory_[layer]);
    }
}

int64_t KvCache::block_bytes() const { return rows_bytes(shape_.block); }

void KvCache::reserve(Group& group) {
    for_tensors(group, [&](Tensor& tensor, Memory& memory) {
        tensor = Tensor(nullptr, shape_.dtype,
                        {group.pool.most(), shape_.heads, shape_.block, shape_.head_dim},
                        source_.device);
        memory.slabs = source_.reserve(tensor.bytes());
        tensor.data = memory.slabs->data();
        group.slab = memory.slabs->slab();
    });
}

size_t KvCache::slab_bytes(const Group& group, int64_t blocks) const {
    const auto bytes = static_cast<size_t>(blocks * block_bytes());
    return (bytes + group.slab - 1) / group.slab * group.slab;
}

void KvCache::set_bytes(Group& group, size_t bytes) {
    group.bytes = bytes;
    group.blocks = std::min(group.pool.most(), static_cast<int64_t>(bytes) / block_bytes());
    group.pool.set_ready(group.blocks);
    count_memory();
}

void KvCache::commit(Group& group, int64_t blocks) {
    const size_t bytes = slab_bytes(group, blocks);
    std::vector<ReservedMemory*> done;
    try {
        for_tensors(group, [&](const Tensor&, Memory& memory) {
            memory.slabs->commit(group.bytes, bytes);
            done.push_back(memory.slabs.get());
        });
    } catch (...) {
        for (ReservedMemory* const slabs : done) slabs->decommit(group.bytes, bytes);
        throw;
    }
    set_bytes(group, bytes);
}

void KvCache::give_memory_back(Context& ctx) {
    if (!has_slabs_) return;
    wait_for(ctx);
    for (Group& group : groups_) {
        group.pool.shrink();
        const size_t bytes = slab_bytes(group, group.pool.touched());
        if (bytes == group.bytes) continue;
        for_tensors(group, [&](const Tensor&, Memory& memory) {
            memory.slabs->decommit(bytes, group.bytes);
        });
        set_bytes(group, bytes);
    }
}

void KvCache::count_memory() {
    add_memory("keys and values", bytes() - counted_);
    counted_ = bytes();
}

// Keys and values of the group's layers get memory for all its blocks; what they hold moves.
void KvCache::grow(Group& group, int64_t blocks) {
    for_tensors(group, [&](Tensor& tensor, Memory& memory) {
        Tensor larger(nullptr, shape_.dtype, {blocks, shape_.heads, shape_.block, shape_.head_dim},
                      source_.device);
        const std::shared_ptr<void> fresh(source_.allocate(std::max<size_t>(larger.bytes(), 1)),
                                          source_.release);
        larger.data = fresh.get();
        if (tensor) std::memcpy(larger.data, tensor.data, tensor.bytes());
        tensor = larger;
        memory.piece = fresh;
    });
    group.blocks = blocks;
    count_memory();
}

int64_t KvCache::blocks_for(int64_t tokens) const { return ceil_div(tokens, shape_.block); }

int64_t KvCache::first_needed(const Group& group, int64_t length) const {
    const bool all = group.keeps.kind == LayerKeeps::Kind::all_keys;
    return all ? 0 : std::max<int64_t>(0, length + 1 - group.keeps.window) / shape_.block;
}

void KvCache::give_back_before(Group& group, int64_t sequence, int64_t begin) {
    std::vector<int32_t>& table = group.tables[static_cast<size_t>(sequence)];
    for (int64_t i = std::min<int64_t>(first_needed(group, begin), std::ssize(table)) - 1; i >= 0;
         --i) {
        int32_t& block = table[static_cast<size_t>(i)];
        if (block == kNoBlock) break;  // and all before it
        group.pool.give_back(block);
        block = kNoBlock;
    }
}

int64_t KvCache::missing(const Group& group, int64_t sequence, int64_t end) const {
    const auto& table = group.tables[static_cast<size_t>(sequence)];
    return std::max<int64_t>(0, blocks_for(end) - std::ssize(table));
}

// The blocks that are kept are used only if there is no memory for others.
void KvCache::get_memory(Group& group, int64_t n) {
    const int64_t blocks = std::min(group.pool.most(), group.pool.ready() + group.pool.missing(n));
    if (blocks == group.pool.ready()) return;
    try {
        commit(group, blocks);
    } catch (const OutOfMemory& why) {
        lack_ = why.what();
    }
}

void KvCache::take(Group& group, int64_t n, std::vector<int32_t>& table) {
    if (n == 0) return;
    lack_.clear();
    get_memory(group, n);
    if (n > group.pool.usable() && !lack_.empty()) throw OutOfMemory(lack_);
    group.pool.take(n, table);
    grow_to_touched(group);
}

void KvCache::take_until(Group& group, int64_t sequence, int64_t end) {
    take(group, missing(group, sequence, end), group.tables[static_cast<size_t>(sequence)]);
}

bool KvCache::make_room(int64_t sequence, int64_t begin, int64_t end) {
    lack_.clear();
    for (Group& group : groups_) give_back_before(group, sequence, begin);
    const auto fits = [&](Group& group) {
        const int64_t n = missing(group, sequence, end);
        if (n > group.pool.free()) return false;
        get_memory(group, n);
        return n <= group.pool.usable();
    };
    if (!std::all_of(groups_.begin(), groups_.end(), fits)) return false;
    for (Group& group : groups_) take_until(group, sequence, end);
    return true;
}

bool KvCache::can_hold(int64_t length) const {
    KvCacheShape shape = shape_;
    shape.capacity = length;
    return length <= shape_.capacity &&
           std::all_of(groups_.begin(), groups_.end(), [&](const Group& group) {
               return most_of_sequence(group.keeps, shape) <= group.pool.most();
           });
}

int64_t KvCache::start_with_prefix(int64_t sequence, std::span<const int32_t> tokens) {
    const std::vector<int64_t> nodes = prefixes_.find(tokens);
    // The longest beginning of which every group has what the next token needs.
    int64_t blocks = std::ssize(nodes);
    const auto first_missing_from = [&](size_t g, int64_t n) {
        for (int64_t i = n - 1; i >= first_needed(groups_[g], n * shape_.block); --i)
            if (prefixes_.block(nodes[static_cast<size_t>(i)], g) == kNoBlock) return i;
        return n;
    };
    for (size_t g = 0; g < groups_.size();) {
        const int64_t found = first_missing_from(g, blocks);
        g = found == blocks ? g + 1 : 0;  // shorter: look at all groups again
        blocks = found;
    }
    for (size_t g = 0; g < groups_.size(); ++g) {
        std::vector<int32_t>& table = groups_[g].tables[static_cast<size_t>(sequence)];
        table.assign(static_cast<size_t>(blocks), kNoBlock);
        for (int64_t i = first_needed(groups_[g], blocks * shape_.block); i < blocks; ++i) {
            const auto at = static_cast<size_t>(i);
            table[at] = prefixes_.block(nodes[at], g);
            groups_[g].pool.share(table[at]);
        }
    }
    Indexed& indexed = indexed_[static_cast<size_t>(sequence)];
    indexed.blocks = blocks;
    indexed.node = blocks > 0 ? nodes[static_cast<size_t>(blocks - 1)] : PrefixCache::kRoot;
    return blocks * shape_.block;
}

void KvCache::add_prefix(int64_t sequence, std::span<const int32_t> tokens) {
    Indexed& indexed = indexed_[static_cast<size_t>(sequence)];
    for (; (indexed.blocks + 1) * shape_.block <= std::ssize(tokens); ++indexed.blocks) {
        std::vector<int32_t> blocks;
        for (const Group& group : groups_)
            blocks.push_back(
                group.tables[static_cast<size_t>(sequence)][static_cast<size_t>(indexed.blocks)]);
        const auto of_block = tokens.subspan(static_cast<size_t>(indexed.blocks * shape_.block),
                                             static_cast<size_t>(shape_.block));
        indexed.node = prefixes_.add(indexed.node, of_block, blocks);
        for (size_t g = 0; g < groups_.size(); ++g)
            if (blocks[g] != kNoBlock && prefixes_.block(indexed.node, g) == blocks[g])
                groups_[g].pool.keep(blocks[g]);
    }
}

void KvCache::grow_to_touched(Group& group) {
    // Also after a call that found no memory for blocks that it had taken.
    if (group.pool.touched() <= group.blocks) return;
    // Half as much again, so that a token is moved about twice, whatever the length.
    grow(group, std::min(group.pool.most(),
                         std::max(group.pool.touched(), group.blocks + group.blocks / 2)));
}

std::vector<BatchLayout> KvCache::layouts(Context& ctx, const HostBatchLayout& rows) {
    const BatchLayout host = rows.view();
    const int64_t sequences = host.sequences();
    const int32_t *start = host.query_start.as<int32_t>(), *length = host.length.as<int32_t>();
    const int32_t* sequence = host.block_table.as<int32_t>();
    require(host.max_length <= shape_.capacity, "the key/value cache has room for ",
            shape_.capacity, " tokens of a sequence, found ", host.max_length);
    const BatchLayout shared = to_device(ctx, host);
    std::vector<BatchLayout> layouts(groups_.size(), shared);
    const int64_t most = std::max<int64_t>(1, blocks_for(host.max_length));
    for (size_t g = 0; g < groups_.size(); ++g) {
        Group& group = groups_[g];
        group.pass.assign(static_cast<size_t>(sequences * most), kNoBlock);
        for (int64_t b = 0; b < sequences; ++b) {
            require(0 <= sequence[b] && sequence[b] < shape_.sequences, "the key/value cache has ",
                    shape_.sequences, " sequences, found number ", sequence[b]);
            give_back_before(group, sequence[b], length[b] - (start[b + 1] - start[b]));
            take_until(group, sequence[b], length[b]);
            const std::vector<int32_t>& table = group.tables[static_cast<size_t>(sequence[b])];
            std::copy_n(table.begin(), std::min<int64_t>(most, std::ssize(table)),
                        group.pass.begin() + b * most);
        }
        layouts[g].block_table =
            to_device(ctx, Tensor(group.pass.data(), Dtype::i32, {sequences, most}));
    }
    return layouts;
}

bool KvCache::holds(int64_t sequence, int64_t length) const {
    return std::all_of(groups_.begin(), groups_.end(), [&](const Group& group) {
        const std::vector<int32_t>& table = group.tables[static_cast<size_t>(sequence)];
        const int64_t end = blocks_for(length);
        return end <= std::ssize(table) &&
               std::find(table.begin() + std::min(first_needed(group, length), end),
                         table.begin() + end, kNoBlock) == table.begin() + end;
    });
}

int64_t KvCache::first_held(size_t group, int64_t sequence, int64_t length) const {
    const std::vector<int32_t>& table = groups_[group].tables[static_cast<size_t>(sequence)];
    int64_t block = std::min<int64_t>(std::ssize(table), blocks_for(length));
    while (block > 0 && table[static_cast<size_t>(block - 1)] != kNoBlock) --block;
    return block * shape_.block;
}

void KvCache::start_with(int64_t sequence, std::span<const int64_t> first, int64_t length) {
    require(first.size() == groups_.size() && length <= shape_.capacity,
            "the key/value cache has room for ", shape_.capacity, " tokens of a sequence, found ",
            length);
    clear(sequence);
    for (size_t g = 0; g < groups_.size(); ++g) {
        std::vector<int32_t>& table = groups_[g].tables[static_cast<size_t>(sequence)];
        table.assign(static_cast<size_t>(first[g] / shape_.block), kNoBlock);
        take(groups_[g], blocks_for(length) - std::ssize(table), table);
    }
}

int64_t KvCache::rows_bytes(int64_t n) const {
    return shape_.heads * n * static_cast<int64_t>(row_bytes(shape_.dtype, shape_.head_dim));
}

template <class Use>
void KvCache::for_runs(size_t layer, int64_t sequence, int64_t first, int64_t n,
                       const Use& use) const {
    const auto row = static_cast<int64_t>(row_bytes(shape_.dtype, shape_.head_dim));
    const std::vector<int32_t>& table =
        groups_[group_[layer]].tables[static_cast<size_t>(sequence)];
    for (int64_t h = 0; h < shape_.heads; ++h)
        for (int64_t i = 0; i < n;) {
            const int64_t p = first + i, place = p % shape_.block;
            const int64_t count = std::min(shape_.block - place, n - i);
            const int64_t block = table[static_cast<size_t>(p / shape_.block)];
            use(((block * shape_.heads + h) * shape_.block + place) * row, (h * n + i) * row,
                static_cast<size_t>(count * row));
            i += count;
        }
}

void KvCache::read_rows(Context& ctx, std::byte* to, const Tensor& cache, size_t layer,
                        int64_t sequence, int64_t first, int64_t n) const {
    const auto* data = static_cast<const std::byte*>(cache.data);
    for_runs(layer, sequence, first, n, [&](int64_t from, int64_t at, size_t bytes) {
        read_bytes(ctx, to + at, data + from, bytes);
    });
}

void KvCache::write_rows(Context& ctx, const Tensor& cache, const std::byte* from, size_t layer,
                         int64_t sequence, int64_t first, int64_t n) {
    auto* data = static_cast<std::byte*>(cache.data);
    for_runs(layer, sequence, first, n, [&](int64_t to, int64_t at, size_t bytes) {
        write_bytes(ctx, data + to, from + at, bytes);
    });
}

void KvCache::clear(int64_t sequence) {
    for (Group& group : groups_) {
        std::vector<int32_t>& table = group.tables[static_cast<size_t>(sequence)];
        for (; !table.empty(); table.pop_back())
            if (table.back() != kNoBlock) group.pool.give_back(table.back());
    }
    indexed_[static_cast<size_t>(sequence)] = {};
}

int64_t KvCache::bytes() const {
    int64_t bytes = 0;
    for (size_t layer = 0; layer < group_.size(); ++layer) {
        const Group& group = groups_[group_[layer]];
        bytes += (has_slabs_ ? static_cast<int64_t>(group.bytes) : group.blocks * block_bytes()) *
                 (shape_.has_values ? 2 : 1);
    }
    return bytes;
}

int64_t KvCache::most_bytes() const {
    int64_t bytes = 0;
    for (const size_t group : group_)
        bytes += groups_[group].pool.most() * block_bytes() * (shape_.has_values ? 2 : 1);
    return bytes;
}

}  // namespace hark
