#include "core/cli/complete.h"

#include <optional>
#include <sstream>

#include "core/error.h"

namespace hark {
namespace {

std::vector<std::string> split(const std::string& text, char separator) {
    std::vector<std::string> parts;
    std::istringstream in(text);
    for (std::string part; std::getline(in, part, separator);) parts.push_back(part);
    return parts;
}

// A line of a tool's table (core/cli/help_forms.h).
struct Row {
    std::string name, letter, metavar, is_switch, completes, choices, help;
};

std::vector<Row> rows_of(const std::string& table) {
    std::vector<Row> rows;
    for (const std::string& line : split(table, '\n')) {
        const std::vector<std::string> f = split(line, '\t');
        if (f.size() == 7) rows.push_back({f[0], f[1], f[2], f[3], f[4], f[5], f[6]});
    }
    return rows;
}

// The row whose value follows `word`: --model, or -m.
const Row* taking_value(const std::vector<Row>& rows, const std::string& word) {
    for (const Row& row : rows)
        if (row.name != "-" && row.metavar != "-" &&
            (word == "--" + row.name || (row.letter != "-" && word == "-" + row.letter)))
            return &row;
    return nullptr;
}

struct Completion {
    const ProgramOutput& output;
    std::string typed;       // what the candidates begin with
    std::string candidates;  // a line each
    std::string files = ":";

    void offer(const std::string& candidate, const std::string& description = "-") {
        if (candidate.starts_with(typed))
            candidates += candidate + (description == "-" ? "" : "\t" + description) + "\n";
    }

    // `kind`: "model", "whisper-model" or "gpt-model".
    void offer_models(const std::string& kind, const std::string& before) {
        files = ":file";
        const std::vector<std::string> names =
            split(output({"hark-model", "list", "--format", "names"}), '\n');
        const std::string own = kind.substr(0, kind.find("model"));  // "whisper-", or empty
        for (const std::string& name : names)
            if (name.starts_with(own) || !(name.starts_with("whisper-") || name.starts_with("gpt-")))
                offer(before + name);
        // "demo" for "whisper-demo", if that is what was begun.
        if (!candidates.empty() || own.empty()) return;
        for (const std::string& name : names)
            if (name.starts_with(own)) offer(before + name.substr(own.size()));
    }

    // The first column of the table of models to download.
    void offer_published(const std::string& before) {
        for (const std::string& line : split(output({"hark-model", "get", "--list"}), '\n'))
            if (!line.starts_with("NAME ")) offer(before + line.substr(0, line.find(' ')));
    }

    // `before` is the part of the typed word before the value: "--format=".
    void offer_value(const Row& row, std::string before) {
        if (row.completes == "published-model") return offer_published(before);
        if (row.completes.ends_with("model")) return offer_models(row.completes, before);
        if (row.completes == "file" || row.completes == "directory") files = ":" + row.completes;
        if (row.choices == "-") return;
        if (const size_t comma = typed.rfind(',');
            row.metavar.ends_with(",...") && comma != std::string::npos && comma >= before.size())
            before = typed.substr(0, comma + 1);
        for (const std::string& choice : split(row.choices, ',')) offer(before + choice);
    }

    void offer_flags(const std::vector<Row>& rows) {
        for (const Row& row : rows) {
            if (row.name == "-") continue;
            offer("--" + row.name, row.help);
            if (row.is_switch != "-" && typed.starts_with("--no")) offer("--no-" + row.name);
        }
    }
};

}  // namespace

std::string complete(const std::vector<std::string>& words, const ProgramOutput& output) {
    if (words.size() < 2) return ":\n";
    const size_t last = words.size() - 1;
    Completion completion{output, words[last], "", ":"};
    const auto done = [&] { return completion.candidates + completion.files + "\n"; };
    const auto ask = [&](std::vector<std::string> program, const char* form) {
        program.insert(program.end(), {"--help-as", form});
        return output(program);
    };
    std::vector<std::string> program = {words[0]};
    for (size_t at = 1;; ++at) {
        const std::string commands = ask(program, "commands");
        if (commands.empty()) break;
        if (at == last) {
            for (const std::string& line : split(commands, '\n')) {
                const std::vector<std::string> fields = split(line, '\t');
                completion.offer(fields[0], fields.size() > 1 ? fields[1] : "-");
            }
            return done();
        }
        program.push_back(words[at]);
    }
    const std::vector<Row> rows = rows_of(ask(program, "table"));
    bool only_arguments = false;
    for (size_t at = program.size(); at < last; ++at) {
        only_arguments = only_arguments || words[at] == "--";
        const Row* row = only_arguments ? nullptr : taking_value(rows, words[at]);
        if (!row) continue;
        if (at + 1 == last) {
            completion.offer_value(*row, "");
            return done();
        }
        ++at;
    }
    const std::string& typed = words[last];
    const size_t equals = typed.find('=');
    if (!only_arguments && typed.starts_with("-")) {
        if (equals == std::string::npos)
            completion.offer_flags(rows);
        else if (const Row* row = taking_value(rows, typed.substr(0, equals)))
            completion.offer_value(*row, typed.substr(0, equals + 1));
        return done();
    }
    for (const Row& row : rows)
        if (row.name == "-") completion.offer_value(row, "");
    return done();
}

}  // namespace hark
