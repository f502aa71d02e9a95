// Prompts as text and as JSON lines, and what gpt-generate writes of them.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "core/error.h"
#include "fuzz/target.h"
#include "gpt/answers/answer_line.h"

using namespace hark;
using namespace hark::fuzz;

static std::vector<std::string> prompt_lines_seeds() {
    std::vector<std::string> seeds = {
        "{\"prompt\": \"one\", \"id\": \"a\", \"temperature\": 0.5, \"top_p\": 0.9, \"top_k\": 3, "
        "\"n\": 2, \"seed\": 7, \"stop\": [\"x\", \"y\"], \"logit_bias\": {\"5\": -100}, "
        "\"max_tokens\": 4, \"logprobs\": true, \"top_logprobs\": 5, \"mirostat\": 2}\n",
        "{\"messages\": [{\"role\": \"user\", \"content\": \"hi\"}], \"tools\": [], "
        "\"max_completion_tokens\": 3, \"frequency_penalty\": -1, \"stop\": \"END\"}\n\n"
        "{\"text\": \" two\", \"source\": \"a.wav\", \"start\": 1.5, \"end\": 2}\n",
        "{\"prompt\": \"x\", \"min_p\": 0.1, \"typical_p\": 0.9, \"presence_penalty\": 1, "
        "\"repetition_penalty\": 1.1, \"dry_multiplier\": 0.8, \"xtc_probability\": 0.1, "
        "\"max_tokens\": \"4\", \"stop\": [3], \"logprobs\": 2}\n",
        "{\"prompt\": \"x\", \"response_format\": {\"type\": \"json_schema\", \"json_schema\": {"
        "\"schema\": {\"type\": \"null\"}}}}\n{\"prompt\": \"x\", \"regex\": \"a+\"}\n"
        "{\"prompt\": \"x\", \"grammar\": 1}\n",
        "{\"id\": 3, \"error\": {\"message\": \"broken\", \"code\": \"x\"}}\r\n[1]\nnot json\n"};
    // Each is wrong in one place.
    for (const char* line :
         {R"({"prompt": 1})", R"({"messages": []})", R"({"messages": [1]})", R"({"id": 1})",
          R"({"messages": [{"role": "user"}], "tools": 1})", R"({"id": [], "text": "a"})",
          R"({"error": 1})", R"({"prompt": "a", "stop": [""]})",
          R"({"prompt": "a", "logit_bias": []})", R"({"prompt": "a", "logit_bias": {"x": 1}})",
          R"({"prompt": "a", "logit_bias": {"1": 101}})", R"({"prompt": "a", "logprobs": 1})",
          R"({"prompt": "a", "top_logprobs": 1})", R"({"prompt": "a", "mirostat": 1})",
          R"({"prompt": "a", "top_k": 0.5})", R"({"prompt": "a", "min_p": 2})"})
        seeds.push_back(concat(line, "\n"));
    return seeds;
}

namespace {

// What a line's settings are put over.
const gpt::GenerateOptions& run_options() {
    static const gpt::GenerateOptions options = [] {
        gpt::GenerateSettings settings;
        Flags flags;
        settings.flags(flags);
        settings.check();
        return settings.options({});
    }();
    return options;
}

void read_prompts(int file, gpt::PromptFormat format) {
    if (::lseek(file, 0, SEEK_SET) != 0) std::abort();
    ByteReader in(file, "fuzz");
    gpt::PromptReader reader(in, format, "<{}>", true);
    uint64_t index = 0;
    while (const auto prompt = reader.next()) {
        if (prompt->error.empty() != prompt->error_code.empty()) std::abort();
        const std::string line = gpt::error_line(*prompt);
        if (!nlohmann::json::parse(line).contains("id")) std::abort();
        if (!prompt->error.empty()) continue;
        const gpt::GenerateOptions options = prompt->settings.over(run_options(), index++);
        const gpt::SamplerOptions& sampler = options.sampler;
        if (options.max_tokens < 0 || options.samples < 1 || options.logprobs.value_or(0) > 20 ||
            !(sampler.temperature >= 0 && sampler.temperature <= 100) ||
            !(sampler.top_p > 0 && sampler.top_p <= 1) || sampler.top_k < 0)
            std::abort();
        for (const auto& [id, value] : sampler.logit_bias)
            if (id < 0 || !(value >= -100 && value <= 100)) std::abort();
        for (const std::string& stop : options.stop)
            if (stop.empty()) std::abort();
    }
}

}  // namespace

static int prompt_lines_input(const uint8_t* data, size_t size) {
    std::FILE* const file = std::tmpfile();
    const bool is_written = file && (size == 0 || std::fwrite(data, 1, size, file) == size);
    if (!is_written || std::fflush(file) != 0) std::abort();
    const bool has_zero_byte = std::find(data, data + size, 0) != data + size;
    for (const auto format :
         {gpt::PromptFormat::whole, gpt::PromptFormat::lines, gpt::PromptFormat::jsonl}) {
        try {
            read_prompts(fileno(file), format);
        } catch (const Error&) {  // "this is no text"
            if (!has_zero_byte) std::abort();
        }
    }
    std::fclose(file);
    return 0;
}

static const hark::fuzz::Target kPromptLines{"prompt_lines", prompt_lines_seeds,
                                             prompt_lines_input};
