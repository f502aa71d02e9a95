// gpt-tokenize: text -> token files in llm.c's format, and back; trains tokenizers too.
//
//   files -> DocumentReaders -> blocks -> BlockEncoder (threads) -> ids -> TokenSink
#include <unistd.h>

#include <chrono>

#include "text/tokens/decode_tokens.h"
#include "text/tokens/tokenize_options.h"

using namespace hark;

namespace {

void decode(const TokenizeOptions& options, const Tokenizer& tokenizer, Console& console) {
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

void encode(const TokenizeOptions& options, const Tokenizer& tokenizer, Console& console) {
    const EncodeBlocksOptions how = options.encode_options(tokenizer);
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
    if (tokens == 0 && console.failed()) return;  // no input was read: no file of no tokens
    sink->finish();
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - begin;
    console.stage("tokenize", concat(bytes, " bytes ", tokens, " tokens"), took.count());
}

void run(const TokenizeOptions& options, Console& console) {
    options.check();
    if (options.training.on)
        return train_tokenizer(options.training, options.documents, options.files,
                               options.output.directory, console);
    const auto tokenizer = Tokenizer::load(options.tokenizer_path());
    options.decode ? decode(options, *tokenizer, console) : encode(options, *tokenizer, console);
}

constexpr ToolHelp kHelp = {
    .name = "gpt-tokenize",
    .summary = "Turns text into token files for gpt-train, and back. Trains tokenizers.",
    .description =
        R"(Token files are in llm.c's format: 16 bits per id, or 32 if the vocabulary has
more than 65,536 tokens. A file, or all of stdin, is one document;
--split-documents and --input-format jsonl find several in it. The end-of-text
token is written before each document. Empty documents are left out. Bytes that
are not UTF-8 become U+FFFD; a warning names the first of a file. A line of JSON
has 64 MiB at most.
--format ids writes the ids as text, one line per document, without end-of-text
tokens.)",
    .examples = R"(# Train a tokenizer of 4,096 tokens
gpt-tokenize --train-tokenizer --vocab-size 4095 -o tok *.txt
# Token files for gpt-train, every 40th block for validation
gpt-tokenize --tokenizer tok --val-output val.bin *.txt > train.bin
# Read a token file
gpt-tokenize --tokenizer tok --decode train.bin | head)",
    .is_measured = true,
};

}  // namespace

int main(int argc, char** argv) { return tool_main<TokenizeOptions>(kHelp, argc, argv, run); }
