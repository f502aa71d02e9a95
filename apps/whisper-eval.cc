// whisper-eval: transcripts as JSON lines -> word and character error rates against references.
//
//   stdin -> read_hypotheses -> pair_transcripts -> compare_words -> ErrorReport -> stdout
#include <unistd.h>

#include <chrono>

#include "core/files/io.h"
#include "core/profile/profile.h"
#include "eval/error_report.h"
#include "eval/eval_options.h"
#include "eval/transcripts.h"
#include "eval/word_errors.h"

using namespace hark;

namespace {

void run(const EvalOptions& options, Console& console) {
    options.check();
    const std::vector<Transcript> references = read_references(options.reference);
    ByteReader in(STDIN_FILENO, "stdin");
    std::vector<std::string> problems;
    const std::vector<Transcript> hypotheses = read_hypotheses(in, problems);
    for (const std::string& problem : problems) console.error(problem);

    ByteWriter out(STDOUT_FILENO, "stdout");
    const auto report = make_error_report(options.format, options.differences,
                                          [&](const std::string& text) { out.write(text); });
    const TranscriptPairs pairs = pair_transcripts(references, hypotheses);
    ErrorCounts sum;
    for (size_t i = 0; i < references.size(); ++i) {
        const Transcript& reference = references[i];
        const Transcript* hypothesis = pairs.hypotheses[i];
        const auto begin = std::chrono::steady_clock::now();
        const ProfileSpan span("compare");
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
    .is_measured = true,
};

}  // namespace

int main(int argc, char** argv) { return tool_main<EvalOptions>(kHelp, argc, argv, run); }
