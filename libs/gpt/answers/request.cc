#include "gpt/answers/request.h"

#include <utility>

namespace hark::gpt {
namespace {

using nlohmann::ordered_json;

constexpr int64_t kMostTokens = 1 << 30;

// The field of that name; null if there is none, or it is null.
const ordered_json* field_of(const ordered_json& line, const char* name) {
    const auto found = line.find(name);
    return found == line.end() || found->is_null() ? nullptr : &*found;
}

std::string read_whole(const ordered_json& line, const char* name, int64_t min, int64_t max,
                       std::optional<int64_t>& value) {
    const ordered_json* const field = field_of(line, name);
    if (!field) return "";
    std::string wrong =
        wrong_number(name, *field, static_cast<double>(min), static_cast<double>(max), true);
    if (wrong.empty()) value = field->get<int64_t>();
    return wrong;
}

std::string read_stop(const ordered_json& line, std::optional<std::vector<std::string>>& stop) {
    const ordered_json* const field = field_of(line, "stop");
    if (!field) return "";
    const ordered_json list = field->is_array() ? *field : ordered_json::array({*field});
    stop.emplace();
    for (const ordered_json& text : list) {
        if (!text.is_string() || text.get_ref<const std::string&>().empty())
            return "stop: expected a text, or a list of texts, none of them empty";
        stop->push_back(text.get<std::string>());
    }
    return "";
}

std::string read_flag(const ordered_json& line, const char* name, std::optional<bool>& value) {
    const ordered_json* const field = field_of(line, name);
    if (!field) return "";
    if (!field->is_boolean())
        return concat(name, ": expected true or false, found ", field->type_name());
    value = field->get<bool>();
    return "";
}

std::string read_logprobs(const ordered_json& line, std::optional<bool>& wanted,
                          std::optional<int64_t>& likeliest) {
    std::string wrong = read_flag(line, "logprobs", wanted);
    if (!wrong.empty()) return wrong + "; their number is top_logprobs";
    wrong = read_whole(line, "top_logprobs", 0, kMostLogprobs, likeliest);
    if (wrong.empty() && likeliest && !wanted.value_or(false))
        wrong = "top_logprobs needs logprobs, which is not true";
    return wrong;
}

}  // namespace

void GenerateSettings::flags(Flags& flags) {
    flags.section("Sampling");
    flags
        .add("max-tokens", options_.max_tokens, "N most tokens per answer; 0: 200, or what fits", 0,
             kMostTokens)
        .essential()
        .details(
            "A prompt that leaves no room for them in the context is an error. With 0 the answer "
            "ends where the context does.");
    sampler_.flags(flags);
    flags.add("seed", options_.seed, "N seed of the random draws", 0, INT64_MAX)
        .essential()
        .details(
            "The same seed gives the same text: a draw depends on the seed and the token's place "
            "alone, on every device. Prompt I, counted from 0, draws with N + I.");
    flags.add("n", options_.samples, "N answers per prompt", 1, kMostSamples)
        .own_variable()
        .details("The first one is that of --n 1.");
    flags
        .add_repeated("stop", options_.stop,
                      "STRING text that ends an answer, and is not part of it")
        .details("May be given several times.");
    flags.add_switch("ignore-eos", options_.ignore_eos, "generate past the token that ends a text");
    flags
        .add("logprobs", options_.logprobs,
             "N jsonl: log probabilities of tokens, and of the N likeliest", 0, kMostLogprobs)
        .details(
            "Each token's, and those of the N likeliest at its place; 0: its own alone. Under the "
            "model itself, before any filter of the sampler.");
    constraint_.flags(flags);
    flags.section("Context");
    flags
        .add("context", options_.context, "N tokens that the cache holds; 0: the model's own", 0,
             kMostTokens)
        .own_variable()
        .details(
            "Prompt and answer, without the answer's last token. On a GPU their memory is taken at "
            "once, on the CPU as the text grows.");
    flags
        .add("prompt-cache", options_.prompt_cache,
             "FILE keep the first prompt's keys and values, or begin with them")
        .own_variable()
        .details(
            "If FILE is not there, it is written when the first prompt has been read. Later runs "
            "of the model do not compute again what their prompts have in common with FILE's. It "
            "is never changed.");
    flags
        .add("kv-dtype", options_.kv_dtype, {"auto", "f32", "f16", "bf16", "q8_0"},
             "TYPE type of keys and values")
        .own_variable()
        .details(
            "auto: f32 with --dtype auto on the CPU and with --dtype f32, bf16 for bf16 weights on "
            "a GPU, else f16. f16 and bf16 take half the memory of f32, q8_0 about a quarter; it "
            "needs heads of a multiple of 32 channels.");
}

void GenerateSettings::check() const {
    sampler_.check();
    constraint_.check();
    require_usage(!options_.ignore_eos || !constraint_.is_set(),
                  "--ignore-eos: a constrained answer ends where its constraint does");
    for (const std::string& text : options_.stop)
        require_usage(!text.empty(), "--stop: expected a string, got an empty text");
}

GenerateOptions GenerateSettings::options(const SamplingDefaults& model) const {
    GenerateOptions options = options_;
    SamplerSettings of_model;
    of_model.read(model, "the model's sampling defaults");
    of_model.apply_to(options.sampler);
    sampler_.apply_to(options.sampler);
    options.constraint = constraint_.request();
    return options;
}

std::string LineSettings::read(const ordered_json& line) {
    std::string wrong = sampler_.read(line);
    std::optional<int64_t> completion_tokens;
    const auto whole = [&](const char* name, int64_t min, int64_t max,
                           std::optional<int64_t>& value) {
        if (wrong.empty()) wrong = read_whole(line, name, min, max, value);
    };
    whole("max_tokens", 1, kMostTokens, max_tokens_);
    whole("max_completion_tokens", 1, kMostTokens, completion_tokens);
    whole("seed", 0, INT64_MAX, seed_);
    whole("n", 1, kMostSamples, samples_);
    if (completion_tokens) max_tokens_ = completion_tokens;
    if (wrong.empty()) wrong = read_stop(line, stop_);
    if (wrong.empty()) wrong = read_flag(line, "ignore_eos", ignore_eos_);
    if (wrong.empty()) wrong = read_logprobs(line, wants_logprobs_, logprobs_);
    if (wrong.empty()) wrong = read_constraint(line, constraint_);
    return wrong;
}

GenerateOptions LineSettings::over(GenerateOptions options, uint64_t index) const {
    sampler_.apply_to(options.sampler);
    const uint64_t run_seed = static_cast<uint64_t>(options.seed) + index;
    options.seed = seed_.value_or(static_cast<int64_t>(run_seed));
    options.max_tokens = max_tokens_.value_or(options.max_tokens);
    options.samples = samples_.value_or(options.samples);
    if (stop_) options.stop = *stop_;
    options.ignore_eos = ignore_eos_.value_or(options.ignore_eos);
    if (constraint_) options.constraint = *constraint_;
    if (wants_logprobs_ && !*wants_logprobs_) options.logprobs.reset();
    if (wants_logprobs_.value_or(false)) options.logprobs = logprobs_.value_or(0);
    return options;
}

}  // namespace hark::gpt
