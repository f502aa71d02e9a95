// Windows of token files, in an order that depends on the seed alone. It is the same for any number
// of processes and any size of a micro-batch.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "text/token_file.h"

namespace hark::gpt {

// A pseudo-random permutation of [0, n): the order of an epoch without a table. Four rounds of a
// Feistel network over the next power of four, walked until inside [0, n).
// Source: Black & Rogaway 2002 (cycle walking); Luby & Rackoff 1988 (four rounds).
class Shuffle {
  public:
    Shuffle(uint64_t n, uint64_t seed);
    uint64_t operator[](uint64_t i) const;  // i < n

  private:
    uint64_t n_, half_bits_, keys_[4];
};

// Windows of `length` tokens and the next token, end to end in each file.
class TokenWindows {
  public:
    struct Options {
        // Ends the error of files that are too short.
        const char* advice = "use more text or a shorter sequence";
        // Of SyntheticTokens, for a file of the name `synthetic`.
        uint64_t seed = 0, part = 0;
    };
    // Throws Error naming the file: as TokenFile does, for an id outside `n_vocab`, or if no file
    // has a whole window.
    TokenWindows(const std::vector<std::string>& files, int64_t length, int64_t n_vocab)
        : TokenWindows(files, length, n_vocab, Options{}) {}
    TokenWindows(const std::vector<std::string>& files, int64_t length, int64_t n_vocab,
                 const Options& options);

    int64_t length() const { return length_; }
    uint64_t size() const { return windows_; }                       // windows
    uint64_t tokens() const { return tokens_; }                      // of all files
    const std::string& description() const { return description_; }  // names and sizes, to compare

    // Copies window `index` < size() to `to` (length + 1). `shift`, 0 to 1, moves a file's windows
    // into the tokens left after the last one, so that each epoch leaves out other tokens.
    void copy(uint64_t index, double shift, std::span<int32_t> to) const;

  private:
    struct File {
        std::function<void(size_t first, size_t count, int32_t* to)> copy;
        uint64_t tokens = 0;
        uint64_t first = 0;  // window
        uint64_t windows = 0;
    };
    static File open(const std::string& name, int64_t n_vocab, const Options& options);

    std::vector<File> files_;
    int64_t length_;
    uint64_t windows_ = 0, tokens_ = 0;
    std::string description_;
};

// The windows of a run in their order: sequence i of the run, from 0 on, through one shuffled epoch
// after another.
class TrainingOrder {
  public:
    TrainingOrder(const TokenWindows& windows, uint64_t seed) : windows_(windows), seed_(seed) {}
    void copy(uint64_t i, std::span<int32_t> to) const;

  private:
    const TokenWindows& windows_;
    uint64_t seed_;
};

}  // namespace hark::gpt
