#include "gpt/eval/questions.h"

#include <algorithm>

#include "core/error.h"
#include "text/jinja/case.h"
#include "text/utf8.h"

namespace hark::gpt {
namespace {

using nlohmann::json;

const json& field(const json& line, const char* name) {
    const auto found = line.find(name);
    require(found != line.end() && !found->is_null(), "expected a field ", name, ", found none");
    return *found;
}

std::string text(const json& value, const std::string& name) {
    require(value.is_string(), name, ": expected a text, found ", value.type_name());
    return value.get<std::string>();
}

std::string text_of(const json& line, const char* name) { return text(field(line, name), name); }

std::vector<std::string> texts(const json& value, const std::string& name) {
    require(value.is_array() && value.size() >= 2, name, ": expected 2 texts or more, found ",
            value.is_array() ? concat(value.size()) : value.type_name());
    std::vector<std::string> all;
    for (const json& one : value) all.push_back(text(one, name));
    return all;
}

// The place of the right choice: a number, or a text of one, below `count`.
int64_t place_of(const json& line, const char* name, size_t count) {
    const json& value = field(line, name);
    int64_t place = -1;
    if (value.is_number_integer()) place = value.get<int64_t>();
    if (value.is_string()) {
        const std::string digits = value.get<std::string>();
        if (digits.size() == 1 && digits[0] >= '0' && digits[0] <= '9') place = digits[0] - '0';
    }
    require(place >= 0 && place < static_cast<int64_t>(count), name, ": expected 0 to ", count - 1,
            ", found ", value.dump());
    return place;
}

std::string stripped(const std::string& text) {
    return jinja::strip(jinja::Text(text), nullptr, true, true).bytes();
}

void replace_all(std::string& text, std::string_view from, std::string_view to) {
    for (size_t at = 0; (at = text.find(from, at)) != text.npos; at += to.size())
        text.replace(at, from.size(), to);
}

// HellaSwag's marks of WikiHow: " [title]" ends a sentence, other brackets go with what is in them
// if they close on the same line.
std::string without_marks(const std::string& raw) {
    std::string text = stripped(raw);
    replace_all(text, " [title]", ". ");
    for (size_t at = 0; (at = text.find('[', at)) != text.npos;) {
        const size_t end = text.find_first_of("]\n", at);
        if (end != text.npos && text[end] == ']')
            text.erase(at, end + 1 - at);
        else
            ++at;
    }
    replace_all(text, "  ", " ");
    return text;
}

TextQuestion hellaswag(const json& line) {
    TextQuestion question;
    const std::string second = jinja::capitalize(jinja::Text(text_of(line, "ctx_b"))).bytes();
    question.context = without_marks(text_of(line, "activity_label") + ": " +
                                     text_of(line, "ctx_a") + " " + second);
    for (const std::string& ending : texts(field(line, "endings"), "endings"))
        question.choices.push_back(without_marks(ending));
    question.label = place_of(line, "label", question.choices.size());
    return question;
}

// ARC: {"question": {"stem", "choices": [{"text", "label"}]}, "answerKey"}, or Hugging Face's
// {"question", "choices": {"text": [], "label": []}, "answerKey"}.
TextQuestion arc(const json& line) {
    TextQuestion question;
    const json& asked = field(line, "question");
    std::vector<std::string> labels;
    if (asked.is_object()) {
        question.context = text_of(asked, "stem");
        const json& choices = field(asked, "choices");
        require(choices.is_array(), "choices: expected a list, found ", choices.type_name());
        for (const json& choice : choices) {
            require(choice.is_object(), "choices: expected objects, found ", choice.type_name());
            question.choices.push_back(text_of(choice, "text"));
            labels.push_back(text_of(choice, "label"));
        }
    } else {
        question.context = text(asked, "question");
        const json& choices = field(line, "choices");
        require(choices.is_object(), "choices: expected an object with text and label, found ",
                choices.type_name());
        question.choices = texts(field(choices, "text"), "choices.text");
        labels = texts(field(choices, "label"), "choices.label");
    }
    require(labels.size() == question.choices.size() && labels.size() >= 2,
            "choices: expected 2 or more with a label each, found ", question.choices.size(),
            " texts and ", labels.size(), " labels");
    question.context = "Question: " + question.context + "\nAnswer:";
    const std::string key = text_of(line, "answerKey");
    const auto found = std::find(labels.begin(), labels.end(), key);
    require(found != labels.end(), "answerKey: expected one of the labels, found '", key, "'");
    question.label = found - labels.begin();
    return question;
}

// {"question", "subject", "choices": [], "answer": 0}; the choices that are scored are letters.
TextQuestion mmlu(const json& line) {
    TextQuestion question;
    const std::vector<std::string> answers = texts(field(line, "choices"), "choices");
    require(answers.size() <= 26, "choices: expected 26 at most, found ", answers.size());
    if (line.contains("subject") && !line["subject"].is_null()) {
        std::string subject = text_of(line, "subject");
        std::replace(subject.begin(), subject.end(), '_', ' ');
        question.context = concat(
            "The following are multiple choice questions (with answers) about ", subject, ".\n\n");
    }
    question.context += stripped(text_of(line, "question"));
    for (size_t i = 0; i < answers.size(); ++i) {
        question.choices.push_back(std::string(1, static_cast<char>('A' + i)));
        question.context += "\n" + question.choices.back() + ". " + answers[i];
    }
    question.context += "\nAnswer:";
    question.label = place_of(line, "answer", answers.size());
    return question;
}

// {"context", "choices": [], "answer": 0}, scored as they are.
TextQuestion choice(const json& line) {
    TextQuestion question;
    question.context = text_of(line, "context");
    question.choices = texts(field(line, "choices"), "choices");
    question.label = place_of(line, "answer", question.choices.size());
    return question;
}

struct TaskForm {
    const char* name;
    TextQuestion (*read)(const json& line);
};
constexpr TaskForm kTasks[] = {
    {"hellaswag", hellaswag}, {"arc", arc}, {"mmlu", mmlu}, {"choice", choice}};

}  // namespace

const std::vector<std::string>& question_tasks() {
    static const std::vector<std::string> names = [] {
        std::vector<std::string> all;
        for (const TaskForm& task : kTasks) all.emplace_back(task.name);
        return all;
    }();
    return names;
}

TextQuestion read_question(const std::string& task, const json& line) {
    for (const TaskForm& form : kTasks)
        if (form.name == task) return form.read(line);
    fail("internal error: no task ", task);
}

int32_t prefix_token(const Tokenizer& tokenizer) {
    const Tokenizer::SpecialIds& special = tokenizer.special_ids();
    const std::optional<int32_t> prefix = special.bos   ? special.bos
                                          : special.eos ? special.eos
                                                        : tokenizer.end_of_text();
    require(prefix.has_value(),
            "the tokenizer has no token for the beginning or the end of a text: the first token "
            "of a text cannot be scored");
    return *prefix;
}

ChoiceQuestion encode_question(const Tokenizer& tokenizer, const TextQuestion& question,
                               int64_t positions) {
    ChoiceQuestion encoded{.label = question.label};
    // White space at the context's end belongs to the first word of the choice.
    const std::string context =
        jinja::strip(jinja::Text(question.context), nullptr, false, true).bytes();
    const std::string between = question.context.substr(context.size()) + " ";
    const auto encode = [&](const std::string& text) {
        std::vector<int32_t> ids;
        if (tokenizer.special_ids().add_bos) ids.push_back(*tokenizer.special_ids().bos);
        for (const int32_t id : tokenizer.encode(text, {.parse_specials = true})) ids.push_back(id);
        return ids;
    };
    encoded.context = encode(context);
    const size_t shared = encoded.context.size();
    for (size_t i = 0; i < question.choices.size(); ++i) {
        const std::string& choice = question.choices[i];
        const std::vector<int32_t> whole = encode(context + between + choice);
        require(whole.size() > shared, "choice ", i, ": it adds no token to the context (got '",
                choice, "')");
        encoded.choices.emplace_back(whole.begin() + static_cast<int64_t>(shared), whole.end());
        require(std::ssize(encoded.choices.back()) <= positions, "choice ", i, ": it has ",
                encoded.choices.back().size(), " tokens, the context only ", positions);
        require(!choice.empty(), "choice ", i, ": expected a text, found an empty one");
        encoded.characters.push_back(static_cast<int64_t>(count_code_points(choice)));
    }
    if (encoded.context.empty()) encoded.context = {prefix_token(tokenizer)};
    return encoded;
}

}  // namespace hark::gpt
