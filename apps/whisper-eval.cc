// whisper-eval: transcripts as JSON lines -> word and character error rates against references.
#include <unistd.h>

#include <chrono>

#include "core/cli.h"
#include "core/io.h"
#include "eval/error_report.h"
#include "eval/normalizer.h"
#include "eval/transcripts.h"
#include "eval/word_errors.h"

using namespace hark;

namespace {

struct Options {
    std::string reference;
    std::string normalizer = "english", format = "text";
    bool differences = false;
    BasicNormalizerOptions basic;

    void flags(Flags& flags) {
        flags.section("Input");
        flags.add_name("reference", reference, "FILE right texts: lines of {source, text}")
            .essential()
            .completes(Completes::file);
        flags.section("Comparison");
        flags
            .add("normalizer", normalizer, {"english", "basic", "none"},
                 "NAME normalizer of both texts")
            .essential()
            .details("english and basic are Whisper's; basic is for all other languages.");
        flags.add_switch("remove-diacritics", basic.remove_diacritics,
                         "basic: letters without their diacritics");
        flags.add_switch("split-letters", basic.split_letters, "basic: each letter is a word")
            .details("For languages that are written without spaces.");
        flags.section("Output");
        flags.add("format,f", format, error_report_formats(), "FORM format of the report")
            .essential()
            .own_variable();
        flags.add_switch("differences", differences, "show the aligned words that differ")
            .essential()
            .details("With --format text the lines that differ, with jsonl all words.");
    }

    void check() const {
        require_usage(!reference.empty(), "--reference FILE is required: the right texts");
        require_usage(normalizer == "basic" || (!basic.remove_diacritics && !basic.split_letters),
                      "--remove-diacritics and --split-letters need --normalizer basic");
        require_usage(!differences || format != "tsv",
                      "--differences needs --format text or jsonl (got tsv)");
        require_piped_stdin("transcripts as JSON lines",
                            "whisper-transcribe --format jsonl | whisper-eval --reference FILE");
    }

    std::string normalize(const std::string& text) const {
        return normalizer == "english" ? normalize_english(text)
               : normalizer == "basic" ? normalize_basic(text, basic)
                                       : text;
    }
};

constexpr size_t kMaxInputBytes = size_t{1} << 30;

std::string all_of(ByteReader& in) {
    std::string text;
    char piece[1 << 16];
    while (const size_t got = in.read_some(piece, sizeof piece)) {
        text.append(piece, got);
        require(text.size() <= kMaxInputBytes, in.name(), ": more than ", kMaxInputBytes >> 30,
                " GiB of transcripts");
    }
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
        // A recording without speech has no segments, and so no transcript.
        if (!hypothesis && words > 0)
            console.error(concat(reference.name(), ": no transcript: its ", words,
                                 " words count as deleted"));
        report->recording(reference.source, reference.channel, comparison);
        sum += comparison.counts;
    }
    report->total(sum, static_cast<int64_t>(references.size()));
    for (const Transcript* extra : pairs.extra)
        console.error(extra->name() +
                      ": no reference of this name, or several; the transcript is not counted");
    out.flush();
}

constexpr ToolHelp kHelp = {
    .name = "whisper-eval",
    .summary = "Counts word and character errors of transcripts, given the right texts.",
    .description =
        R"(stdin and --reference FILE are lines of JSON with a `source` and a `text`, as
whisper-transcribe --format jsonl writes them. The texts of one source are
joined. A source is found by its name, else by its file name without folder and
ending, if that is unique. All words of a missing recording count as deleted.
The rate of several recordings is the sum of their errors / the sum of their
words.)",
    .examples = R"(# Word error rate of a folder of recordings
audio-decode talks/*.wav | mel | whisper-transcribe -m small -f jsonl |
    whisper-eval --reference talks.jsonl
# The words that differ
whisper-eval --reference talks.jsonl --differences < small.jsonl
# German, as a table for other programs
whisper-eval --reference de.jsonl --normalizer basic -f tsv < small.jsonl)",
};

}  // namespace

int main(int argc, char** argv) { return tool_main<Options>(kHelp, argc, argv, run); }
