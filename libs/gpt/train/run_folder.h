// The folder of a training run:
//
//     run/config.json, tokenizer.json, ...   what a Hugging Face directory holds besides weights
//     run/model.safetensors -> step-00002000/model.safetensors
//     run/step-00002000/                     a checkpoint: such a directory by itself, and
//                       optimizer.safetensors  AdamW's moments, Muon's momentum as `m`
//                       training.json          how far the run is, and what it was begun with
//
// A checkpoint appears under its name only once it is whole, and the newest of them are kept.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "gpt/train/parameters.h"
#include "gpt/train/trainer.h"

namespace hark::gpt {

struct RunState {
    int64_t step = 0;      // steps done
    std::string identity;  // TrainOptions::identity()
    std::string data;      // TokenWindows::description()
    Outliers outliers;
};

class RunFolder {
  public:
    explicit RunFolder(const std::filesystem::path& path) : path_(path) {}
    ~RunFolder();
    RunFolder(const RunFolder&) = delete;
    RunFolder& operator=(const RunFolder&) = delete;

    // Takes the folder for this process alone: makes it where there is none, and removes what a run
    // that was killed left half done. Throws Error where another process has it, or where it holds
    // a model that no run has written.
    void claim();

    // Writes what all checkpoints share: the configuration, and the files of a tokenizer's
    // directory (empty: none).
    void describe(const Config& config, const std::filesystem::path& tokenizer) const;

    // The newest checkpoint's directory; nullopt where there is none.
    std::optional<std::filesystem::path> newest() const;

    // Fills the trainer's parameters and moments from the newest checkpoint. Throws Error naming
    // the file that is missing, cut short or of another run: `expected` is compared, but for its
    // step.
    RunState load(Trainer& trainer, const RunState& expected) const;

    // Writes a checkpoint, points run/model.safetensors at it and removes all but the `keep`
    // newest. `whole` gives layout.size() floats on the host, of the parameters, of m and of v, in
    // this order; it is called when the one before has been written. Throws Error where the disk is
    // full; what stood before is then left as it was.
    void save(Context& ctx, const ParameterLayout& layout, const RunState& state,
              const std::function<Tensor(Values)>& whole, int64_t keep) const;

    const std::filesystem::path& path() const { return path_; }

  private:
    std::vector<std::filesystem::path> checkpoints() const;  // oldest first
    void link_newest() const;
    void prune(int64_t keep) const;

    std::filesystem::path path_;
    int lock_ = -1;
};

}  // namespace hark::gpt
