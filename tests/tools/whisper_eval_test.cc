// whisper-eval's contract, on the real binary.
#include <gtest/gtest.h>

#include <sstream>

#include "core/json/json.h"
#include "support/expect.h"
#include "support/process.h"

using namespace hark::test;
using nlohmann::json;

namespace {

std::string line(const std::string& source, const std::string& text) {
    return json{{"source", source}, {"text", text}}.dump() + "\n";
}

// Runs the tool with these references, in a file of their own.
ProcessResult evaluate_transcripts(const std::string& references,
                                   std::vector<std::string> arguments,
                                   const std::string& hypotheses) {
    const TemporaryDirectory directory;
    const std::string path = (directory.path() / "refs.jsonl").string();
    write_text(path, references);
    arguments.insert(arguments.begin(), {"--reference", path});
    return run_tool("whisper-eval", arguments, hypotheses);
}

std::vector<json> rows_of(const std::string& text) {
    std::vector<json> objects;
    std::istringstream in(text);
    for (std::string row; std::getline(in, row);) objects.push_back(json::parse(row));
    return objects;
}

const std::string kReferences = line("a.wav", "The old captain walked home.") +
                                line("b.wav", "It's twenty one.") + line("quiet.wav", "");

}  // namespace

TEST(WhisperEval, ReportsARowARecordingAndTheirSum) {
    // Segments of one recording are joined; of one that says nothing there are none.
    const std::string hypotheses = line("dir/b.mp3", " It is 21.") + line("a.wav", " the captain") +
                                   line("a.wav", " walks home now");
    const ProcessResult text = evaluate_transcripts(kReferences, {}, hypotheses);
    EXPECT_EQ(text.exit_code, 0) << text.err;
    EXPECT_EQ(text.err, "");
    EXPECT_EQ(text.out,
              "    WER     CER   words   subst   del   ins  recording\n"
              " 60.00%  37.04%       5       1     1     1  a.wav\n"
              "  0.00%   0.00%       3       0     0     0  b.wav\n"
              "  0.00%   0.00%       0       0     0     0  quiet.wav\n"
              " 37.50%  28.57%       8       1     1     1  total of 3\n");
    const ProcessResult tsv = evaluate_transcripts(kReferences, {"--format", "tsv"}, hypotheses);
    EXPECT_EQ(tsv.out,
              "recording\twer\tcer\twords\tsubstitutions\tdeletions\tinsertions\tcharacters\t"
              "character_errors\n"
              "a.wav\t0.600000\t0.370370\t5\t1\t1\t1\t27\t10\n"
              "b.wav\t0.000000\t0.000000\t3\t0\t0\t0\t8\t0\n"
              "quiet.wav\t0.000000\t0.000000\t0\t0\t0\t0\t0\t0\n"
              "total\t0.375000\t0.285714\t8\t1\t1\t1\t35\t10\n");
    const auto objects =
        rows_of(evaluate_transcripts(kReferences, {"--format", "jsonl"}, hypotheses).out);
    ASSERT_EQ(objects.size(), 4u);
    EXPECT_EQ(objects[0]["source"], "a.wav");
    EXPECT_EQ(objects[0]["wer"], 0.6);
    EXPECT_EQ(objects[3]["recordings"], 3);
    EXPECT_EQ(objects[3]["words"], 8);
    EXPECT_EQ(objects[3]["character_errors"], 10);
}

TEST(WhisperEval, ShowsAlignedDifferences) {
    const std::string hypotheses =
        line("a.wav", "the captain walks home now") + line("b.wav", "it is 21");
    const ProcessResult text = evaluate_transcripts(kReferences, {"--differences"}, hypotheses);
    expect_contains(text.out,
                    "a.wav\n\n"
                    "  REF the old captain walked home ***\n"
                    "  HYP the *** captain walks  home now\n"
                    "          D           S           I\n\n");
    const auto objects = rows_of(
        evaluate_transcripts(kReferences, {"--differences", "--format", "jsonl"}, hypotheses).out);
    EXPECT_EQ(objects[0]["words_aligned"],
              json::parse(R"([["the","the"],["old",null],["captain","captain"],)"
                          R"(["walked","walks"],["home","home"],[null,"now"]])"));
}

