#include "gpt/train/train_run.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>

#include "core/cli/ending_signal.h"
#include "core/profile/profile.h"
#include "core/profile/run_counts.h"
#include "gpt/answers/generate_request.h"
#include "gpt/families/llmc_file.h"
#include "gpt/families/model_folder.h"
#include "gpt/train/export_model.h"
#include "gpt/train/samples.h"
#include "gpt/train/train_memory.h"
#include "gpt/train/train_metrics.h"
#include "gpt/train/trainer.h"
#include "kernels/runtime/gpu_limits.h"
#include "kernels/runtime/transfer.h"

namespace hark::gpt {

TrainRun::TrainRun(const TrainOptions& options, Console& console, std::unique_ptr<Transport> links)
    : options_(options),
      console_(console),
      progress_(console),
      out_(STDOUT_FILENO, "stdout"),
      ctx_(context_of(options.gpus, options.compute, console, links.get())),
      mesh_(ctx_, std::move(links), options.tensor_parallel),
      ranks_(mesh_.all()),
      matrices_(options.matrices(ctx_.device)),
      folder_(options.output_dir),
      initial_(resolve_initial_model(options, folder_)) {
    options_.ranks = mesh_.data().size();
    if (options_.length == 0) options_.length = initial_.config.n_positions;
    if (options_.is_synthetic() && !initial_.bpe && options_.sample_every > 0) {
        console_.warning("no samples are written: synthetic tokens have no tokenizer");
        options_.sample_every = 0;
    }
    check_model();
    open_data();
}

TrainRun::~TrainRun() = default;

void TrainRun::check_model() const {
    const DecoderConfig& config = initial_.config;
    const int64_t parts = options_.tensor_parallel;
    require(options_.length <= config.n_positions,
            "--sequence-length: expected at most the model's context of ", config.n_positions,
            ", got ", options_.length);
    require(
        config.n_head % parts == 0 && config.n_kv_head % parts == 0 && config.n_inner % parts == 0,
        "--tensor-parallel: expected a divisor of the model's ",
        std::min(config.n_head, config.n_kv_head), " heads and of its MLP's ", config.n_inner,
        " channels, got ", parts);
    check_head(ctx_, channels_per_head(), kMostTrainedHead);
    require(!options_.mask_documents || initial_.end_of_text,
            "--mask-documents: the tokenizer has no <|endoftext|> between documents");
    require(options_.sample_every == 0 || initial_.bpe,
            "--sample-every: the run has no tokenizer to write text with; give --tokenizer");
    if (!options_.export_llmc.empty()) {
        check_llmc(config, options_.export_llmc);
        check_target(options_.export_llmc, false);
    }
    if (!options_.export_model.empty()) check_target(options_.export_model, true);
}

void TrainRun::open_data() {
    const int64_t n_vocab = initial_.config.n_vocab;
    const auto seed = static_cast<uint64_t>(options_.seed);
    train_.emplace(options_.train, options_.length, n_vocab, TokenWindows::Options{.seed = seed});
    if (!options_.val.empty())
        val_.emplace(
            options_.val, options_.length, n_vocab,
            TokenWindows::Options{
                .advice = "with smaller --val-block and --hold-out-every gpt-tokenize holds "
                          "more out",
                .seed = seed,
                .part = 1});
    if (options_.hellaswag.empty()) return;
    hellaswag_.emplace(std::filesystem::path(options_.hellaswag), n_vocab,
                       initial_.config.n_positions);
}

void TrainRun::operator()() {
    if (options_.dry_run) return print_plan();
    begin();
    if (!train()) return;
    if (saved_ != state_.step) save();
    if (state_.step == options_.steps) export_final_model();
    ranks_.finish();
    if (stop_signal_ != 0) end_by_signal();
}

void TrainRun::print_plan() {
    write(describe_run(initial_.config, options_, matrices_,
                       train_memory(ctx_, mesh_, initial_.config, options_, matrices_),
                       train_->tokens()));
    ranks_.finish();
}

void TrainRun::begin() {
    const auto questions = hellaswag_ ? std::ssize(hellaswag_->examples()) : 0;
    if (hellaswag_) hellaswag_->keep_share(mesh_.data().rank(), mesh_.data().size());
    if (ranks_.first()) folder_.claim();
    trainer_ = std::make_unique<Trainer>(ctx_, mesh_, initial_.config, options_, matrices_, *train_,
                                         options_.mask_documents ? *initial_.end_of_text : -1);
    state_ = {0, options_.identity(matrices_), train_->description(), {}};
    if (folder_.newest()) {
        state_ = folder_.load(*trainer_, state_);
        trainer_->outliers() = state_.outliers;
        saved_ = state_.step;
        if (state_.step == options_.steps)
            console_.warning(concat(options_.output_dir, ": this run is complete (step ",
                                    state_.step, "); to continue, start a new run with --model ",
                                    options_.output_dir, "/ and another --output-dir"));
    } else {
        if (ranks_.first()) folder_.describe(initial_.config, initial_.directory);
        trainer_->fill(StateTensor::parameters, [&](Tensor all) {
            init_parameters(options_, initial_, trainer_->layout(), all);
        });
    }
    trainer_->on_parameters_loaded(state_.step);
    note_model(options_.output_dir, ctx_.on_cuda() ? "cuda" : "cpu");
    note_train_memory();
    expect_agreement(
        ranks_, concat("step ", state_.step, ", ", state_.identity, ", ", state_.data, ", ",
                       options_.schedule_of_ranks(), ", ", val_ ? val_->description() : "nothing",
                       " held out, ", questions, " questions"));
    resume_samples();
    if (ranks_.first() && !options_.tensorboard.empty() && state_.step < options_.steps)
        events_.emplace(options_.tensorboard, state_.step + 1);
}

void TrainRun::note_train_memory() {
    if (!is_measured()) return;
    const TrainMemory memory = train_memory(ctx_, mesh_, initial_.config, options_, matrices_);
    add_memory("weights", memory.weights);
    add_memory("gradients", memory.gradients);
    add_memory("moments", memory.moments);
    add_memory("activations", memory.activations);
}

// Returns false on the other ranks if all have failed alike: the first one throws the error.
bool TrainRun::train() {
    const double limit = ranks_.size() * measured_peak_flops(ctx_, matrices_);
    if (state_.step < options_.steps && needs_heading(STDOUT_FILENO, state_.step == 0))
        write(Metrics::kHeading);
    try {
        while (state_.step < options_.steps && !stopping()) {
            advance(limit);
            const bool due =
                state_.step == options_.steps || state_.step % options_.save_every == 0;
            if (due && saved_ != state_.step) save();
        }
    } catch (const Error& error) {  // the last step's parameters are good
        if (!ranks_.alone() && dynamic_cast<const Diverged*>(&error) == nullptr)
            throw;  // the other ranks do not save
        if (state_.step > 0 && saved_ != state_.step) save();
        ranks_.finish();
        if (!ranks_.first()) return false;
        throw;
    }
    return true;
}

// Whether a rank has received a signal that ends a run; all ranks agree.
bool TrainRun::stopping() {
    const sigset_t signals = ending_signals();
    const timespec at_once = {};
    if (signal_ == 0) signal_ = std::max(0, ::sigtimedwait(&signals, nullptr, &at_once));
    constexpr int kSignals[] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE};
    double seen[std::size(kSignals)];
    for (size_t i = 0; i < std::size(seen); ++i) seen[i] = signal_ == kSignals[i];
    ranks_.sum(seen);
    for (size_t i = 0; i < std::size(seen); ++i)
        if (seen[i] > 0) stop_signal_ = kSignals[i];
    return stop_signal_ != 0;
}

