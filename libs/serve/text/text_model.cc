#include "serve/text/text_model.h"

#include <algorithm>
#include <random>
#include <utility>

#include "gpt/answers/batch_options.h"
#include "gpt/answers/prompt_requests.h"
#include "gpt/decoder/model.h"
#include "gpt/embed/embedder.h"
#include "gpt/engine/engine.h"
#include "gpt/engine/model_rows.h"
#include "gpt/engine/prompt_pieces.h"
#include "gpt/families/model_file.h"
#include "gpt/families/tensor_slices.h"
#include "kernels/runtime/transfer.h"
#include "serve/web/web_error.h"

namespace hark::serve {
namespace {

gpt::GenerateOptions defaults_of(const gpt::ModelFile& file, const TextModelOptions& options) {
    gpt::GenerateOptions defaults = gpt::GenerateSettings().options(file.sampling_defaults());
    defaults.context = options.context;
    // A request without a seed draws with one that no other has: the next number.
    defaults.seed = static_cast<int64_t>(std::random_device()()) << 20;
    return defaults;
}

// Of the passes of one model: rows of activations, and logits. The widest places of a block are
// its MLP, and the channels before and after attention.
int64_t scratch_bytes(const gpt::DecoderConfig& config, const Precision& precision, int64_t rows,
                      int64_t sequences) {
    const int64_t inner =
        std::max(config.n_inner,
                 config.experts.per_token * config.experts.n_inner + config.experts.n_shared_inner);
    const int64_t row =
        4 * config.n_embd + 2 * config.q_width() + 2 * config.kv_width() + 3 * inner;
    const int64_t logits = 2 * sequences * config.n_vocab * static_cast<int64_t>(sizeof(float));
    return rows * row * static_cast<int64_t>(size_of(precision.activations)) + logits;
}

gpt::EngineOptions engine_options(const TextModelOptions& options) {
    return {.max_sequences = options.max_sequences,
            .context = options.context,
            .cache_bytes = options.cache_bytes};
}

}  // namespace

ModelNeed TextModel::cache_need(const gpt::ModelFile& file, const Precision& precision,
                                const TextModelOptions& options, const Context& ctx) {
    constexpr int64_t kLeastTokens = 2048;
    const gpt::DecoderConfig config = gpt::sliced_config(file.config(), options.ranks->size());
    const gpt::CacheBytes cache = gpt::cache_bytes(ctx, config, precision, engine_options(options));
    const int64_t sequences =
        options.max_sequences > 0 ? options.max_sequences : gpt::default_sequences(ctx);
    return {.scratch = scratch_bytes(config, precision, gpt::prompt_rows(ctx), sequences),
            .least = std::min(cache.token * kLeastTokens, cache.most),
            .most = cache.most};
}

TextModel::TextModel(std::shared_ptr<gpt::ModelFile> file, const TextModelOptions& options,
                     Console& console)
    : file_(std::move(file)),
      tokenizer_(file_->tokenizer()),
      ctx_(options.compute.context(console)),
      whole_ctx_(options.compute.context(console)) {
    ctx_.batch_invariant = ctx_.few_row_products = options.batch_invariant;
    whole_ctx_.batch_invariant = false;
    gpt::check_independent_sums(ctx_, *options.ranks);
    const Precision precision =
        precision_of(options.compute.dtype, ctx_.device, gpt::stored_type(*file_));
    model_ = std::make_unique<const gpt::Model>(
        gpt::read_model(file_, precision, ctx_.arena.source(), ctx_.threads, *options.ranks));
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
    engine_ = std::make_unique<gpt::Engine>(ctx_, *model_, tokenizer_->vocab_size(),
                                            engine_options(options));
    scratch_ =
        scratch_bytes(model_->config, precision, gpt::prompt_rows(ctx_), engine_->max_sequences());
}

TextModel::~TextModel() = default;

Communicator& TextModel::ranks() const { return *model_->ranks; }
int64_t TextModel::context() const { return planner_->context(); }
int64_t TextModel::dimensions() const { return model_->config.n_embd; }

const gpt::ReasoningMarkers* TextModel::markers() const {
    return chat_encoder_ ? chat_encoder_->markers() : nullptr;
}

bool TextModel::takes_tools() const { return chat_encoder_ && chat_encoder_->takes_tools(); }

void TextModel::count_scratch() {
    const auto taken = static_cast<int64_t>(ctx_.arena.capacity() + whole_ctx_.arena.capacity());
    scratch_ = std::max(scratch_.load(), taken);
}

int64_t TextModel::bytes() const {
    return static_cast<int64_t>(model_->weights.bytes()) + engine_->cache_bytes() + scratch_;
}

void TextModel::check_tokens(std::span<const int32_t> ids, const char* field) const {
    for (const int32_t id : ids)
        if (!tokenizer_->has(id)) throw WebError(400, concat(field, ": no token ", id), field);
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
