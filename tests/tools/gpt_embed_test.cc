// gpt-embed against transformers (tests/golden/embeddings.py), and its contract, on the real
// binary.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "support/family_folder.h"
#include "support/golden.h"
#include "tools/gpt_generate.h"

using namespace hark::test;

namespace {

const json& embeddings_golden() {
    static const json read = golden("embeddings.json");
    return read;
}

// The golden file's model as a folder; Qwen3-Embedding's tensors have no prefix.
std::string write_model(const TemporaryDirectory& at, const std::string& name) {
    const json& model = embeddings_golden()["cases"][name];
    const auto folder = at.path() / name;
    write_tiny_model(folder, model["config"].dump().c_str(), "qwen2",
                     name == "qwen3" ? "" : "model.");
    if (!model["post_processor"].is_null()) {
        auto tokenizer = json::parse(read_text(folder / "tokenizer.json"));
        tokenizer["post_processor"] = model["post_processor"];
        write_text(folder / "tokenizer.json", tokenizer.dump());
    }
    for (const auto& [file, content] : model["files"].items()) {
        std::filesystem::create_directories((folder / file).parent_path());
        write_text(folder / file, content.dump());
    }
    return folder.string();
}

ProcessResult embed(const std::string& model, std::vector<std::string> arguments,
                    const std::string& input) {
    arguments.insert(arguments.begin(), {"--model", model, "--threads", "1"});
    return run_tool("gpt-embed", arguments, input);
}

std::string texts() {
    std::string all;
    for (const json& text : embeddings_golden()["texts"]) all += text.get<std::string>() + "\n";
    return all;
}

void expect_near(const json& vector, const json& expected, const std::string& what) {
    ASSERT_EQ(vector.size(), expected.size()) << what;
    for (size_t i = 0; i < expected.size(); ++i)
        ASSERT_NEAR(vector[i].get<double>(), expected[i].get<double>(), 1e-5) << what << ", " << i;
}

}  // namespace

TEST(GptEmbed, VectorsAreThoseOfTransformers) {
    const TemporaryDirectory directory;
    for (const auto& [name, of] : embeddings_golden()["cases"].items()) {
        const std::string model = write_model(directory, name);
        for (const std::string pooling : {"auto", "last", "mean", "first"}) {
            const ProcessResult run = embed(model, {"--pooling", pooling}, texts());
            ASSERT_EQ(run.exit_code, 0) << run.err;
            EXPECT_EQ(run.err, "");
            const json& expected =
                of["plain"][pooling == "auto" ? of["pooling"].get<std::string>() : pooling];
            const auto lines = lines_of(run.out);
            ASSERT_EQ(lines.size(), expected.size());
            for (size_t i = 0; i < lines.size(); ++i) {
                const json line = json::parse(lines[i]);
                EXPECT_EQ(line["id"], i);
                EXPECT_EQ(line["index"], i);
                EXPECT_EQ(line["prompt_tokens"], of["tokens"][i]);
                expect_near(line["embedding"], expected[i],
                            hark::concat(name, ", ", pooling, ", text ", i));
            }
        }
    }
}

TEST(GptEmbed, AnInstructionBeforeEachText) {
    const TemporaryDirectory directory;
    const std::string model = write_model(directory, "qwen3");
    const json& expected = embeddings_golden()["cases"]["qwen3"]["query"];
    const std::string input = texts(), query = embeddings_golden()["query"];
    for (const auto& flags : {std::vector<std::string>{"--prompt-name", "query"},
                              std::vector<std::string>{"--instruction", query}}) {
        const auto lines = lines_of(embed(model, flags, input).out);
        for (size_t i = 0; i < expected.size(); ++i)
            expect_near(json::parse(lines.at(i))["embedding"], expected[i], flags[0]);
    }
    const ProcessResult unknown = embed(model, {"--prompt-name", "doc"}, input);
    EXPECT_EQ(unknown.exit_code, 1);
    EXPECT_EQ(unknown.err,
              "gpt-embed: --prompt-name: the model has no prompt 'doc' (it has document, query); "
              "give the text with --instruction\n");
    EXPECT_EQ(embed(model, {"--prompt-name", "a", "--instruction", "b"}, input).exit_code, 2);
}

