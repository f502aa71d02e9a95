// A training run: its steps and its outputs.
//
//   token files -> TokenWindows -> TrainingOrder -> Trainer -> RunFolder
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "core/cli/progress.h"
#include "core/files/io.h"
#include "gpt/eval/hellaswag.h"
#include "gpt/train/event_file.h"
#include "gpt/train/initial_model.h"
#include "gpt/train/run_folder.h"
#include "gpt/train/token_windows.h"
#include "gpt/train/train_options.h"
#include "gpt/train/train_ranks.h"

namespace hark::gpt {

struct Metrics;

// Signals that end a run with a checkpoint are blocked, and polled between steps: a handler would
// run on a stack that oneDNN's code may be using below its end. Call hold_ending_signals() first.
class TrainRun {
  public:
    // `links` to the ranks that train with this one; none if it is alone. Opens all files.
    TrainRun(const TrainOptions& options, Console& console, std::unique_ptr<Transport> links);
    ~TrainRun();

    // Trains, or with --dry-run writes describe_run() to stdout. A run that a signal ended saves a
    // checkpoint, then raises the signal.
    void operator()();

  private:
    void check_model() const;
    void open_data();
    void print_plan();
    void begin();  // claims the folder, and resumes or starts
    void note_train_memory();
    bool train();
    bool stopping();
    void advance(double limit);
    void evaluate(Metrics& metrics);
    void save();
    void export_final_model();
    void resume_samples();
    void sample();
    void write(const std::string& line);
    void end_by_signal();

    int64_t channels_per_head() const { return initial_.config.head_dim; }
    std::filesystem::path samples_file() const { return folder_.path() / "samples.txt"; }

    TrainOptions options_;
    Console& console_;
    Progress progress_;
    ByteWriter out_;
    Context ctx_;
    ParallelMesh mesh_;
    Communicator& ranks_;  // all of them
    Dtype matrices_;
    RunFolder folder_;
    InitialModel initial_;
    std::optional<TokenWindows> train_, val_;
    std::optional<HellaSwag> hellaswag_;
    std::unique_ptr<Trainer> trainer_;
    std::optional<EventFile> events_;
    RunState state_;
    int64_t saved_ = -1;   // step of the last checkpoint
    int signal_ = 0;       // that this process has received
    int stop_signal_ = 0;  // that ends the run
};

}  // namespace hark::gpt
