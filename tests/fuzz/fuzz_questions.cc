// Questions of test sets as lines of JSON, as gpt-eval reads them.
#include <cstdlib>

#include "core/error.h"
#include "fuzz/target.h"
#include "gpt/eval/questions.h"
#include "support/byte_vocabulary.h"
#include "text/bpe.h"
#include "text/tokenizer.h"

using namespace hark;
using namespace hark::fuzz;

static std::vector<std::string> questions_seeds() {
    return {R"({"activity_label": "A", "ctx_a": "b [header] c [title] d", "ctx_b": "e [open",
                "endings": ["[x] y  z", "[a\nb]"], "label": "1"})",
            R"({"question": {"stem": "Which?", "choices": [{"text": "one", "label": "A"},
                {"text": "two", "label": "B"}]}, "answerKey": "B"})",
            R"({"question": "q", "choices": {"text": ["a", "b"], "label": ["1", "2"]},
                "answerKey": "2"})",
            R"({"question": " Q ", "choices": ["a", "b"], "answer": 1, "subject": "old_ships"})",
            R"({"context": "", "choices": ["a", "b"], "answer": 0})",
            R"({"context": "c ", "choices": ["a", "b", "c"], "answer": 2})"};
}

namespace {

void attempt_encoding(const gpt::TextQuestion& question) {
    static const Tokenizer tokenizer = [] {
        Bpe bpe = Bpe::parse_tiktoken(test::byte_vocabulary(), "ranks");
        bpe.add_special("<|endoftext|>", 256);
        return Tokenizer::from_bpe(bpe, "ranks");
    }();
    try {
        const gpt::ChoiceQuestion encoded = gpt::encode_question(tokenizer, question, 100);
        if (encoded.choices.size() != question.choices.size()) std::abort();
    } catch (const Error&) {
    }
}

}  // namespace

static int questions_input(const uint8_t* data, size_t size) {
    for (const std::string& task : gpt::question_tasks()) {
        try {
            const auto line = parse_json({reinterpret_cast<const char*>(data), size}, "fuzz");
            if (!line.is_object()) continue;
            const gpt::TextQuestion question = gpt::read_question(task, line);
            const auto count = static_cast<int64_t>(question.choices.size());
            attempt_encoding(question);
            if (count < 2 || question.label < 0 || question.label >= count) std::abort();
        } catch (const Error&) {
        }
    }
    return 0;
}

static const hark::fuzz::Target kQuestions{"questions", questions_seeds, questions_input};
