#include "gpt/eval/eval_task.h"

#include <cmath>

#include "core/error.h"
#include "gpt/decoder/model.h"
#include "gpt/eval/divergence.h"
#include "gpt/eval/questions.h"
#include "gpt/eval/windows.h"
#include "gpt/families/config.h"

namespace hark::gpt {
namespace {

// Rows that are gathered before they are computed.
constexpr int64_t kRowsAtOnce = 4096;

Measure counted(const char* name, int64_t n) {
    return {name, static_cast<double>(n), std::nullopt, true};
}

// Measures of what is not a number would be written as if they were results.
void require_finite(double loss) {
    require(std::isfinite(loss), "the model's losses are not finite (got ", loss,
            "): its weights, or --dtype, do not fit");
}

// Lines {"text"}: how likely the model finds them.
class PerplexityTask : public EvalTask {
  public:
    explicit PerplexityTask(const EvalModels& models)
        : models_(models), prefix_(prefix_token(models.tokenizer)) {}

    void add(const nlohmann::json& line) override {
        const auto found = line.find("text");
        require(found != line.end() && found->is_string(), "expected a text named text, found ",
                found == line.end() ? "none" : found->type_name());
        const auto& text = found->get_ref<const std::string&>();
        const auto ids = models_.tokenizer.encode(text, {.parse_specials = true});
        add_windows(rows_, ids, prefix_, models_.positions);
        ++texts_;
        words_ += count_words(text);
        bytes_ += std::ssize(text);
    }
    void compute_if_full() override {
        if (rows_.size() >= kRowsAtOnce) compute();
    }
    void finish() override {
        compute();
        require(texts_ == 0 || sum_.loss.count() > 0, "the texts have no tokens");
        require_finite(sum_.loss.value());
        require_finite(sum_.divergence.value());
    }
    int64_t count() const override { return texts_; }
    std::vector<Measure> measures() const override {
        const Mean& loss = sum_.loss;
        const auto words = static_cast<double>(words_), bytes = static_cast<double>(bytes_);
        std::vector<Measure> all = {counted("texts", texts_),
                                    counted("tokens", loss.count()),
                                    counted("words", words_),
                                    counted("bytes", bytes_),
                                    {"loss", loss.value(), loss.standard_error()},
                                    perplexity("perplexity", loss),
                                    {"word_perplexity", std::exp(loss.sum() / words)},
                                    {"byte_perplexity", std::exp(loss.sum() / bytes)},
                                    {"bits_per_byte", loss.sum() / bytes / std::log(2.0)}};
        if (!models_.reference) return all;
        all.push_back(perplexity("reference_perplexity", sum_.reference_loss));
        all.push_back({"kl_divergence", sum_.divergence.value(), sum_.divergence.standard_error()});
        all.push_back({"kl_divergence_max", sum_.largest});
        all.push_back({"changed_top_1", sum_.changed.value(), sum_.changed.standard_error()});
        return all;
    }

  private:
    // The error of exp(loss) to first order.
    static Measure perplexity(const char* name, const Mean& loss) {
        const double value = std::exp(loss.value());
        return {name, value, value * loss.standard_error()};
    }
    void compute() {
        if (rows_.size() == 0) return;
        if (models_.reference) {
            add_divergences();
        } else {
            const std::vector<float> losses = models_.model.losses(rows_);
            for (size_t row = 0; row < losses.size(); ++row)
                if (rows_.targets[row] >= 0) sum_.loss.add(losses[row]);
        }
        rows_ = {};
    }
    // The states of all windows of a long text would take more memory than the models.
    void add_divergences() {
        for (int64_t begin = 0, end = 0; begin < rows_.size(); begin = end) {
            while (end < rows_.size() && end - begin < kRowsAtOnce)
                end = rows_.end[static_cast<size_t>(end)];
            add_divergence(models_.ctx, models_.model, *models_.reference, rows_.part(begin, end),
                           sum_);
        }
    }

    EvalModels models_;
    int32_t prefix_;
    PackedRows rows_;  // not yet computed
    int64_t texts_ = 0, words_ = 0, bytes_ = 0;
    Divergence sum_;
};

// Questions: which choice the model finds the likeliest.
class ChoiceTask : public EvalTask {
  public:
    ChoiceTask(const std::string& name, const EvalModels& models) : name_(name), models_(models) {}

    void add(const nlohmann::json& line) override {
        questions_.push_back(
            encode_question(models_.tokenizer, read_question(name_, line), models_.positions));
        ++count_;
        rows_ += questions_.back().rows();
    }
    void compute_if_full() override {
        if (rows_ >= kRowsAtOnce) compute();
    }
    void finish() override { compute(); }
    int64_t count() const override { return count_; }
    std::vector<Measure> measures() const override {
        return {counted("questions", count_),
                {"acc", scores_.acc.value(), scores_.acc.standard_error()},
                {"acc_norm", scores_.acc_norm.value(), scores_.acc_norm.standard_error()}};
    }

  private:
    void compute() {
        const auto losses =
            choice_losses(questions_, kRowsAtOnce, models_.positions,
                          [&](PackedRows& rows) { return models_.model.losses(rows); });
        for (size_t i = 0; i < losses.size(); ++i) {
            for (const ChoiceLoss& loss : losses[i]) require_finite(loss.sum);
            scores_.add(questions_[i], losses[i]);
        }
        questions_.clear();
        rows_ = 0;
    }

    std::string name_;
    EvalModels models_;
    std::vector<ChoiceQuestion> questions_;  // not yet computed
    int64_t rows_ = 0, count_ = 0;
    ChoiceScores scores_;
};

}  // namespace

EvalModels eval_models(Context& ctx, const Tokenizer& tokenizer, ModelRows& model,
                       ModelRows* reference, int64_t context) {
    const int64_t own = model.model().config.n_positions;
    const EvalModels models{ctx, tokenizer, model, reference, context > 0 ? context : own};
    require(context <= own, "--context: expected at most the model's ", own, " positions, got ",
            context);
    if (reference) {
        const int64_t most = reference->model().config.n_positions;
        require(models.positions <= most, "--against: expected windows of at most the original's ",
                most, " positions, got ", models.positions, "; give --context ", most);
    }
    for (const ModelRows* rows : {&model, reference}) {
        if (!rows) continue;
        const DecoderConfig& config = rows->model().config;
        require(tokenizer.vocab_size() <= config.n_vocab, "the tokenizer has ",
                tokenizer.vocab_size(), " tokens, a model only ", config.n_vocab);
    }
    return models;
}

std::unique_ptr<EvalTask> make_eval_task(const std::string& name, const EvalModels& models) {
    if (name == "perplexity") return std::make_unique<PerplexityTask>(models);
    return std::make_unique<ChoiceTask>(name, models);
}

}  // namespace hark::gpt
