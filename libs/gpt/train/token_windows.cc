#include "gpt/train/token_windows.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "core/error.h"
#include "core/random.h"
#include "gpt/train/synthetic_tokens.h"

namespace hark::gpt {

Shuffle::Shuffle(uint64_t n, uint64_t seed) : n_(n) {
    half_bits_ = std::max<uint64_t>(1, (std::bit_width(n - (n > 0)) + 1) / 2);
    Random random(seed);
    for (uint64_t& key : keys_) key = random.next();
}

uint64_t Shuffle::operator[](uint64_t i) const {
    const uint64_t mask = (uint64_t{1} << half_bits_) - 1;
    do {
        uint64_t left = i >> half_bits_, right = i & mask;
        for (const uint64_t key : keys_) {
            const uint64_t mixed = Random(key ^ right).next() & mask;
            left = std::exchange(right, left ^ mixed);
        }
        i = left << half_bits_ | right;
    } while (i >= n_);
    return i;
}

TokenWindows::TokenWindows(const std::vector<std::string>& files, int64_t length, int64_t n_vocab,
                           const Options& options)
    : length_(length) {
    require(length > 0, "expected windows of 1 token or more, found ", length);
    for (const std::string& name : files) {
        File file = open(name, n_vocab, options);
        const uint64_t n = file.tokens;
        file.first = windows_;
        file.windows = n > 0 ? (n - 1) / static_cast<uint64_t>(length) : 0;
        windows_ += file.windows;
        tokens_ += n;
        description_ += concat(description_.empty() ? "" : " ",
                               std::filesystem::path(name).filename().string(), ":", n);
        files_.push_back(std::move(file));
    }
    require(!files.empty(), "no token files");
    require(windows_ > 0, files[0], ": too few tokens (got ", tokens_, " in ", files.size(),
            files.size() == 1 ? " file" : " files", ", expected at least ", length + 1,
            ": a sequence and the next token); ", options.advice);
}

TokenWindows::File TokenWindows::open(const std::string& name, int64_t n_vocab,
                                      const Options& options) {
    if (name == kSynthetic)
        return {[made = SyntheticTokens(options.seed, n_vocab, options.part)](
                    size_t first, size_t count, int32_t* to) { made.copy(first, count, to); },
                SyntheticTokens::kSize};
    const auto file = std::make_shared<TokenFile>(name);
    file->check_vocabulary(static_cast<int32_t>(n_vocab));
    return {[file](size_t first, size_t count, int32_t* to) { file->copy(first, count, to); },
            file->size()};
}

void TokenWindows::copy(uint64_t index, double shift, std::span<int32_t> to) const {
    const auto after =
        std::upper_bound(files_.begin(), files_.end(), index,
                         [](uint64_t i, const File& file) { return i < file.first; });
    const File& file = *std::prev(after);
    const auto length = static_cast<uint64_t>(length_);
    const uint64_t left = file.tokens - 1 - file.windows * length;  // after the last window
    const auto moved = static_cast<uint64_t>(shift * static_cast<double>(left + 1));
    file.copy((index - file.first) * length + std::min(moved, left), length + 1, to.data());
}

void TrainingOrder::copy(uint64_t i, std::span<int32_t> to) const {
    const uint64_t epoch = i / windows_.size();
    Random random(seed_ + epoch);
    const double shift = random.uniform();
    windows_.copy(Shuffle(windows_.size(), random.next())[i % windows_.size()], shift, to);
}

}  // namespace hark::gpt
