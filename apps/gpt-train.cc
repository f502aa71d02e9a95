// gpt-train: token files -> a GPT-2 model, and a line of metrics a step on stdout.
//
//   token files -> TokenWindows -> TrainingOrder -> Trainer -> RunFolder
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <optional>

#include "core/ending_signal.h"
#include "core/io.h"
#include "core/progress.h"
#include "gpt/hellaswag.h"
#include "gpt/llmc_file.h"
#include "gpt/model_folder.h"
#include "gpt/samples.h"
#include "gpt/train_metrics.h"
#include "gpt/train_ranks.h"
#include "gpt/train_start.h"
#include "kernels/gpu_limits.h"
#include "kernels/transfer.h"

using namespace hark;

namespace {

constexpr const char* kSummary =
    "Trains a GPT-2 model on token files, as gpt-tokenize writes them.";
constexpr const char* kDescription =
    R"(Every step is a line on stdout: step, loss, validation loss (where there is one), learning rate,
norm of the gradients, milliseconds, tokens a second, the fraction of the speed of a large
product, and the share of --hellaswag's questions answered rightly (with a validation).
--out is a directory that transformers and gpt-generate --model read. Where it holds a
checkpoint the run goes on from there, with as many threads or on the same GPU to the same bits;
Ctrl-C, SIGTERM, SIGHUP and a closed pipe save one first. A GPU multiplies in bf16, the CPU in
float32 unless --dtype says otherwise.
--gpus N trains on several GPUs of this machine; mpirun and srun start it on several machines or
on CPUs: docs/training.md.
Presets for --config lie in presets/gpt-train, installed in share/hark/presets/gpt-train.)";

// What ends a run with a checkpoint are signals that are held back and looked for between steps: a
// handler would run on a stack that oneDNN's code may be using below its end.
class Run {
  public:
    // `links` to the ranks that train with this one; none without others.
    Run(const gpt::TrainOptions& options, Console& console, std::unique_ptr<Links> links)
        : options_(options),
          console_(console),
          progress_(console),
          out_(STDOUT_FILENO, "stdout"),
          ctx_(gpt::context_of(options, console, links.get())),
          grid_(ctx_, std::move(links), options.tensor_parallel),
          ranks_(grid_.all()),
          matrices_(options.matrices(ctx_.device)),
          folder_(options.out),
          start_(gpt::start_of(options, folder_)) {
        options_.ranks = grid_.data().size();
        if (options_.length == 0) options_.length = start_.config.n_positions;
        require_usage(options_.length <= start_.config.n_positions, "--length: expected at most ",
                      start_.config.n_positions, ", the model's context, found ", options_.length);
        const gpt::Config& config = start_.config;
        const int64_t parts = options.tensor_parallel;
        require_usage(config.n_head % parts == 0 && config.n_inner % parts == 0,
                      "--tensor-parallel: expected a divisor of the model's ", config.n_head,
                      " heads and of its MLP's ", config.n_inner, " channels, found ", parts);
        check_head(ctx_, channels_of_head(), kMostTrainedHead);
        require(!options_.mask_documents || start_.end_of_text,
                "--mask-documents: the tokenizer has no <|endoftext|> between documents");
        require(options_.sample_every == 0 || start_.bpe,
                "--sample-every: the run has no tokenizer to write text with");
        if (!options_.export_llmc.empty()) {
            gpt::check_llmc(start_.config, options_.export_llmc);
            gpt::check_target(options_.export_llmc, false);
        }
        if (!options_.export_model.empty()) gpt::check_target(options_.export_model, true);
        const int64_t n_vocab = start_.config.n_vocab;
        train_.emplace(options_.train, options_.length, n_vocab);
        if (!options_.val.empty())
            val_.emplace(options_.val, options_.length, n_vocab,
                         "with smaller --val-block and --val-every gpt-tokenize holds more out");
        if (!options_.hellaswag.empty())
            hellaswag_.emplace(std::filesystem::path(options_.hellaswag), n_vocab,
                               start_.config.n_positions);
        const auto examples = hellaswag_ ? std::ssize(hellaswag_->examples()) : 0;
        if (hellaswag_) hellaswag_->keep_share(grid_.data().rank(), grid_.data().size());
        if (ranks_.first()) folder_.claim();
        trainer_.emplace(ctx_, grid_, start_.config, options_, matrices_, *train_,
                         options_.mask_documents ? *start_.end_of_text : -1);
        state_ = {0, options_.identity(matrices_), train_->description(), {}};
        begin();
        gpt::expect_agreement(ranks_, concat("step ", state_.step, ", ", state_.identity, ", ",
                                             state_.data, ", ", options_.schedule_of_ranks(), ", ",
                                             val_ ? val_->description() : "nothing", " held out, ",
                                             examples, " questions"));
        resume_samples();
        if (ranks_.first() && !options_.tensorboard.empty() && state_.step < options_.steps)
            events_.emplace(options_.tensorboard, state_.step + 1);
    }

