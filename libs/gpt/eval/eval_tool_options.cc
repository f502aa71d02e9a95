#include "gpt/eval/eval_tool_options.h"

#include <algorithm>

#include "gpt/eval/questions.h"
#include "text/utf8.h"

namespace hark::gpt {
namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";  // parse_json() skips it

std::string padded(std::string text, size_t columns) {
    text.resize(std::max(columns, text.size()), ' ');
    return text;
}

std::string number(double value, bool is_count) {
    char text[64];
    std::snprintf(text, sizeof text, is_count ? "%.0f" : "%.6g", value);
    return text;
}

}  // namespace

void EvalToolOptions::flags(Flags& flags) {
    choice.flags(flags);
    flags.add_name("against", against, "MODEL compare with this model, the original")
        .essential()
        .completes(Completes::model)
        .details(
            "For --task perplexity. The mean Kullback-Leibler divergence of the model's "
            "distributions from the original's, and how often the likeliest token is another one. "
            "The original has --dtype auto; it may be the model itself. Both models are in memory "
            "at the same time.");
    flags.section("Task");
    std::vector<std::string> tasks = question_tasks();
    tasks.insert(tasks.begin(), "perplexity");
    flags.add("task", task, tasks, "TASK to do")
        .essential()
        .own_variable()
        .details(
            "perplexity: lines with `text`. hellaswag, arc, mmlu: lines of these test sets as they "
            "are published. choice: lines with `context`, a list of `choices` and `answer`, the "
            "number of the right one from 0.");
    flags.add("input-format", input_format, {"jsonl", "text"}, "FORM format of stdin")
        .essential()
        .own_variable()
        .details("text: all of stdin is one text, for --task perplexity.");
    flags.add("context", context, "N tokens of a window; 0: the model's own", 0, int64_t{1} << 30)
        .own_variable()
        .details(
            "Longer texts are scored in windows of that size, each token once. The context "
            "of a question that is longer is cut at its beginning.");
    flags.section("Output");
    flags.add("format,f", format, {"text", "json"}, "FORM format of the measures")
        .essential()
        .own_variable();
    compute.flags(flags);
}

void EvalToolOptions::check() const {
    const bool texts = task == "perplexity";
    require_usage(texts || against.empty(), "--against needs --task perplexity (got ", task, ")");
    require_usage(texts || input_format == "jsonl",
                  "--input-format text needs --task perplexity (got ", task, ")");
    require_piped_stdin(texts ? "texts as JSON lines" : "questions as JSON lines",
                        texts ? "gpt-eval -m MODEL --input-format text < FILE"
                              : "gpt-eval -m MODEL --task " + task + " < FILE.jsonl");
}

bool EvalToolOptions::check_first(const std::string& line, const std::string& where) const {
    if (input_format == "text") return true;
    const size_t begin = line.starts_with(kByteOrderMark) ? kByteOrderMark.size() : 0;
    const size_t first = line.find_first_not_of(" \t", begin);
    if (first == std::string::npos) return false;
    // Of what begins as an object parse() says more.
    require(line[first] == '{' || nlohmann::json::accept(line), where,
            ": expected a JSON object, found text that is not JSON",
            task == "perplexity" ? "; --input-format text scores all of stdin as one text" : "");
    return true;
}

nlohmann::json EvalToolOptions::parse(const std::string& line) const {
    if (input_format == "text") return {{"text", replace_invalid(line)}};
    nlohmann::json root = parse_json(line, "the line");
    require(root.is_object(), "expected a JSON object, found ", json_kind(root));
    return root;
}

std::string EvalToolOptions::report(const std::vector<Measure>& measures) const {
    if (format == "json") {
        nlohmann::ordered_json root = {{"task", task}, {"model", choice.model}};
        if (!against.empty()) root["against"] = against;
        for (const Measure& measure : measures) {
            if (measure.is_count)
                root[measure.name] = static_cast<int64_t>(measure.value);
            else
                root[measure.name] = measure.value;
            if (measure.standard_error) root[measure.name + "_stderr"] = *measure.standard_error;
        }
        return json_text(root) + "\n";
    }
    size_t names = 0, values = 0;
    for (const Measure& measure : measures) {
        names = std::max(names, measure.name.size());
        values = std::max(values, number(measure.value, measure.is_count).size());
    }
    std::string text;
    for (const Measure& measure : measures) {
        std::string value = number(measure.value, measure.is_count);
        value.insert(0, values - value.size(), ' ');
        text += padded(measure.name, names) + "  " + value;
        if (measure.standard_error) text += " +/- " + number(*measure.standard_error, false);
        text += "\n";
    }
    return text;
}

}  // namespace hark::gpt