TEST(GptEmbed, FloatsAndDimensions) {
    const TemporaryDirectory directory;
    const std::string model = write_model(directory, "llama");
    const ProcessResult run = embed(model, {"--format", "f32", "--dimensions", "16"}, texts());
    ASSERT_EQ(run.exit_code, 0) << run.err;
    const json& expected = embeddings_golden()["cases"]["llama"]["plain"]["mean"];
    ASSERT_EQ(run.out.size(), expected.size() * 16 * sizeof(float));
    for (size_t text = 0; text < expected.size(); ++text) {
        double squares = 0;
        for (size_t i = 0; i < 16; ++i) squares += std::pow(expected[text][i].get<double>(), 2);
        for (size_t i = 0; i < 16; ++i) {
            float value;
            std::memcpy(&value, run.out.data() + (text * 16 + i) * sizeof value, sizeof value);
            EXPECT_NEAR(value, expected[text][i].get<double>() / std::sqrt(squares), 1e-5);
        }
    }
    const ProcessResult many = embed(model, {"--dimensions", "65"}, texts());
    EXPECT_EQ(many.exit_code, 1);
    EXPECT_EQ(many.err,
              "gpt-embed: dimensions: the model has 64 (got 65); give fewer with "
              "--dimensions\n");
    const json plain = json::parse(lines_of(embed(model, {"--no-unit-length"}, "a\n").out).at(0));
    double squares = 0;
    for (const json& x : plain["embedding"]) squares += std::pow(x.get<double>(), 2);
    EXPECT_GT(squares, 2);
}

TEST(GptEmbed, TheNearestRows) {
    const TemporaryDirectory directory;
    const std::string model = write_model(directory, "llama");
    const std::string file = (directory.path() / "vectors.f32").string();
    write_text(file, embed(model, {"--format", "f32", "--prompt-name", "document"}, texts()).out);
    const std::string text = embeddings_golden()["texts"][2];
    const std::vector<std::string> nearest = {"--nearest",     file,      "--matches", "2",
                                              "--prompt-name", "document"};
    const json found = json::parse(lines_of(embed(model, nearest, text + "\n").out).at(0));
    ASSERT_EQ(found["nearest"].size(), 2u);
    EXPECT_EQ(found["nearest"][0]["row"], 2);
    EXPECT_NEAR(found["nearest"][0]["score"].get<double>(), 1, 1e-5);
    EXPECT_LE(found["nearest"][1]["score"], found["nearest"][0]["score"]);
    EXPECT_EQ(found["index"], 0);
    EXPECT_FALSE(found.contains("embedding"));
    // The model's own instruction for questions is put there by itself.
    const auto query = [&](std::vector<std::string> more) {
        more.insert(more.end(), {"--nearest", file, "--format", "tsv"});
        return embed(model, more, text + "\n" + text + "\n").out;
    };
    const std::string asked = query({});
    EXPECT_EQ(asked, query({"--prompt-name", "query"}));
    EXPECT_NE(asked, query({"--prompt-name", "document"}));
    const auto lines = lines_of(asked);
    ASSERT_EQ(lines.size(), 2 * embeddings_golden()["texts"].size());
    EXPECT_TRUE(lines[0].starts_with("0\t")) << lines[0];
    EXPECT_TRUE(lines.back().starts_with("1\t")) << lines.back();
}

TEST(GptEmbed, VectorsThatCannotBeSearched) {
    const TemporaryDirectory directory;
    const std::string model = write_model(directory, "llama");
    const std::string file = (directory.path() / "vectors.f32").string();
    write_text(file, std::string(64 * 4 + 3, 'x'));
    const ProcessResult cut = embed(model, {"--nearest", file}, "a\n");
    EXPECT_EQ(cut.exit_code, 1);
    EXPECT_EQ(cut.err, "gpt-embed: " + file +
                           ": expected rows of 64 float32 values, found 3 bytes at the end\n");
    write_text(file, "");
    const ProcessResult empty = embed(model, {"--nearest", file, "--format", "tsv"}, "a\n");
    EXPECT_EQ(empty.exit_code, 1);
    EXPECT_EQ(empty.out, "");
    EXPECT_EQ(empty.err,
              "gpt-embed: " + file + ": expected rows of 64 float32 values, found none\n");
    const ProcessResult none = embed(model, {"--nearest", file + "2"}, "a\n");
    EXPECT_EQ(none.exit_code, 1);
    expect_contains(none.err, "vectors.f322: cannot open: No such file");
    EXPECT_EQ(embed(model, {"--format", "tsv"}, "a\n").exit_code, 2);
    EXPECT_EQ(embed(model, {"--format", "f32", "--nearest", file}, "a\n").exit_code, 2);
}

