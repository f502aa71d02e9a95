#include "whisper/model/openai_file.h"

#include <algorithm>

#include "core/error.h"
#include "formats/torch_file.h"
#include "whisper/model/openai_names.h"

namespace hark::whisper {
namespace {

constexpr const char* kTensors = "model_state_dict";

class OpenaiTensors : public TensorSource {
  public:
    explicit OpenaiTensors(const TorchFile& file) : file_(file), entries_(file.tensors(kTensors)) {}

    Tensor take(const std::string& name, std::initializer_list<int64_t> shape) override {
        const auto found = entries_.find(openai_name(name));
        require(found != entries_.end(), file_.name(), ": expected a tensor '", openai_name(name),
                "', found none");
        const TensorEntry& entry = found->second;
        const Tensor tensor = file_.tensor(entry);
        require(std::equal(entry.shape.begin(), entry.shape.end(), shape.begin(), shape.end()),
                file_.name(), ": tensor '", entry.name, "': expected ",
                Tensor(nullptr, tensor.dtype, shape), ", found ", tensor);
        taken_.push_back(&entry);
        return tensor;
    }
    bool has(const std::string& name) const override {
        return entries_.contains(openai_name(name));
    }
    std::string where() const override { return file_.name(); }
    void release_tensors() override {
        for (const TensorEntry* entry : taken_) file_.forget(*entry);
        taken_.clear();
    }

  private:
    const TorchFile& file_;
    std::map<std::string, TensorEntry> entries_;
    std::vector<const TensorEntry*> taken_;
};

class OpenaiFile : public ModelFile {
  public:
    explicit OpenaiFile(const std::filesystem::path& path)
        : path_(path),
          file_(path),
          config_(config_of_sizes(file_.numbers("dims"), file_.name())),
          tensors_(file_) {}

    const char* format() const override { return "OpenAI"; }
    const Config& config() const override { return config_; }
    TensorSource& tensors() override { return tensors_; }
    Tokenizer tokenizer() const override {
        const char* name =
            config_.n_vocab == kEnglishVocab ? "gpt2.tiktoken" : "multilingual.tiktoken";
        const std::filesystem::path vocabulary = path_.parent_path() / name;
        std::error_code failed;
        require(std::filesystem::exists(vocabulary, failed), path_.string(),
                ": the format carries no vocabulary: expected openai-whisper's ", name,
                " next to it, or --tokenizer; found neither");
        return load_vocabulary(vocabulary, config_.n_vocab);
    }

  private:
    std::filesystem::path path_;
    TorchFile file_;
    Config config_;
    OpenaiTensors tensors_;
};

}  // namespace

std::unique_ptr<ModelFile> open_openai(const std::filesystem::path& path) {
    return std::make_unique<OpenaiFile>(path);
}

}  // namespace hark::whisper
