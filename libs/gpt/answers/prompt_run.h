// A run of gpt-generate: the prompts of stdin, and their texts to stdout.
//
//     stdin -> PromptReader -> PromptAnswers -> Generator, or Engine for many -> AnswerWriter ->
//     stdout
#pragma once

#include <functional>
#include <memory>

#include "core/files/io.h"
#include "gpt/answers/answer_writer.h"
#include "gpt/answers/chat.h"
#include "gpt/answers/prompts.h"
#include "kernels/comm/shared_reader.h"

namespace hark {
class Communicator;
struct Context;
}  // namespace hark

namespace hark::gpt {

struct GenerateToolOptions;
struct Model;
class ModelFile;

class PromptRun {
  public:
    // Opens the model's file. One of several processes writes; all of them compute the same texts.
    // Throws Error for options that the processes or the device do not have. Holds references.
    PromptRun(const GenerateToolOptions& options, Console& console, Context& ctx,
              Communicator& ranks);

    // Reads the model, and answers all prompts. Throws Error as its parts do.
    void answer();

  private:
    void share_facts() const;
    void compute(const Model& model);
    void prefill(const Model& model);
    // Warns if all of stdin is the prompt, and it is empty.
    void use_prompts(const std::function<void(Prompt)>& use);
    void answer_at_once(const Model& model, bool waits);
    void answer_one_by_one(const Model& model);

    const GenerateToolOptions& options_;
    Console& console_;
    Context& ctx_;
    Communicator& ranks_;
    std::shared_ptr<ModelFile> file_;
    std::shared_ptr<const Tokenizer> tokenizer_;
    PromptEncoder encoder_;
    Interrupt interrupt_;
    SharedReader in_;
    ByteWriter out_;
    PromptReader prompts_;
    AnswerWriter answers_;
    GenerateOptions defaults_;
};

}  // namespace hark::gpt
