#include "text/tokens/sentencepiece.h"

#include <sentencepiece_trainer.h>

#include <unordered_map>

#include "core/error.h"

namespace hark {
namespace {

// The trainer's view of the sentences.
class Sentences : public sentencepiece::SentenceIterator {
  public:
    explicit Sentences(const std::function<std::optional<std::string>()>& next)
        : next_(next), sentence_(next_()) {}
    bool done() const override { return !sentence_; }
    void Next() override { sentence_ = next_(); }
    const std::string& value() const override { return *sentence_; }
    sentencepiece::util::Status status() const override { return {}; }

  private:
    const std::function<std::optional<std::string>()>& next_;
    std::optional<std::string> sentence_;
};

}  // namespace

std::string train_sentencepiece(const SentencepieceTraining& training,
                                const std::function<std::optional<std::string>()>& next) {
    const std::unordered_map<std::string, std::string> settings = {
        {"model_type", training.kind},
        {"vocab_size", std::to_string(training.vocab_size)},
        {"normalization_rule_name", "identity"},
        {"remove_extra_whitespaces", "false"},
        {"byte_fallback", "true"},
        {"character_coverage", "1.0"},
        {"max_sentence_length", "1000000"},  // bytes; the library drops longer lines
        // Sums are made a thread at a time: their number must not depend on the machine.
        {"num_threads", "16"},
        {"minloglevel", "2"}};
    Sentences sentences(next);
    std::string model;
    const auto status = sentencepiece::SentencePieceTrainer::Train(settings, &sentences, &model);
    require(status.ok(), "sentencepiece cannot train this vocabulary: ", status.ToString());
    return model;
}

}  // namespace hark
