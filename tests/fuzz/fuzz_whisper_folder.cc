// Whisper models in the formats of Hugging Face, CTranslate2 and OpenAI: folders, by the letters of
// kFiles, or OpenAI's file alone.
#include "fuzz/attempt.h"
#include "fuzz/golden.h"
#include "fuzz/input_folder.h"
#include "fuzz/target.h"
#include "support/byte_vocabulary.h"
#include "support/ggml_writer.h"
#include "whisper/model/model_file.h"

using namespace hark;
using namespace hark::fuzz;

namespace {

const std::map<char, std::string> kFiles = {{'c', "config.json"},
                                            {'g', "generation_config.json"},
                                            {'l', "vocabulary.json"},
                                            {'m', "vocabulary.txt"},
                                            {'r', "multilingual.tiktoken"},
                                            {'t', "tokenizer.json"},
                                            {'C', "model.bin"},
                                            {'O', "model.pt"},
                                            {'W', "model.safetensors"}};

std::string part(char letter, const std::filesystem::path& file) {
    return fuzz::InputFolder::part(letter, fuzz::content(file));
}

}  // namespace

static std::vector<std::string> whisper_folder_seeds() {
    const std::filesystem::path files = golden_folder() / "model_files";
    const std::filesystem::path ours = files / "hugging-face";
    const std::string ranks = InputFolder::part('r', test::byte_vocabulary());
    std::vector<std::string> seeds = {
        part('c', ours / "config.json") + part('g', ours / "generation_config.json") +
            part('W', ours / "model.safetensors"),
        part('c', ours / "config.json") +
            InputFolder::part('t', R"({"model":{"type":"BPE","vocab":{"a":0,"b":1,"ab":2},)"
                                   R"("merges":["a b"]}})"),
        ranks + part('O', files / "small.pt")};
    for (const char* folder : {"ctranslate2", "ctranslate2-int16"})
        seeds.push_back(part('c', files / folder / "config.json") +
                        part('l', files / folder / "vocabulary.json") +
                        part('C', files / folder / "model.bin"));
    seeds.push_back(part('c', files / "ctranslate2/config.json") +
                    InputFolder::part('m', "a\nb\nab\n") +
                    part('C', files / "ctranslate2/model.bin"));
    seeds.push_back(InputFolder::part('O', test::GgmlParts().text()));
    seeds.push_back(InputFolder::part('O', "none"));
    return seeds;
}

static int whisper_folder_input(const uint8_t* data, size_t size) {
    static fuzz::InputFolder folder(kFiles);
    const std::filesystem::path& path = folder.holding(data, size);
    for (const std::filesystem::path& model : {path, path / "model.pt"})
        fuzz::attempt([&] {
            const std::unique_ptr<whisper::ModelFile> file = whisper::open_model(model);
            if (std::string(file->format()).empty()) std::abort();
            fuzz::attempt([&] { file->int8(); });
            fuzz::attempt([&] { file->stored_type(); });
            fuzz::attempt([&] { file->tokenizer().encode("a b"); });
            const int64_t n = file->config().n_text_state;
            for (const char* name : {"decoder.layer_norm.weight", "decoder.layer_norm.bias"})
                if (file->tensors().has(name))
                    fuzz::attempt([&] { file->tensors().take(name, {n}); });
            for (const char* name : {"q", "k", "v"})
                fuzz::attempt([&] {
                    file->tensors().take(
                        std::string("encoder.layers.0.self_attn.") + name + "_proj.weight", {n, n});
                });
        });
    return 0;
}

static const hark::fuzz::Target kWhisperFolder{"whisper_folder", whisper_folder_seeds,
                                               whisper_folder_input};
