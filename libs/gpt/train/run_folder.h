// The folder of a training run: a Hugging Face directory, whose model.safetensors is a link into
// the newest checkpoint, and the checkpoints step-00002000/ and so on.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "gpt/train/parameters.h"
#include "gpt/train/train_state.h"

namespace hark {
struct Context;
}

namespace hark::gpt {

class Trainer;

struct RunState {
    int64_t step = 0;      // steps done
    std::string identity;  // TrainOptions::identity()
    std::string data;      // TokenWindows::description()
    Outliers outliers;
};

// A checkpoint is a Hugging Face directory with optimizer.safetensors (AdamW's moments, Muon's
// momentum as `m`) and training.json (the steps done, and what the run began with). It appears
// under its name only once it is complete.
class RunFolder {
  public:
    explicit RunFolder(const std::filesystem::path& path) : path_(path) {}
    ~RunFolder();
    RunFolder(const RunFolder&) = delete;
    RunFolder& operator=(const RunFolder&) = delete;

    // Locks the folder for this process: makes it if it is missing, removes what a killed run left
    // unfinished. Throws Error if another process has it, or if it has a model that no run wrote.
    void claim();

    // Writes what all checkpoints share: the configuration, and the files of a tokenizer's
    // directory (empty: none).
    void describe(const DecoderConfig& config, const std::filesystem::path& tokenizer) const;

    // The newest checkpoint's directory; nullopt if the folder has no checkpoint.
    std::optional<std::filesystem::path> newest() const;

    // Fills the trainer's parameters and moments from the newest checkpoint. Throws Error with the
    // file that is missing, truncated or of another run: all of `expected` is compared except its
    // step.
    RunState load(Trainer& trainer, const RunState& expected) const;

    // Writes a checkpoint, links model.safetensors to it and keeps the `keep` newest. `gather`
    // gives layout.size() floats on the host: parameters, m, v, one after another. Throws Error if
    // the disk is full; the checkpoints before then stay as they are.
    void save(Context& ctx, const ParameterLayout& layout, const RunState& state,
              const std::function<Tensor(StateTensor)>& gather, int64_t keep) const;

    const std::filesystem::path& path() const { return path_; }

  private:
    std::vector<std::filesystem::path> checkpoints() const;  // oldest first
    void link_newest() const;
    void prune(int64_t keep) const;

    std::filesystem::path path_;
    int lock_ = -1;
};

}  // namespace hark::gpt