TEST(WhisperEval, Normalizes) {
    const auto errors = [](std::vector<std::string> arguments, const std::string& reference,
                           const std::string& hypothesis) {
        arguments.insert(arguments.end(), {"--format", "jsonl"});
        const auto objects = rows_of(
            evaluate_transcripts(line("a", reference), arguments, line("a", hypothesis)).out);
        return objects.at(0)["substitutions"].get<int>();
    };
    EXPECT_EQ(errors({}, "The colour, Mr. X", "the color mister x"), 0);
    EXPECT_EQ(errors({"--normalizer", "basic"}, "The colour.", "the color"), 1);
    EXPECT_EQ(errors({"--normalizer", "none"}, "The colour.", "the color"), 2);
    EXPECT_EQ(errors({"--normalizer", "basic"}, "Été", "ete"), 1);
    EXPECT_EQ(errors({"--normalizer", "basic", "--remove-diacritics"}, "Été", "ete"), 0);
    EXPECT_EQ(errors({"--normalizer", "basic", "--split-letters"}, "你好世界", "你们世界"), 1);
}

TEST(WhisperEval, NamesWhatIsMissingExtraOrBroken) {
    const ProcessResult result = evaluate_transcripts(
        kReferences, {"--format", "jsonl"},
        line("x.wav", "extra") + "{\"source\": \"b.wav\", \"error\": \"no audio\"}\nnonsense\n");
    EXPECT_EQ(result.exit_code, 1);
    expect_contains(result.err, "a.wav: no transcript: its 5 words count as deleted");
    expect_contains(result.err, "x.wav: no reference of this name, or several");
    expect_contains(result.err, "b.wav: no audio");
    expect_contains(result.err, "stdin: line 3: expected a JSON object");
    const auto objects = rows_of(result.out);
    ASSERT_EQ(objects.size(), 4u);
    EXPECT_EQ(objects[3]["wer"], 1.0);
    EXPECT_EQ(objects[3]["deletions"], 8);
    // Words in silence have no rate.
    const ProcessResult none =
        evaluate_transcripts(line("a", ""), {"--format", "jsonl"}, line("a", "you"));
    EXPECT_EQ(none.exit_code, 0);
    EXPECT_TRUE(rows_of(none.out)[0]["wer"].is_null());
}

TEST(WhisperEval, EmptyInputIsNoTranscripts) {
    EXPECT_EQ(evaluate_transcripts(line("quiet", ""), {}, "").exit_code, 0);
    const ProcessResult result = evaluate_transcripts(kReferences, {}, "");
    EXPECT_EQ(result.exit_code, 1);
    expect_contains(result.out, "100.00%");
}

TEST(WhisperEval, RefusesWrongCommandLinesAndReferences) {
    EXPECT_EQ(run_tool("whisper-eval", {}, "").exit_code, 2);
    for (const std::vector<std::string>& arguments :
         std::vector<std::vector<std::string>>{{"--split-letters"},
                                               {"--normalizer", "german"},
                                               {"--differences", "--format", "tsv"},
                                               {"--norm", "basic"},
                                               {"file.jsonl"}})
        EXPECT_EQ(evaluate_transcripts(kReferences, arguments, "").exit_code, 2) << arguments[0];
    EXPECT_EQ(run_tool("whisper-eval", {"--reference", "/nonexistent"}, "").exit_code, 1);
    const ProcessResult wrong = evaluate_transcripts(line("a", "x") + "{\"source\": 5}\n", {}, "");
    EXPECT_EQ(wrong.exit_code, 1);
    expect_contains(wrong.err, "refs.jsonl: line 2: expected a string named text");
    EXPECT_EQ(evaluate_transcripts("", {}, "").exit_code, 1);
    EXPECT_EQ(evaluate_transcripts("{\"source\":\"a\",\"error\":\"e\"}\n", {}, "").exit_code, 1);
}

// What samples/transcripts.tsv says, against what the pipe writes.
TEST(WhisperEval, ReadsWhatWhisperTranscribeWrites) {
    const std::string reference =
        line("sea.wav", "He lived with his mother in a small house by the sea.") +
        line("silence.wav", "");
    const TemporaryDirectory directory;
    const std::string path = (directory.path() / "refs.jsonl").string();
    write_text(path, reference);
    const ProcessResult result = run_shell(
        "cd " + samples_dir().string() +
        " && audio-decode sea.wav silence.wav | mel | whisper-transcribe --model demo --threads 1 "
        "--format jsonl | whisper-eval --format tsv --reference " +
        path);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    expect_contains(result.out, "total\t0.000000\t0.000000\t12\t0\t0\t0\t");
}