TEST(GptEmbed, LinesOfATranscript) {
    const TemporaryDirectory directory;
    const std::string model = write_model(directory, "llama");
    const std::string text = embeddings_golden()["texts"][0];
    const ProcessResult run = embed(
        model, {"--input-format", "jsonl"},
        json{{"source", "a.wav"}, {"start", 1.5}, {"end", 2}, {"text", text}}.dump() + "\n[]\n");
    EXPECT_EQ(run.exit_code, 1);
    EXPECT_EQ(run.err, "gpt-embed: stdin: line 2: expected a JSON object, found array\n");
    const auto lines = lines_of(run.out);
    ASSERT_EQ(lines.size(), 2u);
    json first = json::parse(lines[0]);
    expect_near(first["embedding"], embeddings_golden()["cases"]["llama"]["plain"]["mean"][0],
                "jsonl");
    first.erase("embedding");
    EXPECT_EQ(first, json::parse(R"({"id": 0, "source": "a.wav", "start": 1.5, "end": 2,
                                     "index": 0, "prompt_tokens": 18})"));
    EXPECT_EQ(json::parse(lines[1])["error"]["code"], "invalid_json");
}

TEST(GptEmbed, ATextThatIsTooLong) {
    const TemporaryDirectory directory;
    const std::string model = write_model(directory, "qwen3");
    std::string text;
    for (int i = 0; i < 80; ++i) text += "a";
    const ProcessResult refused = embed(model, {"--format", "f32"}, text + "\na\n");
    EXPECT_EQ(refused.exit_code, 1);
    expect_contains(refused.err, "gpt-embed: stdin: line 1: the text has ");
    expect_contains(refused.err, " tokens, the model takes 64; cut it with --truncate\n");
    ASSERT_EQ(refused.out.size(), 2 * 64 * sizeof(float));
    float first;
    std::memcpy(&first, refused.out.data(), sizeof first);
    EXPECT_TRUE(std::isnan(first));
    // The end of a text that is cut is what the tokenizer puts there.
    const json cut = json::parse(lines_of(embed(model, {"--truncate"}, text + "\n").out).at(0));
    EXPECT_EQ(cut["prompt_tokens"], 64);
    const std::string fits = text.substr(0, 63);
    const json whole = json::parse(lines_of(embed(model, {}, fits + "\n").out).at(0));
    if (whole["prompt_tokens"] == 64) {
        EXPECT_EQ(cut["embedding"], whole["embedding"]);
    }
}

// No line has no vector; all of stdin is one text, whether it is empty or a line end.
TEST(GptEmbed, EmptyInput) {
    for (const char* format : {"lines", "jsonl"}) {
        const ProcessResult none = embed(kGptDemo, {"--input-format", format}, "");
        EXPECT_EQ(none.exit_code, 0) << format;
        EXPECT_EQ(none.out + none.err, "") << format;
    }
    for (const char* input : {"", "\n"}) {
        const ProcessResult text = embed(kGptDemo, {"--input-format", "text"}, input);
        EXPECT_EQ(text.exit_code, 1);
        expect_contains(text.err, "the text has no tokens");
        EXPECT_EQ(json::parse(text.out)["error"]["code"], "invalid_value") << text.out;
    }
}

TEST(GptEmbed, FilesThatAreNotSupported) {
    const TemporaryDirectory directory;
    const std::string model = write_model(directory, "llama");
    const auto error = [&](const std::string& file, const std::string& content) {
        const std::filesystem::path path = std::filesystem::path(model) / file;
        const std::string before = read_text(path);
        write_text(path, content);
        const ProcessResult run = embed(model, {}, "a\n");
        write_text(path, before);
        EXPECT_EQ(run.exit_code, 1);
        return run.err;
    };
    expect_contains(error("modules.json", R"([{"type": "x.Dense", "path": "2_Dense"}])"),
                    "expected the modules Transformer, Pooling and Normalize, found Dense");
    for (const char* path : {"..", "", "a/b"})
        expect_contains(error("modules.json",
                              R"([{"type": "x.Pooling", "path": ")" + std::string(path) + "\"}]"),
                        "expected a folder's name as path of Pooling, found '" + std::string(path));
    expect_contains(error("1_Pooling/config.json", R"({"pooling_mode_max_tokens": true})"),
                    "expected the pooling lasttoken, cls or mean, found pooling_mode_max_tokens");
    expect_contains(error("1_Pooling/config.json", "{}"), "found none");
    expect_contains(error("modules.json", "{}"),
                    "modules.json: expected a JSON array, found object");
    expect_contains(error("config_sentence_transformers.json", R"({"default_prompt_name": "x"})"),
                    "default_prompt_name: expected one of prompts, found 'x'");
}
