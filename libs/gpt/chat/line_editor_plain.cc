// Lines as the terminal itself edits them, for a machine without libedit.
#include <cstdio>
#include <iostream>

#include "core/cli/ending_signal.h"
#include "gpt/chat/line_editor.h"
#include "text/utf8.h"

namespace hark::gpt {

struct LineEditor::State {
    std::string prompt;
};

LineEditor::LineEditor(const std::string& prompt) : state_(new State{prompt}) {}
LineEditor::~LineEditor() = default;

std::optional<std::string> LineEditor::next() {
    std::string text;
    for (std::string line;;) {
        clear_interrupt();
        std::fputs(state_->prompt.c_str(), stderr);
        if (!std::getline(std::cin, line)) {
            std::fputs("\n", stderr);
            if (!interrupted()) return std::nullopt;
            std::cin.clear();
            std::clearerr(stdin);
            text.clear();
            continue;
        }
        text += line;
        if (!text.ends_with('\\')) return replace_invalid(text);
        text.back() = '\n';
    }
}

}  // namespace hark::gpt
