// gpt-train: token files -> a GPT-2 model, and a line of metrics a step on stdout.
//
//   token files -> TokenWindows -> TrainingOrder -> Trainer -> RunFolder
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <optional>

#include "core/io.h"
#include "core/models.h"
#include "core/progress.h"
#include "gpt/event_file.h"
#include "gpt/hellaswag.h"
#include "gpt/llmc_file.h"
#include "gpt/run_folder.h"
#include "gpt/samples.h"
#include "gpt/trainer.h"
#include "kernels/backend.h"
#include "text/bpe.h"

using namespace hark;
using Clock = std::chrono::steady_clock;

namespace {

constexpr const char* kSummary =
    "Trains a GPT-2 model on token files, as gpt-tokenize writes them.\n"
    "Every step is a line on stdout: step, loss, validation loss (where there is one), learning "
    "rate,\n"
    "norm of the gradients, milliseconds, tokens a second, the fraction of the speed of a large\n"
    "product, and the share of --hellaswag's questions answered rightly (with a validation).\n"
    "--out is a directory that transformers and gpt-generate --model read. Where it holds a "
    "checkpoint\n"
    "the run goes on from there, to the same bits; SIGTERM and a closed pipe save one first.\n"
    "Presets for --config lie in presets/gpt-train, installed in share/hark/presets.";

struct Options : gpt::TrainOptions {
    int64_t vocab_size = 0, threads = 0;
    int64_t sample_every = 0, sample_tokens = 100;
    std::string sample_prompt, hellaswag, tensorboard, export_llmc, export_dtype = "f32";

