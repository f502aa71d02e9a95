#include "gpt/train/initial_model.h"

#include "core/error.h"
#include "core/models/models.h"
#include "gpt/families/model_file.h"
#include "gpt/train/run_folder.h"
#include "gpt/train/train_options.h"

namespace hark::gpt {
namespace {

constexpr int64_t kGpt2Vocabulary = 50257;

// A resumed run has a shape: that of the options must be equal.
void check_shape(const TrainOptions& options, const DecoderConfig& c) {
    if (!options.shape.given()) return;
    const DecoderConfig asked = options.shape.config(
        options.shape.vocab_size > 0 ? options.shape.vocab_size : c.n_vocab, options.length);
    const auto text = [](const DecoderConfig& c) {
        return concat(c.n_layer, " layers, width ", c.n_embd, ", ", c.n_head, " heads, context ",
                      c.n_positions, ", ", c.n_vocab, " tokens");
    };
    require(text(asked) == text(c), options.output_dir, ": this run was begun with ", text(c),
            " (got ", text(asked), "); give the same, or another --output-dir for a new run");
}

}  // namespace

InitialModel resolve_initial_model(const TrainOptions& options, const RunFolder& folder) {
    InitialModel initial;
    if (folder.newest() || (!options.model.empty() && !options.from_file())) {
        initial.directory = folder.newest() ? folder.path() : find_model(options.model, "gpt");
        initial.config = load_config(initial.directory);
        if (folder.newest()) check_shape(options, initial.config);
    } else if (options.from_file()) {
        initial.directory = options.tokenizer;
        initial.config = open_model(options.model)->config();
        require(initial.config.family == "gpt2", options.model, ": a model of family '",
                initial.config.family, "' is trained from a Hugging Face folder, found a file");
    } else {
        initial.directory = options.tokenizer;
        int64_t n_vocab = options.shape.vocab_size;
        if (options.is_synthetic() && options.tokenizer.empty() && n_vocab == 0)
            n_vocab = kGpt2Vocabulary;
        require(options.tokenizer.empty() != (n_vocab == 0),
                "a new model needs either --tokenizer or --vocab-size");
        if (n_vocab == 0) n_vocab = Bpe::from_directory(initial.directory).vocab_size();
        initial.config = options.shape.config(n_vocab, options.length);
    }
    if (initial.directory.empty()) return initial;
    const bool asked_for = initial.directory == options.tokenizer;
    if (!asked_for && !std::filesystem::exists(initial.directory / "tokenizer.json") &&
        !std::filesystem::exists(initial.directory / "vocab.json"))
        return initial;
    const Bpe& bpe = initial.bpe.emplace(Bpe::from_directory(initial.directory));
    require(bpe.vocab_size() <= initial.config.n_vocab, initial.directory.string(),
            ": the tokenizer has ", bpe.vocab_size(), " tokens, the model only ",
            initial.config.n_vocab);
    initial.end_of_text = bpe.special("<|endoftext|>");
    if (initial.end_of_text && initial.config.eos_token_ids.empty())
        initial.config.eos_token_ids = {*initial.end_of_text};
    return initial;
}

void init_parameters(const TrainOptions& options, const InitialModel& initial,
                     const ParameterLayout& layout, Tensor parameters) {
    if (options.model.empty())
        return layout.initialize(parameters, static_cast<uint64_t>(options.seed));
    const std::filesystem::path from =
        options.from_file() ? std::filesystem::path(options.model) : initial.directory;
    layout.read(parameters, open_model(from)->tensors());
}

}  // namespace hark::gpt
