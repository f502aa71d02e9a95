// whisper-eval: transcripts as JSON lines -> word and character error rates against references.
#include <unistd.h>

#include <chrono>

#include "core/cli.h"
#include "core/io.h"
#include "text/error_report.h"
#include "text/normalizer.h"
#include "text/transcripts.h"
#include "text/word_errors.h"

using namespace hark;

namespace {

constexpr const char* kSummary =
    "Counts the word and character errors of transcripts against their references.";
constexpr const char* kDescription =
    "stdin and --reference FILE are lines of JSON with a `source` and a `text`, as\n"
    "whisper-transcribe --format jsonl writes them; the texts of one source are joined. A source\n"
    "is found by its name, or else by its file name without folder and ending, where that is\n"
    "unique. A recording that is missing counts as all deleted. The rate of several recordings\n"
    "is the sum of their errors / the sum of their words.";

struct Options {
    std::string reference;
    std::string normalizer = "english", format = "text";
    bool differences = false;
    BasicNormalizerOptions basic;

    void flags(Flags& flags) {
        flags.add_name("reference", reference,
                       "FILE what was said: lines of {\"source\", \"text\"}");
        flags.add("normalize", normalizer, {"english", "basic", "none"},
                  "Whisper's normaliser for English, the one for other languages, or none");
        flags.add_switch("remove-diacritics", basic.remove_diacritics,
                         "with --normalize basic: letters without their marks");
        flags.add_switch("split-letters", basic.split_letters,
                         "with --normalize basic: every letter is a word, for languages written "
                         "without spaces");
        flags.add("format", format, error_report_formats(), "of the report");
        flags.add_switch("differences", differences,
                         "the aligned words too (text: the lines that differ)");
    }

    void check() const {
        require_usage(!reference.empty(), "expected --reference FILE: what was said");
        require_usage(normalizer == "basic" || (!basic.remove_diacritics && !basic.split_letters),
                      "--remove-diacritics and --split-letters need --normalize basic");
        require_usage(!differences || format != "tsv",
                      "--differences: expected --format text or jsonl, found tsv");
        require_piped_stdin("transcripts as JSON lines (whisper-transcribe --format jsonl)");
    }

    std::string normalize(const std::string& text) const {
        return normalizer == "english" ? normalize_english(text)
               : normalizer == "basic" ? normalize_basic(text, basic)
                                       : text;
    }
};

std::string all_of(ByteReader& in) {
    std::string text;
    char piece[1 << 16];
    while (const size_t got = in.read_some(piece, sizeof piece)) text.append(piece, got);
    return text;
}

void run(const Options& options, Console& console) {
    options.check();
    const std::vector<Transcript> references = read_references(options.reference);
    ByteReader in(STDIN_FILENO, "stdin");
    std::vector<std::string> problems;
    const std::vector<Transcript> hypotheses = parse_transcripts(all_of(in), in.name(), problems);
    for (const std::string& problem : problems) console.error(problem);
    for (const Transcript& hypothesis : hypotheses)
        if (!hypothesis.error.empty()) console.error(hypothesis.name() + ": " + hypothesis.error);

    ByteWriter out(STDOUT_FILENO, "stdout");
    const auto report = make_error_report(options.format, options.differences,
                                          [&](const std::string& text) { out.write(text); });
    const TranscriptPairs pairs = pair_transcripts(references, hypotheses);
    ErrorCounts sum;
    for (size_t i = 0; i < references.size(); ++i) {
        const Transcript& reference = references[i];
        const Transcript* hypothesis = pairs.hypotheses[i];
        const auto begin = std::chrono::steady_clock::now();
        const Comparison comparison =
            compare_words(options.normalize(reference.text),
                          hypothesis ? options.normalize(hypothesis->text) : "");
        const std::chrono::duration<double, std::milli> took =
            std::chrono::steady_clock::now() - begin;
        const int64_t words = comparison.counts.reference_words();
        console.stage(reference.name(), concat(words, " words"), took.count());
        // Of a recording in which nothing is said there are no segments to be written.
        if (!hypothesis && words > 0)
            console.error(concat(reference.name(), ": expected a transcript, found none: its ",
                                 words, " words count as deleted"));
        report->recording(reference.source, reference.channel, comparison);
        sum += comparison.counts;
    }
    report->total(sum, static_cast<int64_t>(references.size()));
    for (const Transcript* extra : pairs.extra)
        console.error(extra->name() + ": expected a reference of this name, found none, or " +
                      "several that could be meant: it is not counted");
    out.flush();
}

}  // namespace

int main(int argc, char** argv) {
    return tool_main<Options>(
        {.name = "whisper-eval", .summary = kSummary, .description = kDescription}, argc, argv,
        run);
}
