#include "serve/text/text_model.h"

#include <random>
#include <utility>

#include "gpt/embed/embedder.h"
#include "gpt/engine/model_rows.h"
#include "kernels/runtime/transfer.h"

namespace hark::serve {
namespace {

gpt::GenerateOptions defaults_of(const gpt::ModelFile& file, const TextModelOptions& options) {
    gpt::GenerateOptions defaults = gpt::GenerateSettings().options(file.sampling_defaults());
    defaults.context = options.context;
    // A request without a seed draws with one that no other has: the next number.
    defaults.seed = static_cast<int64_t>(std::random_device()()) << 20;
    return defaults;
}

}  // namespace

TextModel::TextModel(std::shared_ptr<gpt::ModelFile> file, const TextModelOptions& options,
                     Console& console)
    : file_(std::move(file)),
      tokenizer_(file_->tokenizer()),
      ctx_(options.compute.context(console)),
      whole_ctx_(options.compute.context(console)) {
    ctx_.batch_invariant = ctx_.few_row_products = options.batch_invariant;
    whole_ctx_.batch_invariant = false;
    const Precision precision =
        precision_of(options.compute.dtype, ctx_.device, gpt::stored_type(*file_));
    model_ = std::make_unique<const gpt::Model>(
        gpt::read_model(file_, precision, ctx_.arena.source(), ctx_.threads));
    gpt::GenerateOptions defaults = defaults_of(*file_, options);
    planner_ = std::make_unique<gpt::AnswerPlanner>(model_->config, *tokenizer_, defaults);
    text_encoder_ = std::make_unique<gpt::PromptEncoder>(*file_, *tokenizer_, gpt::ChatOptions());
    texts_ = std::make_unique<gpt::PromptRequests>(*text_encoder_, *planner_, defaults);
    if (file_->chat_template() || !options.chat_template.empty()) {
        chat_encoder_ = std::make_unique<gpt::PromptEncoder>(
            *file_, *tokenizer_,
            gpt::ChatOptions{.chat = true, .template_file = options.chat_template});
        if (markers()) defaults.shown = gpt::marker_tokens(*markers(), *tokenizer_);
        chats_ = std::make_unique<gpt::PromptRequests>(*chat_encoder_, *planner_, defaults);
    }
    const gpt::EmbeddingSettings settings = file_->embedding_settings();
    pooling_ = settings.pooling;
    const auto prompt = settings.prompts.find(settings.default_prompt);
    if (prompt != settings.prompts.end()) embed_options_.before_text = prompt->second;
    embed_options_.longest = settings.longest_of(model_->config.n_positions);
    engine_ = std::make_unique<gpt::Engine>(
        ctx_, *model_, tokenizer_->vocab_size(),
        gpt::EngineOptions{.max_sequences = options.max_sequences,
                           .context = options.context,
                           .memory_fraction = options.memory_fraction});
}

void TextModel::use_on_this_thread() { wait_for(ctx_); }

std::vector<std::vector<float>> TextModel::embed(std::span<const std::vector<int32_t>> texts,
                                                 int64_t dimensions) {
    gpt::Embedder embedder(whole_ctx_, *model_,
                           {.pooling = pooling_, .dimensions = dimensions, .normalize = true});
    return embedder(texts);
}

gpt::Completion TextModel::score(const std::vector<int32_t>& tokens, int64_t likeliest) {
    gpt::Completion scored{.tokens = tokens, .logprobs = {0}, .likeliest = {{}}};
    gpt::PackedRows rows;
    for (size_t i = 0; i < tokens.size(); ++i)
        rows.push(tokens[i], i + 1 < tokens.size() ? tokens[i + 1] : -1);
    rows.end_sequence();
    gpt::ModelRows model(whole_ctx_, *model_);
    // Rows come in the text's order.
    model.states(rows, [&](std::span<const int32_t>, Tensor states) {
        gpt::for_logits(whole_ctx_, *model_, states, [&](int64_t, Tensor logits) {
            const Tensor host = to_host(whole_ctx_, logits);
            const auto columns = static_cast<size_t>(tokenizer_->vocab_size());
            for (int64_t row = 0; row < host.dim(0); ++row) {
                const std::span<const float> of(host.slice(row, row + 1).as<float>(), columns);
                const int32_t next = tokens[scored.logprobs.size()];
                scored.logprobs.push_back(gpt::log_probability(of, next));
                scored.likeliest.push_back(gpt::likeliest_tokens(of, likeliest));
            }
        });
    });
    return scored;
}

}  // namespace hark::serve
