// A language model that is served, with all that its requests share.
#pragma once

#include <atomic>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "gpt/embed/embed_tokens.h"
#include "gpt/families/embedding_settings.h"
#include "serve/models/model_memory.h"
#include "serve/text/text_model_options.h"
#include "text/tokenizer.h"

namespace hark::gpt {
class AnswerPlanner;
struct Completion;
class Engine;
struct Model;
class ModelFile;
class PromptEncoder;
class PromptRequests;
struct ReasoningMarkers;
}  // namespace hark::gpt

namespace hark::serve {

class TextModel {
  public:
    // What the model of that file will take on the context's device; the weights not. Throws Error
    // as the engine does.
    static ModelNeed cache_need(const gpt::ModelFile& file, const Precision& precision,
                                const TextModelOptions& options, const Context& ctx);

    // Reads the model of that file. Throws Error as its readers and the engine do.
    TextModel(std::shared_ptr<gpt::ModelFile> file, const TextModelOptions& options,
              Console& console);
    ~TextModel();

    const Tokenizer& tokenizer() const { return *tokenizer_; }
    gpt::AnswerPlanner& planner() { return *planner_; }
    gpt::Engine& engine() { return *engine_; }
    // For the thread that steps the engine, before the first step: memory of a GPU is that of the
    // thread's current one.
    void use_on_this_thread();
    // Prompts as they are.
    gpt::PromptRequests& texts() { return *texts_; }
    // Prompts of messages; nullptr if the model has no chat template.
    gpt::PromptRequests* chats() { return chats_.get(); }
    bool has_chats() const { return chats_ != nullptr; }
    Communicator& ranks() const;
    // Tokens of prompt and answer.
    int64_t context() const;
    // Of a chat's answers; nullptr if there are none.
    const gpt::ReasoningMarkers* markers() const;
    // Whether the chat template reads a list of tools.
    bool takes_tools() const;
    // Throws WebError 400 that names the request's field for a token that there is not.
    void check_tokens(std::span<const int32_t> ids, const char* field) const;
    // What is put before a text that is embedded, and how long the two may be.
    const gpt::EmbedStreamOptions& embed_options() const { return embed_options_; }
    int64_t dimensions() const;
    // A vector per text of 1 token or more, of the first `dimensions`. Not while the engine's step
    // runs. Throws Error for a model whose outputs are not finite.
    std::vector<std::vector<float>> embed(std::span<const std::vector<int32_t>> texts,
                                          int64_t dimensions);
    // The tokens with their log probabilities, and those of the `likeliest` tokens at each place;
    // the first one, which nothing comes before, has 0 and none. As embed().
    gpt::Completion score(const std::vector<int32_t>& tokens, int64_t likeliest);
    // For the engine's thread: memory that passes have taken since counts from now on.
    void count_scratch();
    // Of weights, keys and values, and scratch. Any thread may call it.
    int64_t bytes() const;

  private:
    std::shared_ptr<gpt::ModelFile> file_;
    std::shared_ptr<const Tokenizer> tokenizer_;
    Context ctx_, whole_ctx_;  // for whole texts: a pass of the engine may be in flight
    gpt::Pooling pooling_ = gpt::Pooling::last_token;
    gpt::EmbedStreamOptions embed_options_;
    std::unique_ptr<const gpt::Model> model_;
    std::unique_ptr<gpt::AnswerPlanner> planner_;
    std::unique_ptr<gpt::PromptEncoder> text_encoder_, chat_encoder_;
    std::unique_ptr<gpt::PromptRequests> texts_, chats_;
    std::unique_ptr<gpt::Engine> engine_;
    std::atomic<int64_t> scratch_ = 0;  // bytes
};

}  // namespace hark::serve
