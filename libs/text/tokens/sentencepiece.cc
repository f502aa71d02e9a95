#include "text/tokens/sentencepiece.h"

#include <sentencepiece_processor.h>
#include <sentencepiece_trainer.h>

#include <unordered_map>

#include "core/error.h"
#include "text/tokens/sentencepiece_check.h"
#include "text/utf8.h"

namespace hark {
namespace {

using sentencepiece::SentencePieceProcessor;

class SentencepieceTokenizer : public Tokenizer {
  public:
    SentencepieceTokenizer(std::string_view model, const std::string& where) {
        require(loads(model), where, ": expected tokenizer.json, a tiktoken rank file or a ",
                "sentencepiece model, found none of them");
    }

    int32_t vocab_size() const override { return processor_.GetPieceSize(); }
    std::optional<int32_t> end_of_text() const override {
        const int id = processor_.PieceToId("<|endoftext|>");
        if (id >= 0 && !processor_.IsUnknown(id)) return id;
        const int end = processor_.eos_id();
        return end >= 0 ? std::optional<int32_t>(end) : std::nullopt;
    }
    size_t last_cut(std::string_view) const override { return 0; }
    std::unique_ptr<Encoder> encoder() const override {
        return std::make_unique<Encoding>(processor_);
    }
    std::unique_ptr<Decoder> decoder() const override {
        return std::make_unique<Decoding>(processor_);
    }

  private:
    // The library has errors that it returns and others that it throws.
    bool loads(std::string_view model) {
        try {
            return has_sound_tables(model) && processor_.LoadFromSerializedProto(model).ok();
        } catch (const std::bad_alloc&) {
            throw;
        } catch (const std::exception&) {
            return false;
        }
    }

    class Encoding : public Encoder {
      public:
        explicit Encoding(const SentencePieceProcessor& processor) : processor_(processor) {}
        void encode(std::string_view part, std::vector<int32_t>& ids, bool begins) override {
            require(begins, "a text for sentencepiece comes in one part");
            const std::string text = replace_invalid(part);
            const auto status = processor_.Encode(text, &found_);
            require(status.ok(), "sentencepiece cannot encode this text: ", status.ToString());
            ids.insert(ids.end(), found_.begin(), found_.end());
        }

      private:
        const SentencePieceProcessor& processor_;
        std::vector<int> found_;
    };

    // The library drops the space that it put before a text, so it must see where one begins.
    class Decoding : public Decoder {
      public:
        explicit Decoding(const SentencePieceProcessor& processor) : processor_(processor) {}
        std::string push(std::span<const int32_t> ids) override {
            for (int32_t id : ids)
                require(id >= 0 && id < processor_.GetPieceSize(), "token id ", id,
                        " is not in the vocabulary of ", processor_.GetPieceSize());
            held_.insert(held_.end(), ids.begin(), ids.end());
            return {};
        }
        std::string finish() override {
            std::string text;
            const auto status = processor_.Decode(held_, &text);
            held_.clear();
            require(status.ok(), "sentencepiece cannot decode these ids: ", status.ToString());
            return text;
        }

      private:
        const SentencePieceProcessor& processor_;
        std::vector<int> held_;
    };

    SentencePieceProcessor processor_;
};

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

std::unique_ptr<Tokenizer> load_sentencepiece(std::string_view model, const std::string& where) {
    return std::make_unique<SentencepieceTokenizer>(model, where);
}

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