// Ends the process as the signal would have ended it.
void TrainRun::end_by_signal() {
    if (ranks_.first() && stop_signal_ != SIGPIPE)
        progress_.above([&] {
            console_.warning(concat(options_.output_dir, ": checkpoint saved at step ", saved_));
        });
    const sigset_t signals = ending_signals();
    const timespec at_once = {};
    while (::sigtimedwait(&signals, nullptr, &at_once) > 0) continue;  // several may have been sent
    flush_profile();
    std::signal(stop_signal_, SIG_DFL);
    ::pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
    std::raise(stop_signal_);
}

// One step and its reports.
void TrainRun::advance(double limit) {
    const Clock::time_point begin = Clock::now();
    Metrics metrics = {state_.step + 1, trainer_->step(state_.step + 1)};
    ++state_.step;
    if (metrics.result.skipped)
        progress_.above([&] {
            console_.warning(concat("step ", state_.step, " is skipped as an outlier (loss ",
                                    metrics.result.loss, ", norm ", metrics.result.norm, ")"));
        });
    const auto tokens = static_cast<double>(options_.sequences_per_step() * options_.length);
    metrics.ms = milliseconds_since(begin);
    metrics.tokens_per_second = 1e3 * tokens / metrics.ms;
    metrics.fraction = 1e3 * trainer_->flops_per_step() / metrics.ms / limit;
    if (stopping())
        save();  // before the line: its reader may have ended
    else
        evaluate(metrics);
    ProgressReport report;
    report.done = static_cast<double>(state_.step);
    report.total = static_cast<double>(options_.steps);
    report.note = metrics.progress();
    if (ranks_.first()) progress_.show(report);
    if (events_) events_->add(metrics.step, metrics.scalars());
    write(metrics.line());
    if (options_.sample_every > 0 && state_.step % options_.sample_every == 0) sample();
}

