#include "gpt/train/train_start.h"

#include "core/error.h"
#include "core/models.h"
#include "gpt/families/model_file.h"

namespace hark::gpt {
namespace {

constexpr int64_t kGpt2Vocabulary = 50257;

// A run that goes on has its shape: what the options say of one must be it.
void check_shape(const TrainOptions& options, const Config& c) {
    if (!options.shape.given()) return;
    const Config asked = options.shape.config(
        options.shape.vocab_size > 0 ? options.shape.vocab_size : c.n_vocab, options.length);
    const auto text = [](const Config& c) {
        return concat(c.n_layer, " layers, width ", c.n_embd, ", ", c.n_head, " heads, context ",
                      c.n_positions, ", ", c.n_vocab, " tokens");
    };
    require(text(asked) == text(c), options.output_dir, ": this run was begun with ", text(c),
            " (got ", text(asked), "); give the same, or another --output-dir for a new run");
}

}  // namespace

Start start_of(const TrainOptions& options, const RunFolder& folder) {
    Start start;
    if (folder.newest() || (!options.model.empty() && !options.from_file())) {
        start.directory = folder.newest() ? folder.path() : find_model(options.model, "gpt");
        start.config = load_config(start.directory);
        if (folder.newest()) check_shape(options, start.config);
    } else if (options.from_file()) {
        start.directory = options.tokenizer;
        start.config = open_model(options.model)->config();
    } else {
        start.directory = options.tokenizer;
        int64_t n_vocab = options.shape.vocab_size;
        if (options.is_synthetic() && options.tokenizer.empty() && n_vocab == 0)
            n_vocab = kGpt2Vocabulary;
        require(options.tokenizer.empty() != (n_vocab == 0),
                "a new model needs either --tokenizer or --vocab-size");
        if (n_vocab == 0) n_vocab = Bpe::from_directory(start.directory).vocab_size();
        start.config = options.shape.config(n_vocab, options.length);
    }
    if (start.directory.empty()) return start;
    const bool asked_for = start.directory == options.tokenizer;
    if (!asked_for && !std::filesystem::exists(start.directory / "tokenizer.json") &&
        !std::filesystem::exists(start.directory / "vocab.json"))
        return start;
    const Bpe& bpe = start.bpe.emplace(Bpe::from_directory(start.directory));
    require(bpe.vocab_size() <= start.config.n_vocab, start.directory.string(),
            ": the tokenizer has ", bpe.vocab_size(), " tokens, the model only ",
            start.config.n_vocab);
    start.end_of_text = bpe.special("<|endoftext|>");
    if (start.end_of_text && start.config.eos_token_ids.empty())
        start.config.eos_token_ids = {*start.end_of_text};
    return start;
}

void begin_parameters(const TrainOptions& options, const Start& start,
                      const ParameterLayout& layout, Tensor parameters) {
    if (options.model.empty())
        return layout.initialize(parameters, static_cast<uint64_t>(options.seed));
    const std::filesystem::path from =
        options.from_file() ? std::filesystem::path(options.model) : start.directory;
    layout.read(parameters, open_model(from)->tensors());
}

}  // namespace hark::gpt