    void operator()() {
        const double limit = ranks_.size() * gpt::measured_limit(ctx_, matrices_);
        if (state_.step < options_.steps && gpt::needs_heading(STDOUT_FILENO, state_.step == 0))
            write(gpt::Metrics::kHeading);
        try {
            while (state_.step < options_.steps && !stopping()) {
                advance(limit);
                const bool due =
                    state_.step == options_.steps || state_.step % options_.save_every == 0;
                if (due && saved_ != state_.step) save();
            }
        } catch (const Error& error) {  // the last step's parameters are good
            if (!ranks_.alone() && dynamic_cast<const gpt::Diverged*>(&error) == nullptr)
                throw;  // the others are not here
            if (state_.step > 0 && saved_ != state_.step) save();
            ranks_.finish();
            if (!ranks_.first()) return;  // it is said once
            throw;
        }
        if (saved_ != state_.step) save();
        if (state_.step == options_.steps) export_whole();
        ranks_.finish();
        if (stop_signal_ == 0) return;
        const sigset_t signals = ending_signals();
        const timespec at_once = {};
        while (::sigtimedwait(&signals, nullptr, &at_once) > 0) continue;  // more than one was sent
        std::signal(stop_signal_, SIG_DFL);  // ended as the signal would have ended it
        ::pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
        std::raise(stop_signal_);
    }

