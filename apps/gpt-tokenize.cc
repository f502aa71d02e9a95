// gpt-tokenize: text -> token files in llm.c's format, and back; trains tokenizers too.
//
//   files -> DocumentReaders -> blocks -> BlockEncoder (threads) -> ids -> TokenSink
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "core/models.h"
#include "text/decode_tokens.h"
#include "text/encode_blocks.h"
#include "text/token_output.h"
#include "text/tokenizer_training.h"

using namespace hark;

namespace {

constexpr const char* kSummary = "Turns text into token files in llm.c's format, and back.";
constexpr const char* kDescription =
    R"(gpt-train reads these files; --decode writes their text again.
A file, or all of stdin, is one document; --split-documents and --jsonl find several in it.
In front of every document stands the end-of-text token; empty documents are left out. Ids take
16 bits each, or 32 where the vocabulary has more than 65,536 tokens. --format ids writes them
as text, a line a document and without end-of-text. Bytes that are no UTF-8 become U+FFFD.
With --train-vocab it trains a tokenizer on the text instead.)";

struct Options {
    std::string model, vocab;
    std::vector<std::string> files;
    bool decode = false, no_eot = false;
    int64_t jobs = std::clamp<int64_t>(std::thread::hardware_concurrency(), 1, 64);
    DocumentOptions documents;
    TokenOutputOptions output;
    TrainingOptions training;

    void flags(Flags& flags) {
        flags.positional("FILE...", files,
                         "text, or with --decode token files; none or - is stdin");
        flags.add_name(
            "model", model,
            "NAME|DIR|FILE the tokenizer of `demo`, or of another model by its name; with a '/' in "
            "it, of the model in that directory or GGUF file");
        flags.add_name(
            "vocab", vocab,
            "FILE|DIR a tokenizer alone: tokenizer.json or its directory, a tiktoken rank file "
            "(with <|endoftext|> behind its ranks), llm.c's tokenizer.bin, a sentencepiece model");
        flags.add_switch("decode", decode,
                         "write the text of token files, or with --format ids of "
                         "ids; <|endoftext|> between documents");
        flags.add_switch("no-eot", no_eot, "no end-of-text token in front of documents");
        documents.flags(flags);
        output.flags(flags);
        training.flags(flags);
        flags.add("jobs", jobs, "N threads; the output does not depend on it", 1, 256);
    }

    void check() const {
        const bool ids = output.format == "ids";
        require_usage(model.empty() || vocab.empty(), "--model and --vocab exclude each other");
        require_usage(!no_eot || !ids, "--no-eot: --format ids has no end-of-text tokens");
        documents.check();
        training.check();
        if (std::count(files.begin(), files.end(), "-") > 1) throw UsageError("expected - once");
        if (decode)
            require_usage(!training.on() && !no_eot && !documents.split && !documents.jsonl &&
                              output.directory.empty() && output.val.empty(),
                          "--decode goes with --model, --vocab and --format only");
        if (training.on()) {
            require_usage(model.empty() && vocab.empty() && !ids && !no_eot && output.val.empty(),
                          "--train-vocab makes a tokenizer and no tokens: leave out --model, "
                          "--vocab, --format, --no-eot and --val");
            require_usage(!output.directory.empty(), "--train-vocab needs --output-dir DIR");
        }
        if (!decode && !training.on()) output.check();
        if (files.empty() || std::count(files.begin(), files.end(), "-") > 0)
            require_piped_stdin(decode ? "tokens" : "text");
    }
};

void decode(const Options& options, const Tokenizer& tokenizer, Console& console) {
    ByteWriter out(STDOUT_FILENO, "stdout");
    TokenDecoder decoder(tokenizer, [&](std::string_view text) { out.write(text); });
    const auto files = options.files.empty() ? std::vector<std::string>{"-"} : options.files;
    for (const std::string& file : files) {
        try {
            if (options.output.format == "ids")
                decode_ids_text(file, decoder);
            else
                decode_token_file(file, decoder);
        } catch (const Error& wrong) {
            console.error(wrong.what());
        }
    }
    decoder.finish();
    out.flush();
}

void encode(const Options& options, const Tokenizer& tokenizer, Console& console) {
    EncodeBlocksOptions how{{}, options.documents.key, static_cast<int>(options.jobs)};
    if (!options.no_eot && options.output.format != "ids") {
        how.separator = tokenizer.end_of_text();
        require(how.separator.has_value(), "the tokenizer has no end-of-text token: looked for ",
                "<|endoftext|> and </s>; --no-eot does without");
    }
    const auto begin = std::chrono::steady_clock::now();
    DocumentReaders documents(
        options.files, options.documents,
        [&](std::string_view text) { return tokenizer.last_cut(text); },
        [&](const std::string& problem) { console.error(problem); },
        [&](const std::string& warning) { console.warning(warning); });
    BlockEncoder blocks(tokenizer, how, [&] { return documents.next(); });
    const auto sink = make_token_sink(options.output, tokenizer.vocab_size(), console);
    size_t bytes = 0, tokens = 0;
    while (const auto block = blocks.next()) {
        for (const std::string& problem : block->problems) console.error(problem);
        size_t at = 0;
        for (const size_t end : block->ends) {
            sink->write(std::span(block->ids).subspan(at, end - at));
            sink->end_document();
            at = end;
        }
        sink->write(std::span(block->ids).subspan(at));
        bytes += block->bytes;
        tokens += block->ids.size();
    }
    sink->finish();
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - begin;
    console.stage("tokenize", concat(bytes, " bytes ", tokens, " tokens"), took.count());
}

void run(const Options& options, Console& console) {
    options.check();
    if (options.training.on())
        return train_tokenizer(options.training, options.documents, options.files,
                               options.output.directory, console);
    const std::filesystem::path path = options.vocab.empty() ? find_model(options.model, "gpt")
                                                             : std::filesystem::path(options.vocab);
    const auto tokenizer = Tokenizer::load(path);
    options.decode ? decode(options, *tokenizer, console) : encode(options, *tokenizer, console);
}

}  // namespace

int main(int argc, char** argv) {
    return tool_main<Options>(
        {.name = "gpt-tokenize", .summary = kSummary, .description = kDescription}, argc, argv,
        run);
}
