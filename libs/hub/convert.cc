#include "hub/convert.h"

#include "core/ascii.h"
#include "core/error.h"
#include "core/files/files.h"
#include "core/ranges.h"
#include "gpt/families/gguf_types.h"
#include "gpt/families/model_folder.h"
#include "hub/ggml_writer.h"
#include "hub/gguf_writer.h"
#include "hub/hugging_face_writer.h"

namespace hark::models {
namespace {

namespace fs = std::filesystem;

// By the ending of the output's name; every other name is a folder, "tiny.en" too.
std::string format_of(const ConvertOptions& options, const fs::path& to) {
    if (!options.format.empty()) return options.format;
    const std::string ending = ascii_lower(to.extension().string());
    for (const char* other : {".onnx", ".pt", ".safetensors"})
        require_usage(ending != other, to.string(), ": files that end in ", other,
                      " are not written; --to gguf and --to ggml write a file, --to safetensors a "
                      "folder");
    return ending == ".gguf" ? "gguf" : ending == ".bin" ? "ggml" : "safetensors";
}

void check_new_file(const fs::path& to) {
    gpt::check_target(to, false);
    gpt::make_parent(to);
    require(!fs::exists(to), to.string(), ": exists already; give a new file");
}

}  // namespace

std::vector<std::string> written_types(const std::string& format) {
    if (format == "safetensors") return {"f32", "f16", "bf16"};
    if (format == "gguf") return gpt::gguf_types();
    std::vector<std::string> names;
    for (const Dtype dtype : ggml_file_dtypes()) names.push_back(name_of(dtype));
    return names;
}

void convert_model(const fs::path& from, const fs::path& to, const ConvertOptions& options,
                   const std::function<void(const std::string&)>& warn) {
    const std::string format = format_of(options, to);
    const std::vector<std::string> types = written_types(format);
    require_usage(contains(types, options.type), "--type: not a type of ", format, " (got '",
                  options.type, "', expected ", joined(types), ")");
    const ModelHandle model = open_any_model(from);
    if (format == "gguf") {
        require(model.gpt != nullptr, from.string(),
                ": a Whisper model cannot be written as GGUF; give --to ggml and a new file");
        require_usage(options.tokenizer.empty(),
                      "--tokenizer does not go with --to gguf: the folder's own is written");
        check_new_file(to);
        return write_gguf(*model.gpt, from, options.type, to);
    }
    const Dtype dtype = dtype_named(options.type);
    if (format == "ggml") {
        require(model.whisper != nullptr, from.string(),
                ": a language model cannot be written as ggml; give --to gguf or --to safetensors");
        check_new_file(to);
        write_ggml(*model.whisper, options.tokenizer, dtype, to, warn);
        return;
    }
    gpt::check_target(to, true);
    gpt::make_parent(to);
    AtomicDirectory directory(to);
    write_hugging_face_model(model, from, options.tokenizer, dtype, directory.path());
    const auto has = [&](const char* name) { return fs::exists(directory.path() / name); };
    if (!has("tokenizer.json") && !has("vocab.json") && !has("tokenizer.model"))
        warn(concat(from.string(), " has no tokenizer, so ", to.string(), " has none"));
    directory.commit();
}

}  // namespace hark::models