// Validation and questions, if they are due.
void TrainRun::evaluate(Metrics& metrics) {
    if (state_.step != options_.steps &&
        (options_.val_every == 0 || state_.step % options_.val_every != 0))
        return;
    if (val_) metrics.val_loss = trainer_->validate(*val_, options_.val_tokens);
    if (!hellaswag_) return;
    const auto losses = hellaswag_->losses(options_.batch * options_.length, [&](PackedRows& rows) {
        return row_losses(ctx_, mesh_.tensor(), initial_.config, trainer_->weights(), rows);
    });
    double counts[] = {static_cast<double>(hellaswag_->right(losses)),
                       static_cast<double>(losses.size())};
    mesh_.data().sum(counts);
    metrics.hellaswag = counts[0] / counts[1];
}

void TrainRun::save() {
    const ProfileSpan span("write");
    state_.outliers = trainer_->outliers();
    const auto gather = [&](StateTensor which) { return trainer_->gather(which); };
    if (ranks_.first()) {
        folder_.save(ctx_, trainer_->layout(), state_, gather, options_.keep);
    } else {
        for (const StateTensor which : {StateTensor::parameters, StateTensor::m, StateTensor::v}) {
            const Scratch scratch(ctx_);
            gather(which);
        }
    }
    ranks_.barrier();
    saved_ = state_.step;
}

void TrainRun::export_final_model() {
    if (options_.export_llmc.empty() && options_.export_model.empty()) return;
    const Scratch scratch(ctx_);
    const Tensor parameters = trainer_->gather(StateTensor::parameters);
    if (!ranks_.first()) return;
    const ParameterLayout& layout = trainer_->layout();
    const Dtype dtype = options_.export_type == "f32"   ? Dtype::f32
                        : options_.export_type == "f16" ? Dtype::f16
                                                        : Dtype::bf16;
    if (!options_.export_llmc.empty()) {
        make_parent(options_.export_llmc);
        write_llmc(options_.export_llmc, initial_.config, layout, parameters, dtype);
    }
    if (!options_.export_model.empty()) {
        make_parent(options_.export_model);
        export_model(options_.export_model, initial_.config, initial_.directory, layout, parameters,
                     dtype);
    }
}

// Steps after the checkpoint are repeated, and write their samples again.
void TrainRun::resume_samples() {
    double missing[] = {0};
    if (ranks_.first()) {
        const int64_t last = cut_samples(samples_file(), state_.step);
        // The run may have ended between this checkpoint and its sample.
        missing[0] = state_.step > 0 && options_.sample_every > 0 &&
                     state_.step % options_.sample_every == 0 && last != state_.step;
    }
    ranks_.sum(missing);
    if (missing[0] > 0) sample();
}

void TrainRun::sample() {
    const Scratch scratch(ctx_);
    const Tensor parameters = trainer_->gather(StateTensor::parameters);
    if (!ranks_.first()) return;
    GenerateOptions generate;
    generate.max_tokens = options_.sample_tokens;
    generate.seed = options_.seed;
    // A sliced model may not fit on one GPU, nor its heads into the attention of generation.
    Context cpu = make_cpu_context(ctx_.threads);
    Context& ctx = mesh_.tensor().alone() && channels_per_head() <= kMostHeadChannels ? ctx_ : cpu;
    const std::string text =
        sample_text(ctx, initial_.config, trainer_->layout(), parameters, *initial_.bpe, generate,
                    options_.sample_prompt.empty() ? "\n" : options_.sample_prompt,
                    static_cast<uint64_t>(state_.step));
    append_sample(samples_file(), state_.step, text);
}

void TrainRun::write(const std::string& line) {
    if (!ranks_.first() || signal_ == SIGPIPE) return;
    try {
        progress_.above([&] {
            out_.write(line);
            out_.flush();
        });
    } catch (const Error&) {
        pollfd closed = {STDOUT_FILENO, POLLOUT, 0};
        if (::poll(&closed, 1, 0) != 1 || (closed.revents & POLLERR) == 0) throw;
        signal_ = SIGPIPE;  // stdout has no reader any more
    }
}

}  // namespace hark::gpt
