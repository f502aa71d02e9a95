#include "operations/advice/proof.h"

#include <chrono>
#include <filesystem>
#include <sstream>

#include "core/error.h"
#include "core/files/files.h"
#include "eval/normalizer.h"
#include "eval/word_errors.h"
#include "gpt/decoder/model.h"
#include "gpt/engine/engine.h"
#include "hub/model_handle.h"
#include "hub/verify.h"
#include "kernels/runtime/backend.h"
#include "operations/doctor/finding.h"
#include "text/line_reader.h"
#include "whisper/model/model.h"
#include "whisper/transcribe/transcribe_options.h"

namespace hark::advice {
namespace {

namespace fs = std::filesystem;

using doctor::figure;

constexpr size_t kLeastPrompts = 64;  // of samples/, which are repeated
constexpr double kShortSeconds = 20;  // of a run: another one is made
constexpr double kWarmSeconds = 2;    // of work: it is done again, without what a first time costs

// The quicker time, if the work is short. `work` returns the seconds that do not count.
double seconds_of(const std::function<double()>& work) {
    const auto once = [&] {
        const auto begin = std::chrono::steady_clock::now();
        const double others = work();
        const std::chrono::duration<double> all = std::chrono::steady_clock::now() - begin;
        return all.count() - others;
    };
    const double first = once();
    return first < kWarmSeconds ? std::min(first, once()) : first;
}

fs::path samples() {
    const fs::path tree = HARK_SOURCE_TREE;  // empty in a package
    std::error_code failed;
    require(!tree.empty() && fs::is_directory(tree / "samples", failed),
            "--run: no samples are installed; give --input FILE");
    return tree / "samples";
}

// The rows of the table of samples/: file, language, voice, sentence.
struct Sample {
    std::string path, sentence;
};
std::vector<Sample> sample_rows() {
    const fs::path folder = samples();
    std::istringstream table(read_file(folder / "transcripts.tsv"));
    std::vector<Sample> rows;
    std::string line;
    std::getline(table, line);  // the heading
    while (std::getline(table, line))
        rows.push_back({(folder / line.substr(0, line.find('\t'))).string(),
                        line.substr(line.rfind('\t') + 1)});
    std::erase_if(rows, [](const Sample& row) { return row.sentence.empty(); });
    return rows;
}

std::vector<std::string> recordings(const std::vector<std::string>& inputs) {
    if (!inputs.empty()) return inputs;
    std::vector<std::string> paths;
    for (const Sample& row : sample_rows()) paths.push_back(row.path);
    return paths;
}

std::vector<std::string> prompt_lines(const std::vector<std::string>& inputs) {
    std::vector<std::string> prompts;
    for (const std::string& input : inputs) {
        const std::string text = read_file_or_pipe(input);
        require_text(text, input);
        std::istringstream lines(text);
        for (std::string line; std::getline(lines, line);)
            if (!line.empty()) prompts.push_back(line);
    }
    require(inputs.empty() || !prompts.empty(), inputs.empty() ? "" : inputs[0],
            ": no lines to continue");
    if (!prompts.empty()) return prompts;
    for (const Sample& row : sample_rows()) prompts.push_back(row.sentence);
    return prompts;
}

ProofRun run_whisper(Context& ctx, whisper::ModelFile& file, const Choice& choice,
                     const std::vector<std::string>& paths, double& audio_seconds) {
    const whisper::Model model =
        whisper::read_model(file, precision_of(choice.type, ctx.device, file.stored_type()),
                            ctx.arena.source(), ctx.threads);
    const whisper::Tokenizer tokenizer = file.tokenizer();
    whisper::TranscribeOptions options;
    options.batch_size = choice.batch;
    models::TranscribedFiles files;
    ProofRun run{choice};
    run.seconds = seconds_of([&] {
        files = models::transcribe_files(ctx, model, tokenizer, options, paths);
        return files.decode_seconds;  // in a pipe other tools decode meanwhile
    });
    for (const Transcript& transcript : files.transcripts) {
        require(transcript.error.empty(), transcript.error);
        run.texts.push_back(transcript.text);
    }
    audio_seconds = files.seconds;
    run.speed = files.seconds / run.seconds;
    return run;
}

ProofRun run_gpt(Context& ctx, const std::shared_ptr<gpt::ModelFile>& file, const Choice& choice,
                 const std::vector<std::string>& prompts, const Load& load, double& tokens) {
    ctx.batch_invariant = false;  // as gpt-generate without flags
    const Precision precision = precision_of(choice.type, ctx.device, gpt::stored_type(*file));
    const gpt::Model model = gpt::read_model(file, precision, ctx.arena.source(), ctx.threads);
    const std::shared_ptr<const Tokenizer> tokenizer = file->tokenizer();
    gpt::EngineOptions sizes;
    sizes.max_sequences = choice.batch;
    sizes.prefix_cache = false;  // prompts are repeated
    const int64_t positions = model.config.n_positions;
    std::vector<std::vector<int32_t>> answers, encoded;  // answers of all runs, by their numbers
    for (const std::string& prompt : prompts) {
        encoded.push_back(tokenizer->encode(prompt));
        const int64_t length = std::ssize(encoded.back()) + load.max_tokens;
        require(length <= positions, "--run: a prompt and --max-tokens ", load.max_tokens, " have ",
                length, " tokens, the model has ", positions, " positions");
        sizes.context = std::max(sizes.context, length);
    }
    gpt::Engine engine(ctx, model, std::min<int64_t>(tokenizer->vocab_size(), model.config.n_vocab),
                       sizes);
    ProofRun run{choice};
    run.seconds = seconds_of([&] {
        answers.resize(answers.size() + prompts.size());
        for (const std::vector<int32_t>& prompt : encoded) {
            gpt::TextRequest request;
            request.prompt = prompt;
            request.sampler.temperature = 0;
            request.max_tokens = load.max_tokens;
            engine.add(std::move(request));
        }
        while (!engine.is_idle())
            for (const gpt::EngineToken& token : engine.step()) {
                require(token.error.empty(), token.error);
                answers[token.id].push_back(token.sampled.token);
            }
        return 0.0;
    });
    tokens = 0;
    answers.resize(prompts.size());
    for (const std::vector<int32_t>& answer : answers) {
        tokens += static_cast<double>(answer.size());
        run.texts.push_back(tokenizer->decode(answer));
    }
    run.speed = tokens / run.seconds;
    return run;
}

std::string run_text(const char* name, const Proof& proof, const ProofRun& run) {
    return concat(name, run.choice.type == "auto" ? "" : concat(type_flag(run.choice.type), " "),
                  proof.is_whisper ? "--batch-size " : "--max-sequences ", run.choice.batch, ": ",
                  figure(run.seconds), " s, ", figure(run.speed),
                  proof.is_whisper ? " times real time" : " tokens/s", "\n");
}

nlohmann::ordered_json run_json(const ProofRun& run) {
    return {{"type", run.choice.type},
            {"batch", run.choice.batch},
            {"seconds", run.seconds},
            {"speed", run.speed}};
}

}  // namespace

Proof prove(Context& ctx, const models::ModelHandle& model, const Analysis& analysis,
            const std::vector<std::string>& inputs) {
    require(analysis.standard.batch > 0, "--run: the model does not fit into memory");
    Proof proof;
    proof.is_whisper = model.whisper != nullptr;
    const bool has_advice = analysis.best_flags.type != analysis.standard.type ||
                            analysis.best_flags.batch != analysis.standard.batch;
    std::vector<std::pair<Choice, ProofRun*>> runs = {{analysis.standard, &proof.standard}};
    if (has_advice) runs.emplace_back(analysis.best_flags, &proof.advised);
    std::vector<std::string> given = proof.is_whisper ? recordings(inputs) : prompt_lines(inputs);
    size_t largest = 0;
    for (const auto& [choice, best] : runs)
        largest = std::max(largest, static_cast<size_t>(choice.batch));
    if (inputs.empty()) {  // samples/
        const size_t least = std::max(largest, proof.is_whisper ? 0 : kLeastPrompts);
        for (size_t i = 0; given.size() < least; ++i) given.push_back(given[i]);
    }
    if (has_advice && analysis.best_flags.batch > analysis.standard.batch && given.size() < largest)
        proof.unfilled_batch = analysis.best_flags.batch;
    // The file is kept by the language models that are read from it.
    const std::shared_ptr<gpt::ModelFile> gpt(model.gpt.get(), [](gpt::ModelFile*) {});
    for (int round = 0; round < 2; ++round)
        for (const auto& [choice, best] : runs) {
            if (round > 0 && best->seconds > kShortSeconds) continue;
            ProofRun run = proof.is_whisper
                               ? run_whisper(ctx, *model.whisper, choice, given, proof.amount)
                               : run_gpt(ctx, gpt, choice, given, analysis.load, proof.amount);
            if (round == 0 || run.seconds < best->seconds) *best = std::move(run);
        }
    proof.inputs = std::ssize(given);
    for (size_t i = 0; has_advice && i < proof.standard.texts.size(); ++i) {
        const Comparison comparison = compare_words(normalize_basic(proof.standard.texts[i]),
                                                    normalize_basic(proof.advised.texts[i]));
        proof.words += comparison.counts.reference_words();
        proof.changed += comparison.counts.words.errors();
    }
    return proof;
}

std::string proof_text(const Proof& proof) {
    const std::string amount =
        proof.is_whisper
            ? concat(proof.inputs, proof.inputs == 1 ? " recording of " : " recordings of ",
                     figure(proof.amount), " s")
            : concat(proof.inputs, proof.inputs == 1 ? " prompt, " : " prompts, ",
                     figure(proof.amount), " tokens");
    const std::string few = proof.unfilled_batch == 0
                                ? ""
                                : concat("they do not fill a batch of ", proof.unfilled_batch,
                                         ", so its gain is not shown; give more by --input\n");
    const std::string before = concat("run on this machine: ", amount, ", without loading",
                                      proof.is_whisper ? " and decoding\n" : "\n", few,
                                      run_text("default  ", proof, proof.standard));
    if (proof.advised.choice.batch == 0) return before + "advised  no flags\n";
    const std::string words = proof.changed == 0
                                  ? concat("all ", proof.words, " words are the same")
                                  : concat(proof.changed, " of ", proof.words, " words change");
    return concat(before, run_text("advised  ", proof, proof.advised),
                  figure(proof.standard.seconds / proof.advised.seconds), " times as fast; ", words,
                  "\n");
}

nlohmann::ordered_json proof_json(const Proof& proof) {
    nlohmann::ordered_json json = {{"inputs", proof.inputs},
                                   {"amount", proof.amount},
                                   {"fills_batch", proof.unfilled_batch == 0},
                                   {"default", run_json(proof.standard)},
                                   {"advised", nullptr}};
    if (proof.advised.choice.batch == 0) return json;
    json["advised"] = run_json(proof.advised);
    json["gain"] = proof.standard.seconds / proof.advised.seconds;
    json["words"] = proof.words;
    json["changed_words"] = proof.changed;
    return json;
}

}  // namespace hark::advice
