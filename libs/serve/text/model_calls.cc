#include "serve/text/model_calls.h"

#include <string>
#include <type_traits>
#include <utility>

#include "core/error.h"
#include "gpt/answers/prompt_requests.h"
#include "kernels/comm/communicator.h"
#include "serve/text/text_job.h"
#include "serve/text/text_model.h"

namespace hark::serve {
namespace {

using nlohmann::json;

// Calls use() with each number or list of numbers. A field that is added to the options does not
// compile here until it has a place.
template <class Options, class Use>
void for_numbers(Options& options, const Use& use) {
    auto& [temperature, top_k, top_p, min_p, repetition, presence, frequency, typical_p,
           xtc_probability, xtc_threshold, mirostat, tau, eta, dry, bias, constraint] = options;
    auto& [multiplier, base, allowed_length, breakers] = dry;
    for (auto* const number :
         {&temperature, &top_p, &min_p, &repetition, &presence, &frequency, &typical_p,
          &xtc_probability, &xtc_threshold, &tau, &eta, &multiplier, &base})
        use(*number);
    for (auto* const number : {&top_k, &mirostat, &allowed_length}) use(*number);
    use(breakers);
    use(bias);
    static_cast<void>(constraint);
}

// bytes = rank 0's bytes, whatever their number.
void share_message(Communicator& ranks, std::vector<uint8_t>& bytes) {
    uint64_t size = bytes.size();
    ranks.share(std::as_writable_bytes(std::span(&size, 1)), 0);
    bytes.resize(size);
    ranks.share(std::as_writable_bytes(std::span(bytes)), 0);
}

gpt::TextRequest request_of(const TextJob& job, int64_t sample) {
    return {.prompt = job.tokens,
            .sampler = job.sampler,
            .seed = gpt::sample_seed(static_cast<uint64_t>(job.options.seed), sample),
            .max_tokens = job.plan.max_tokens,
            .likeliest = job.options.logprobs.value_or(0)};
}

// A call of add().
json added(const gpt::TextRequest& request, const TextJob& job) {
    return {{"do", "add"},
            {"prompt", request.prompt},
            {"sampler", sampler_json(request.sampler)},
            {"seed", request.seed},
            {"max_tokens", request.max_tokens},
            {"likeliest", request.likeliest},
            {"constraint", job.options.constraint.kind},
            {"constraint_text", job.options.constraint.text},
            {"is_chat", job.is_chat},
            {"opens_reasoning", job.prompt.opens_reasoning}};
}

void follow_add(TextModel& model, const json& call) {
    gpt::TextRequest request{.prompt = call["prompt"].get<std::vector<int32_t>>(),
                             .sampler = sampler_of(call["sampler"]),
                             .seed = call["seed"].get<uint64_t>(),
                             .max_tokens = call["max_tokens"].get<int64_t>(),
                             .likeliest = call["likeliest"].get<int64_t>()};
    gpt::PromptRequests& requests = call["is_chat"].get<bool>() ? *model.chats() : model.texts();
    request.sampler.constraint =
        requests.masks({call["constraint"].get<gpt::ConstraintRequest::Kind>(),
                        call["constraint_text"].get<std::string>()},
                       call["opens_reasoning"].get<bool>());
    try {
        model.engine().add(std::move(request));
    } catch (const Error& why) {  // rank 0's engine has refused it too
        if (is_out_of_memory(why)) throw;
    }
}

// An error that only a lack of memory explains is of this process alone.
template <class Compute>
void follow_whole_texts(const Compute& compute) {
    try {
        compute();
    } catch (const std::exception& why) {
        if (is_out_of_memory(why)) throw;
    }
}

void follow(TextModel& model, const json& call) {
    const std::string what = call["do"];
    if (what == "add") return follow_add(model, call);
    if (what == "end") return model.engine().end(call["id"].get<uint64_t>());
    if (what == "step") {
        model.engine().step();
        return;
    }
    follow_whole_texts([&] {
        if (what == "embed")
            model.embed(call["texts"].get<std::vector<std::vector<int32_t>>>(),
                        call["dimensions"].get<int64_t>());
        else
            model.score(call["tokens"].get<std::vector<int32_t>>(),
                        call["likeliest"].get<int64_t>());
    });
}

}  // namespace

json sampler_json(const gpt::SamplerOptions& options) {
    json numbers = json::array();
    for_numbers(options, [&](const auto& field) { numbers.push_back(field); });
    return numbers;
}

gpt::SamplerOptions sampler_of(const json& numbers) {
    gpt::SamplerOptions options;
    size_t i = 0;
    for_numbers(options, [&](auto& field) {
        field = numbers.at(i++).get<std::remove_reference_t<decltype(field)>>();
    });
    return options;
}

void ModelCalls::tell(const std::function<json()>& call) {
    if (!is_alone_) told_.push_back(call());
}

void ModelCalls::send() {
    if (is_alone_) return;
    std::vector<uint8_t> bytes = json::to_cbor(std::exchange(told_, json::array()));
    share_message(model_.ranks(), bytes);
}

ModelCalls::ModelCalls(TextModel& model) : model_(model), is_alone_(model.ranks().alone()) {}

bool ModelCalls::is_fatal(const std::exception& why) const {
    return !is_alone_ && is_out_of_memory(why);
}

uint64_t ModelCalls::add(const TextJob& job, int64_t sample) {
    gpt::TextRequest request = request_of(job, sample);
    tell([&] { return added(request, job); });
    return model_.engine().add(std::move(request));
}

void ModelCalls::end(uint64_t id) {
    tell([&] { return json({{"do", "end"}, {"id", id}}); });
    model_.engine().end(id);
}

std::vector<gpt::EngineToken> ModelCalls::step() {
    tell([&] { return json({{"do", "step"}}); });
    send();
    return model_.engine().step();
}

std::vector<std::vector<float>> ModelCalls::embed(const std::vector<std::vector<int32_t>>& texts,
                                                  int64_t dimensions) {
    tell([&] { return json({{"do", "embed"}, {"texts", texts}, {"dimensions", dimensions}}); });
    send();
    return model_.embed(texts, dimensions);
}

gpt::Completion ModelCalls::score(const std::vector<int32_t>& tokens, int64_t likeliest) {
    tell([&] { return json({{"do", "score"}, {"tokens", tokens}, {"likeliest", likeliest}}); });
    send();
    return model_.score(tokens, likeliest);
}

void ModelCalls::finish() {
    tell([&] { return json({{"do", "finish"}}); });
    send();
}

void follow_calls(TextModel& model) {
    model.use_on_this_thread();
    std::vector<uint8_t> bytes;
    while (true) {
        share_message(model.ranks(), bytes);
        for (const json& call : json::from_cbor(bytes)) {
            if (call["do"] == "finish") return;
            follow(model, call);
        }
    }
}

}  // namespace hark::serve