    void flags(Flags& flags) {
        gpt::TrainOptions::flags(flags);
        flags.add("vocab-size", vocab_size, "N tokens of a new model without --tokenizer", 0,
                  1 << 24);
        flags.add("sample-every", sample_every,
                  "N steps from one text in OUT/samples.txt to the next; 0: none", 0, 1 << 30);
        flags.add("sample-tokens", sample_tokens, "N tokens of such a text, at most", 1, 1 << 20);
        flags.add("sample-prompt", sample_prompt,
                  "TEXT that it goes on from; without it a line's end");
        flags.add("hellaswag", hellaswag,
                  "FILE of questions in llm.c's format, answered with every validation");
        flags.add("tensorboard", tensorboard, "DIR for an event file that TensorBoard shows");
        flags.add("export-llmc", export_llmc,
                  "FILE that the whole run's model is also written to, in llm.c's format");
        flags.add("export-dtype", export_dtype, {"f32", "bf16"}, "TYPE of --export-llmc's values");
        flags.add("threads", threads, "N CPU threads; 0: all cores", 0, 1024);
    }
};

volatile std::sig_atomic_t stop_signal = 0;

double milliseconds_since(Clock::time_point begin) {
    return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

// Operations a second in a product of 1024 cubed: what a step's speed is compared with.
double measured_limit(Context& ctx) {
    const Arena::Scope scope(ctx.arena);
    constexpr int64_t kSize = 1024;
    Tensor x = ctx.arena.tensor(Dtype::f32, {kSize, kSize}), w = x, y = x;
    for (Tensor* t : {&w, &y}) *t = ctx.arena.tensor(Dtype::f32, {kSize, kSize});
    for (Tensor* t : {&x, &w})
        for (int64_t i = 0; i < t->size(); ++i)
            t->as<float>()[i] = 1e-3f * static_cast<float>(i % 97);
    double best = 0;
    for (int i = 0; i < 4; ++i) {
        const Clock::time_point begin = Clock::now();
        linear(ctx, y, x, {w});
        best = std::max(best, 2e3 * kSize * kSize * kSize / milliseconds_since(begin));
    }
    return best;
}

// Where a run's model comes from: its own folder, --model, or --tokenizer and a shape.
struct Start {
    gpt::Config config;
    std::filesystem::path directory;  // that has its tokenizer, or none
    std::optional<Bpe> bpe;
    std::optional<int32_t> end_of_text;
};

Start start_of(const Options& options, const gpt::RunFolder& folder) {
    Start start;
    if (folder.newest() || (!options.model.empty() && !options.from_llmc())) {
        start.directory = folder.newest() ? folder.path() : find_model(options.model, "gpt");
        start.config = gpt::load_config(start.directory);
    } else if (options.from_llmc()) {
        start.directory = options.tokenizer;
        start.config = gpt::LlmcFile(options.model).config();
    } else {
        start.directory = options.tokenizer;
        int64_t n_vocab = options.vocab_size;
        require_usage(options.tokenizer.empty() != (n_vocab == 0),
                      "a new model needs --tokenizer or --vocab-size");
        if (n_vocab == 0) n_vocab = Bpe::from_directory(start.directory).vocab_size();
        start.config = options.shape.config(n_vocab, options.length);
    }
    const bool asked_for = !start.directory.empty() && start.directory == options.tokenizer;
    if (!asked_for && !std::filesystem::exists(start.directory / "tokenizer.json") &&
        !std::filesystem::exists(start.directory / "vocab.json"))
        return start;
    const Bpe& bpe = start.bpe.emplace(Bpe::from_directory(start.directory));
    require(bpe.vocab_size() <= start.config.n_vocab, start.directory.string(),
            ": the tokenizer has ", bpe.vocab_size(), " tokens, the model only ",
            start.config.n_vocab);
    start.end_of_text = bpe.special("<|endoftext|>");
    if (start.end_of_text && start.config.eos_token_ids.empty())
        start.config.eos_token_ids = {*start.end_of_text};
    return start;
}

std::string format(const char* pattern, double value) {
    char text[64];
    std::snprintf(text, sizeof text, pattern, value);
    return text;
}

struct Closing {
    int fd;
    ~Closing() { ::close(fd); }
};

// What is said of a step.
struct Metrics {
    static constexpr const char* kHeading =
        "step\tloss\tval_loss\trate\tnorm\tms\ttokens/s\tfraction\thellaswag\n";

    int64_t step = 0;
    gpt::StepResult result;
    double ms = 0, tokens_per_second = 0, fraction = 0;
    std::optional<double> val_loss, hellaswag;

    std::string line() const {
        return concat(step, format("\t%.6f\t", result.loss),
                      val_loss ? format("%.6f", *val_loss) : "", format("\t%.6g", result.rate),
                      format("\t%.4f", result.norm), format("\t%.1f", ms),
                      format("\t%.0f", tokens_per_second), format("\t%.3f\t", fraction),
                      hellaswag ? format("%.4f", *hellaswag) : "", "\n");
    }
    std::vector<gpt::EventFile::Scalar> scalars() const {
        std::vector<gpt::EventFile::Scalar> all = {{"loss", result.loss},
                                                   {"learning_rate", result.rate},
                                                   {"norm", result.norm},
                                                   {"tokens_per_second", tokens_per_second}};
        if (val_loss) all.emplace_back("val_loss", *val_loss);
        if (hellaswag) all.emplace_back("hellaswag", *hellaswag);
        return all;
    }
};

class Run {
  public:
    Run(const Options& options, Console& console)
        : options_(options),
          console_(console),
          progress_(console),
          out_(STDOUT_FILENO, "stdout"),
          ctx_(make_cpu_context(options.threads)),
          folder_(options.out),
          start_(start_of(options, folder_)) {
        if (options_.length == 0) options_.length = start_.config.n_positions;
        require_usage(options_.length <= start_.config.n_positions, "--length: expected at most ",
                      start_.config.n_positions, ", the model's context, found ", options_.length);
        require(!options_.mask_documents || start_.end_of_text,
                "--mask-documents: the tokenizer has no <|endoftext|> between documents");
        require(options_.sample_every == 0 || start_.bpe,
                "--sample-every: the run has no tokenizer to write text with");
        if (!options_.export_llmc.empty()) gpt::check_llmc(start_.config, options_.export_llmc);
        const int64_t n_vocab = start_.config.n_vocab;
        train_.emplace(options_.train, options_.length, n_vocab);
        if (!options_.val.empty()) val_.emplace(options_.val, options_.length, n_vocab);
        if (!options_.hellaswag.empty())
            hellaswag_.emplace(std::filesystem::path(options_.hellaswag), n_vocab,
                               start_.config.n_positions);
        trainer_.emplace(ctx_, start_.config, options_,
                         options_.mask_documents ? *start_.end_of_text : -1);
        state_ = {0, options_.identity(), train_->description(), {}};
        begin();
        if (!options_.tensorboard.empty() && state_.step < options_.steps)
            events_.emplace(options_.tensorboard, state_.step + 1);
    }

    void operator()() {
        const double limit = measured_limit(ctx_);
        const gpt::TrainingOrder order(*train_, static_cast<uint64_t>(options_.seed));
        if (state_.step == 0) write(Metrics::kHeading);
        const double tokens = static_cast<double>(options_.sequences_a_step() * options_.length);
        while (state_.step < options_.steps && stop_signal == 0) {
            const Clock::time_point begin = Clock::now();
            Metrics metrics = {state_.step + 1, trainer_->step(state_.step + 1, order)};
            ++state_.step;
            if (metrics.result.skipped)
                console_.warning(concat("step ", state_.step, " is skipped as an outlier: loss ",
                                        metrics.result.loss, ", norm of the gradients ",
                                        metrics.result.norm));
            metrics.ms = milliseconds_since(begin);
            metrics.tokens_per_second = 1e3 * tokens / metrics.ms;
            metrics.fraction = 1e3 * trainer_->flops_a_step() / metrics.ms / limit;
            judge(metrics);
            progress_.show(concat("step ", state_.step, " of ", options_.steps,
                                  format(", loss %.3f", metrics.result.loss),
                                  format(", %.0f tokens/s", metrics.tokens_per_second)));
            if (!report(metrics)) break;
            if (options_.sample_every > 0 && state_.step % options_.sample_every == 0) sample();
            if (state_.step == options_.steps || state_.step % options_.save_every == 0) save();
        }
        if (saved_ != state_.step) save();
        if (state_.step == options_.steps && !options_.export_llmc.empty())
            gpt::write_llmc(options_.export_llmc, start_.config, trainer_->layout(),
                            trainer_->parameters(),
                            options_.export_dtype == "f32" ? Dtype::f32 : Dtype::bf16);
        if (stop_signal == 0) return;
        std::signal(stop_signal, SIG_DFL);  // ended as the signal would have ended it
        std::raise(stop_signal);
    }

  private:
    void begin() {
        const gpt::ParameterLayout& layout = trainer_->layout();
        if (folder_.newest()) {
            state_ =
                folder_.load(layout, state_, trainer_->parameters(), trainer_->m(), trainer_->v());
            trainer_->outliers() = state_.outliers;
            saved_ = state_.step;
            return;
        }
        folder_.describe(start_.config, start_.directory);
        if (options_.model.empty())
            return layout.initialize(trainer_->parameters(), static_cast<uint64_t>(options_.seed));
        std::unique_ptr<TensorSource> source;
        if (options_.from_llmc())
            source = std::make_unique<gpt::LlmcFile>(options_.model);
        else
            source = std::make_unique<SafetensorsDirectory>(start_.directory, "transformer.");
        layout.read(trainer_->parameters(), *source);
    }
    // Validation and questions, where it is the step's turn.
    void judge(Metrics& metrics) {
        if (state_.step != options_.steps &&
            (options_.val_every == 0 || state_.step % options_.val_every != 0))
            return;
        if (val_) metrics.val_loss = trainer_->validate(*val_, options_.val_tokens);
        if (!hellaswag_) return;
        const gpt::ModelTensors weights = trainer_->layout().views(trainer_->parameters());
        metrics.hellaswag = hellaswag_->accuracy(
            hellaswag_->losses(ctx_, start_.config, weights, options_.batch * options_.length));
    }
    void save() {
        state_.outliers = trainer_->outliers();
        folder_.save(trainer_->layout(), state_, trainer_->parameters(), trainer_->m(),
                     trainer_->v(), options_.keep);
        saved_ = state_.step;
    }
    void sample() {
        gpt::GenerateOptions generate;
        generate.max_tokens = options_.sample_tokens;
        generate.seed = options_.seed;
        const std::string text = gpt::sample_text(
            ctx_, start_.config, trainer_->layout(), trainer_->parameters(), *start_.bpe, generate,
            options_.sample_prompt.empty() ? "\n" : options_.sample_prompt,
            static_cast<uint64_t>(state_.step));
        const std::string path = (folder_.path() / "samples.txt").string();
        const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
        require(fd >= 0, path, ": cannot open: ", std::strerror(errno));
        const Closing closing{fd};
        ByteWriter out(fd, path);
        out.write(concat("step ", state_.step, ":\n", text, "\n\n"));
        out.flush();
    }
    // False where the reader of stdout has gone.
    bool report(const Metrics& metrics) {
        try {
            if (events_) events_->add(metrics.step, metrics.scalars());
        } catch (const Error&) {
            save();
            throw;
        }
        return write(metrics.line());
    }
    bool write(const std::string& line) {
        try {
            out_.write(line);
            out_.flush();
            return true;
        } catch (const Error&) {
            save();
            pollfd closed = {STDOUT_FILENO, POLLOUT, 0};
            if (::poll(&closed, 1, 0) != 1 || (closed.revents & POLLERR) == 0) throw;
            stop_signal = SIGPIPE;
            return false;
        }
    }

    Options options_;
    Console& console_;
    Progress progress_;
    ByteWriter out_;
    Context ctx_;
    gpt::RunFolder folder_;
    Start start_;
    std::optional<gpt::TokenWindows> train_, val_;
    std::optional<gpt::HellaSwag> hellaswag_;
    std::optional<gpt::Trainer> trainer_;
    std::optional<gpt::EventFile> events_;
    gpt::RunState state_;
    int64_t saved_ = -1;
};

void run(const Options& options, Console& console) {
    options.check();
    std::signal(SIGPIPE, SIG_IGN);
    for (const int signal : {SIGTERM, SIGINT})
        std::signal(signal, [](int received) { stop_signal = received; });
    Run(options, console)();
}

}  // namespace

int main(int argc, char** argv) {
    return tool_main<Options>("gpt-train", kSummary, argc, argv, run);
}
