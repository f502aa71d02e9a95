// bench constrain: the tokens that a constraint allows, per token of a text, on one core.
#include <time.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <utility>

#include "commands.h"
#include "core/cli/cli.h"
#include "gpt/answers/constraint.h"
#include "gpt/sampling/logit_filters.h"
#include "vocabulary.h"

namespace hark::bench {
namespace {

using gpt::ConstraintRequest;

// Of the thread's own time: other work of the machine does not count.
struct Clock {
    using duration = std::chrono::nanoseconds;
    static duration now() {
        timespec time{};
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
        return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
    }
};

struct Options {
    std::string model;
    int64_t vocabulary = 128000;

    void flags(Flags& flags) {
        flags.add("model", model, "PATH tokenizer, or tiktoken's rank file");
        flags.add("vocabulary", vocabulary, "N tokens: the file's, then pairs of them", 512,
                  1 << 20);
    }
};

struct Text {
    const char* name;
    ConstraintRequest request;
    std::string text;
};

std::vector<Text> texts() {
    using Kind = ConstraintRequest::Kind;
    const std::string schema = R"({"type": "object", "properties": {
        "title": {"type": "string"}, "year": {"type": "integer", "minimum": 1000, "maximum": 2999},
        "tags": {"type": "array", "items": {"type": "string"}, "maxItems": 50},
        "people": {"type": "array", "items": {"type": "object", "properties": {
            "name": {"type": "string", "maxLength": 100}, "email": {"type": "string",
            "format": "email"}, "score": {"type": "number", "minimum": 0, "maximum": 1}},
            "required": ["name", "score"]}}}, "required": ["title", "people"]})";
    std::string people;
    for (int i = 0; i < 20; ++i)
        people += concat(i ? ", " : "", R"({"name": "Emma Woodhouse of Hartfield )", i,
                         R"(", "email": "emma.w)", i, R"(@example.org", "score": 0.)", 10 + i, "}");
    const std::string answer =
        R"({"title": "A list of people, with marks", "year": 1816, "tags": ["novel", "england", )"
        R"("a longer tag of some words"], "people": [)" +
        people + "]}";
    std::string prose;
    for (int i = 0; i < 40; ++i) prose += "the quick brown fox, number 17, went home. ";
    std::vector<Text> all;  // g++ 12 wrongly warns of a list of them
    const auto add = [&](const char* name, Kind kind, std::string constraint, std::string text) {
        all.push_back({name, {kind, std::move(constraint)}, std::move(text)});
    };
    add("json", Kind::json, "", answer);
    add("json schema", Kind::schema, schema, answer);
    add("regex", Kind::regex, "([a-z]+|[0-9]{1,3}|[,.] )( ?([a-z]+|[0-9]{1,3}|[,.]))* ", prose);
    add("grammar", Kind::grammar,
        "root ::= sentence+\nsentence ::= word (\",\"? \" \" word)* \". \"\n"
        "word ::= letter+ | digit{1,4}\nletter ::= [a-z]\ndigit ::= [0-9]\n",
        prose);
    return all;
}

double microseconds(Clock::duration time) {
    return std::chrono::duration<double, std::micro>(time).count();
}

void row(const Text& text, const char* what, std::vector<double> times) {
    std::sort(times.begin(), times.end());
    double sum = 0;
    for (const double time : times) sum += time;
    const auto at = [&](double part) {
        return times[static_cast<size_t>(part * static_cast<double>(times.size() - 1))];
    };
    std::printf("%s\t%s\t%zu\t%.1f\t%.1f\t%.1f\t%.1f\n", text.name, what, times.size(),
                sum / static_cast<double>(times.size()), at(0.5), at(0.99), times.back());
    std::fflush(stdout);
}

// Microseconds per token: the state after the token and its mask; with `logits`, their filter too.
std::vector<double> run_text(TokenMasks& masks, std::span<const int32_t> tokens,
                             std::vector<float>* logits) {
    std::vector<double> times;
    TokenMasks::State state = masks.start();
    for (const int32_t token : tokens) {
        const auto begin = Clock::now();
        const auto mask = masks.mask(state, false);
        if (logits) gpt::keep_allowed(*logits, *mask);
        require(allows(*mask, token), "internal error: the text does not fit its constraint");
        state = masks.next(state, token);
        times.push_back(microseconds(Clock::now() - begin));
        if (logits) std::fill(logits->begin(), logits->end(), 1.0f);
    }
    return times;
}

void run(const Options& options, Console&) {
    require_usage(!options.model.empty(), "--model is required");
    const Tokenizer tokenizer = vocabulary_of(options.model, options.vocabulary);
    auto begin = Clock::now();
    gpt::Constraints constraints(tokenizer, {tokenizer.vocab_size() - 1}, nullptr);
    constraints.masks({ConstraintRequest::Kind::json, ""}, false);
    std::printf("# %d tokens; their trie and a constraint: %.0f us\n", tokenizer.vocab_size(),
                microseconds(Clock::now() - begin));
    std::printf("constraint\twhat\ttokens\tmean us\tmedian us\tp99 us\tmost us\n");
    std::vector<float> logits(static_cast<size_t>(tokenizer.vocab_size()), 1.0f);
    for (const Text& text : texts()) {
        begin = Clock::now();
        const auto masks = constraints.masks(text.request, false);
        row(text, "compile", {microseconds(Clock::now() - begin)});
        const std::vector<int32_t> tokens = tokenizer.encode(text.text);
        row(text, "first text", run_text(*masks, tokens, nullptr));
        row(text, "warm", run_text(*masks, tokens, nullptr));
        row(text, "warm, with the filter of logits", run_text(*masks, tokens, &logits));
    }
}

}  // namespace

int bench_constrain(int argc, char** argv) {
    const ToolHelp help = {.name = "bench constrain",
                           .summary = "masks of tokens of constrained answers, as TSV on stdout"};
    return tool_main<Options>(help, argc, argv, run);
}

}  // namespace hark::bench
