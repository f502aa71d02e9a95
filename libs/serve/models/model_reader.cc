#include "serve/models/model_reader.h"

#include <algorithm>
#include <utility>

#include "gpt/families/config.h"
#include "hub/model_handle.h"
#include "kernels/cpu/cpu.h"
#include "serve/audio/audio_model.h"
#include "serve/models/audio_served.h"
#include "serve/models/model_list.h"
#include "serve/models/text_served.h"
#include "serve/serve_options.h"
#include "serve/text/text_model.h"

namespace hark::serve {
namespace {

struct OpenedFile {
    models::ModelHandle model;
    bool is_named = false;
};

// All ranks have the same caches. On the CPU they may share a machine's memory.
int64_t memory_of(const ServeOptions& options, const Context& ctx) {
    Communicator& ranks = *options.text.ranks;
    const int64_t own = free_memory(ctx) / (ctx.on_cuda() ? 1 : ranks.size());
    return static_cast<int64_t>(options.memory_fraction * ranks.least(static_cast<double>(own)));
}

// Of a rank's slice: its share of all but the table of tokens.
int64_t sliced_bytes(int64_t weights, const gpt::DecoderConfig& config, const Precision& precision,
                     int64_t ranks) {
    const int64_t table = std::min(
        weights, config.n_vocab * config.n_embd * static_cast<int64_t>(size_of(precision.cache)));
    return table + (weights - table) / ranks;
}

}  // namespace

ModelReader::ModelReader(const ServeOptions& options, Console& console)
    : options_(options),
      console_(console),
      ctx_(options.compute.context(console)),
      memory_(memory_of(options, ctx_)) {
    ctx_.batch_invariant = ctx_.few_row_products = options.text.batch_invariant;
}

std::string ModelReader::computes_with() const {
    return ctx_.on_cuda() ? std::string("a GPU")
                          : concat(cpu_kernels().name, " with ", ctx_.threads, " threads");
}

TextModelOptions ModelReader::text_options(const gpt::ModelFile& file, bool is_named) const {
    TextModelOptions options = options_.text_options();
    if (is_named) return options;
    options.chat_template.clear();
    options.context = std::min(options.context, file.config().n_positions);
    return options;
}

OpenedModel ModelReader::open(const std::string& path, bool is_named) const {
    const auto file =
        std::make_shared<OpenedFile>(OpenedFile{models::open_any_model(path), is_named});
    const models::ModelHandle& model = file->model;
    OpenedModel opened{.facts = facts_of(model, options_.text.context), .file = file};
    if (is_named && model.gpt && !options_.text.chat_template.empty())
        opened.facts.has_chats = true;
    const Precision precision =
        precision_of(options_.compute.dtype, ctx_.device,
                     model.gpt ? gpt::stored_type(*model.gpt) : model.whisper->stored_type());
    opened.need =
        model.gpt
            ? TextModel::cache_need(*model.gpt, precision, text_options(*model.gpt, is_named), ctx_)
            : AudioModel::cache_need(*model.whisper, precision, options_.audio_options(), ctx_);
    opened.need.weights = weight_bytes(model, path, precision);
    if (model.gpt)
        opened.need.weights = sliced_bytes(opened.need.weights, model.gpt->config(), precision,
                                           options_.text.ranks->size());
    return opened;
}

std::shared_ptr<ServedModel> ModelReader::read(const std::string& name, const OpenedModel& opened,
                                               int64_t cache_bytes) const {
    auto& [model, is_named] = *std::static_pointer_cast<OpenedFile>(opened.file);
    if (model.gpt) {
        TextModelOptions options = text_options(*model.gpt, is_named);
        options.cache_bytes = cache_bytes;
        return std::make_shared<TextServed>(
            std::make_unique<TextModel>(std::move(model.gpt), options, console_),
            TextServiceOptions{name, options_.most_waiting, options_.keep_seconds}, thread_);
    }
    AudioModelOptions options = options_.audio_options();
    options.cache_bytes = cache_bytes;
    return std::make_shared<AudioServed>(
        std::make_unique<AudioModel>(std::move(model.whisper), options, console_),
        AudioServiceOptions{name, options_.most_waiting, options_.most_live}, thread_);
}

}  // namespace hark::serve
