#include "hub/convert.h"

#include "hub/commands/commands.h"

namespace hark::models {
namespace {

// "f32, f16 or bf16": the types of a format.
std::string alternatives(const std::string& format) {
    const std::vector<std::string> types = written_types(format);
    std::string text;
    for (size_t i = 0; i < types.size(); ++i)
        text += (i == 0 ? "" : i + 1 < types.size() ? ", " : " or ") + types[i];
    return text;
}

struct ConvertFlags {
    std::vector<std::string> names;
    ConvertOptions convert;
    void flags(Flags& flags) {
        static const std::string types =
            concat(alternatives("safetensors"), "; for ggml ", alternatives("ggml"), "; for gguf ",
                   alternatives("gguf"), ".");
        flags.positional("MODEL OUTPUT", names, "a name or a path, and the new path to write to");
        flags
            .add("to", convert.format, {"safetensors", "ggml", "gguf"},
                 "FORMAT format of the output")
            .essential()
            .details(
                "Without it ggml if OUTPUT ends in .bin, gguf if it ends in .gguf, else "
                "safetensors. safetensors is a folder as Hugging Face's transformers reads it, in "
                "which gpt-oss's experts stay mxfp4 if they are; ggml is a file as whisper.cpp "
                "reads it, for Whisper alone; gguf is a file as "
                "llama.cpp reads it, for Llama, Mistral, Mixtral, Qwen2, Qwen3 and its mixtures of "
                "experts, gpt-oss, DeepSeek-V2 and V3, Gemma 2 and 3, Phi-3, OLMo 2, Granite and "
                "SmolLM3.");
        flags.add("type", convert.type, "TYPE type of the matrices in the output")
            .essential()
            .details(types.c_str());
        flags
            .add_name("tokenizer", convert.tokenizer,
                      "PATH tokenizer for a model whose file has none")
            .details("A tiktoken rank file, or a folder with Hugging Face's tokenizer files.")
            .completes(Completes::file);
    }
};

void run_convert(const ConvertFlags& options, Console& console) {
    require_usage(options.names.size() == 2, "MODEL and OUTPUT are required (got ",
                  options.names.size(), options.names.size() == 1 ? " argument)" : " arguments)");
    require_usage(!options.names[0].empty() && !options.names[1].empty(),
                  "MODEL or OUTPUT is empty");
    convert_model(find_any_model(options.names[0]), options.names[1], options.convert,
                  [&](const std::string& warning) { console.warning(warning); });
}

}  // namespace

int convert_command(int argc, char** argv) {
    const ToolHelp help = {.name = "hark-model convert",
                           .summary = "Writes a model in another format or type.",
                           .description = "OUTPUT must be new. It appears once it is whole.",
                           .examples =
                               "# 8-bit weights for whisper.cpp: a quarter of the size\n"
                               "hark model convert small small-q8.bin --type q8_0\n"
                               "# a model of whisper.cpp as a folder for transformers\n"
                               "hark model convert ./ggml-base.bin base --to safetensors\n"
                               "# a folder of a language model for llama.cpp, in 4.8 bits\n"
                               "hark model convert ./qwen qwen.gguf --type q4_k_m\n"
                               "# and back, for transformers\n"
                               "hark model convert ./qwen.gguf qwen-bf16 --type bf16\n"
                               "# half the size of a model that was trained in f32\n"
                               "hark model convert ./run run-f16 --type f16",
                           .is_measured = true};
    return tool_main<ConvertFlags>(help, argc, argv, run_convert);
}

}  // namespace hark::models