  private:
    int64_t channels_of_head() const { return start_.config.n_embd / start_.config.n_head; }
    // Whether a rank has seen what ends a run; all agree on it.
    bool stopping() {
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
    // One step, and what is said of it.
    void advance(double limit) {
        const gpt::Clock::time_point begin = gpt::Clock::now();
        gpt::Metrics metrics = {state_.step + 1, trainer_->step(state_.step + 1)};
        ++state_.step;
        if (metrics.result.skipped)
            console_.warning(concat("step ", state_.step, " is skipped as an outlier: loss ",
                                    metrics.result.loss, ", norm of the gradients ",
                                    metrics.result.norm));
        const double tokens = static_cast<double>(options_.sequences_a_step() * options_.length);
        metrics.ms = gpt::milliseconds_since(begin);
        metrics.tokens_per_second = 1e3 * tokens / metrics.ms;
        metrics.fraction = 1e3 * trainer_->flops_a_step() / metrics.ms / limit;
        if (stopping())
            save();  // before a line that nobody may be reading any more
        else
            judge(metrics);
        ProgressReport report;
        report.done = static_cast<double>(state_.step);
        report.total = static_cast<double>(options_.steps);
        report.note = metrics.progress();
        if (ranks_.first()) progress_.show(report);
        if (events_) events_->add(metrics.step, metrics.scalars());
        write(metrics.line());
        if (options_.sample_every > 0 && state_.step % options_.sample_every == 0) sample();
    }
    void begin() {
        if (folder_.newest()) {
            state_ = folder_.load(*trainer_, state_);
            trainer_->parameters_are_of(state_.step);
            trainer_->outliers() = state_.outliers;
            saved_ = state_.step;
            if (state_.step == options_.steps)
                console_.warning(concat(options_.out, ": this run has ended at its step ",
                                        state_.step, "; --model ", options_.out,
                                        "/ and another --out go on from its model"));
            return;
        }
        if (ranks_.first()) folder_.describe(start_.config, start_.directory);
        trainer_->fill(gpt::Values::parameters, [&](Tensor all) {
            gpt::begin_parameters(options_, start_, trainer_->layout(), all);
        });
        trainer_->parameters_are_of(0);
    }
    // Validation and questions, where it is the step's turn.
    void judge(gpt::Metrics& metrics) {
        if (state_.step != options_.steps &&
            (options_.val_every == 0 || state_.step % options_.val_every != 0))
            return;
        if (val_) metrics.val_loss = trainer_->validate(*val_, options_.val_tokens);
        if (!hellaswag_) return;
        const auto losses =
            hellaswag_->losses(ctx_, grid_.tensor(), start_.config, trainer_->weights(),
                               options_.batch * options_.length);
        double counts[] = {static_cast<double>(hellaswag_->right(losses)),
                           static_cast<double>(losses.size())};
        grid_.data().sum(counts);
        metrics.hellaswag = counts[0] / counts[1];
    }
    void save() {
        state_.outliers = trainer_->outliers();
        const auto whole = [&](gpt::Values values) { return trainer_->whole(values); };
        if (ranks_.first()) {
            folder_.save(ctx_, trainer_->layout(), state_, whole, options_.keep);
        } else {
            for (const gpt::Values values :
                 {gpt::Values::parameters, gpt::Values::m, gpt::Values::v}) {
                const Scratch scratch(ctx_);
                whole(values);
            }
        }
        ranks_.barrier();
        saved_ = state_.step;
    }
    void export_whole() {
        if (options_.export_llmc.empty() && options_.export_model.empty()) return;
        const Scratch scratch(ctx_);
        const Tensor parameters = trainer_->whole(gpt::Values::parameters);
        if (!ranks_.first()) return;
        const gpt::ParameterLayout& layout = trainer_->layout();
        const Dtype dtype = options_.export_dtype == "f32"   ? Dtype::f32
                            : options_.export_dtype == "f16" ? Dtype::f16
                                                             : Dtype::bf16;
        if (!options_.export_llmc.empty())
            gpt::write_llmc(options_.export_llmc, start_.config, layout, parameters, dtype);
        if (!options_.export_model.empty())
            gpt::export_model(options_.export_model, start_.config, start_.directory, layout,
                              parameters, dtype);
    }
    std::filesystem::path samples_file() const { return folder_.path() / "samples.txt"; }
    // Steps after the checkpoint are done again, and write their samples again.
    void resume_samples() {
        double missing[] = {0};
        if (ranks_.first()) {
            const int64_t last = gpt::cut_samples(samples_file(), state_.step);
            // The run may have ended between this checkpoint and its sample.
            missing[0] = state_.step > 0 && options_.sample_every > 0 &&
                         state_.step % options_.sample_every == 0 && last != state_.step;
        }
        ranks_.sum(missing);
        if (missing[0] > 0) sample();
    }
    void sample() {
        const Scratch scratch(ctx_);
        const Tensor parameters = trainer_->whole(gpt::Values::parameters);
        if (!ranks_.first()) return;
        gpt::GenerateOptions generate;
        generate.max_tokens = options_.sample_tokens;
        generate.seed = options_.seed;
        // A model that is cut may be too large for one GPU, and a head for its attention.
        Context cpu = make_cpu_context(ctx_.threads);
        Context& ctx =
            grid_.tensor().alone() && channels_of_head() <= kMostHeadChannels ? ctx_ : cpu;
        const std::string text = gpt::sample_text(
            ctx, start_.config, trainer_->layout(), parameters, *start_.bpe, generate,
            options_.sample_prompt.empty() ? "\n" : options_.sample_prompt,
            static_cast<uint64_t>(state_.step));
        gpt::append_sample(samples_file(), state_.step, text);
    }
    void write(const std::string& line) {
        if (!ranks_.first() || signal_ == SIGPIPE) return;
        try {
            progress_.above([&] {
                out_.write(line);
                out_.flush();
            });
        } catch (const Error&) {
            pollfd closed = {STDOUT_FILENO, POLLOUT, 0};
            if (::poll(&closed, 1, 0) != 1 || (closed.revents & POLLERR) == 0) throw;
            signal_ = SIGPIPE;  // the reader of stdout has gone
        }
    }

    gpt::TrainOptions options_;
    Console& console_;
    Progress progress_;
    ByteWriter out_;
    Context ctx_;
    gpt::Grid grid_;
    Ranks& ranks_;  // all of them
    Dtype matrices_;
    gpt::RunFolder folder_;
    gpt::Start start_;
    std::optional<gpt::TokenWindows> train_, val_;
    std::optional<gpt::HellaSwag> hellaswag_;
    std::optional<gpt::Trainer> trainer_;
    std::optional<gpt::EventFile> events_;
    gpt::RunState state_;
    int64_t saved_ = -1;
    int signal_ = 0, stop_signal_ = 0;  // that this process has seen; that ends the run
};

void run(const gpt::TrainOptions& options, Console& console) {
    options.check();
    std::signal(SIGPIPE, SIG_IGN);
    hold_ending_signals();
    gpt::with_links(options, console, [&](std::unique_ptr<Links> links) {
        Run(options, console, std::move(links))();
    });
}

}  // namespace

int main(int argc, char** argv) {
    return tool_main<gpt::TrainOptions>({.name = "gpt-train",
                                         .summary = kSummary,
                                         .description = kDescription,
                                         .shows_progress = true},
                                        argc, argv, run);
}
