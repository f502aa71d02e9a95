#include "models/convert.h"

#include <algorithm>

#include "core/error.h"
#include "core/files.h"
#include "gpt/model_folder.h"
#include "models/ggml_writer.h"
#include "models/hugging_face_writer.h"

namespace hark::models {
namespace {

namespace fs = std::filesystem;

Dtype dtype_named(const std::string& name) {
    for (const Dtype dtype : {Dtype::f32, Dtype::f16, Dtype::bf16, Dtype::q4_0, Dtype::q4_1,
                              Dtype::q5_0, Dtype::q5_1, Dtype::q8_0})
        if (name == name_of(dtype)) return dtype;
    throw UsageError(concat("no type '", name, "' to write"));
}

// A file's ending says its format; everything else is a directory, "tiny.en" too.
std::string format_of(const ConvertOptions& options, const fs::path& to) {
    if (!options.format.empty()) return options.format;
    std::string ending = to.extension().string();
    for (char& c : ending) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    for (const char* other : {".gguf", ".onnx", ".pt", ".safetensors"})
        require_usage(ending != other, to.string(), ": no format that is written ends in ", other,
                      "; --format ggml writes a file, --format hf a directory");
    return ending == ".bin" ? "ggml" : "hf";
}

}  // namespace

std::vector<std::string> written_formats() { return {"hf", "ggml"}; }

std::vector<std::string> written_dtypes(const std::string& format) {
    if (format == "hf") return {"f32", "f16", "bf16"};
    std::vector<std::string> names;
    for (const Dtype dtype : ggml_file_dtypes()) names.push_back(name_of(dtype));
    return names;
}

void convert_model(const fs::path& from, const fs::path& to, const ConvertOptions& options,
                   const std::function<void(const std::string&)>& warn) {
    const std::string format = format_of(options, to);
    const std::vector<std::string> dtypes = written_dtypes(format);
    std::string known;
    for (const std::string& dtype : dtypes) known += (known.empty() ? "" : ", ") + dtype;
    require_usage(std::count(dtypes.begin(), dtypes.end(), options.dtype) == 1,
                  "--dtype: expected ", known, " in the format ", format, ", found '",
                  options.dtype, "'");
    const Dtype dtype = dtype_named(options.dtype);
    const AnyModel model = open_any_model(from);
    if (format == "ggml") {
        require(model.whisper != nullptr,
                options.format.empty() ? "a file that ends in .bin is ggml's, which is"
                                       : "--format ggml is",
                " for Whisper models: ", from.string(), " is one of GPT-2");
        gpt::check_target(to, false);
        std::error_code failed;
        fs::create_directories(fs::absolute(to).parent_path(), failed);
        require(!fs::exists(to), to.string(), ": expected a new file to write to, found something ",
                "there");
        write_ggml(*model.whisper, options.vocab, dtype, to, warn);
        return;
    }
    gpt::check_target(to, true);
    std::error_code failed;
    fs::create_directories(fs::absolute(to).parent_path(), failed);
    AtomicDirectory directory(to);
    write_hugging_face_model(model, from, options.vocab, dtype, directory.path());
    if (!fs::exists(directory.path() / "tokenizer.json") &&
        !fs::exists(directory.path() / "vocab.json"))
        warn(concat(from.string(), " has no vocabulary, so ", to.string(),
                    " has none; --vocab gives it one"));
    directory.commit();
}

}  // namespace hark::models
