#include "gpt/chat/line_editor.h"

#include <histedit.h>
#include <poll.h>
#include <unistd.h>

#include <clocale>
#include <cstdio>
#include <cwchar>

#include "core/cli/ending_signal.h"
#include "core/error.h"
#include "text/utf8.h"

namespace hark::gpt {
namespace {

constexpr int kHistoryLines = 1000;
constexpr int kLookMs = 50;  // a SIGINT between two looks, or of another thread, is seen that late

// The next character; 0 at the end of stdin, -1 after a SIGINT.
int read_character(EditLine*, wchar_t* character) {
    std::mbstate_t state{};
    for (;;) {
        pollfd input{STDIN_FILENO, POLLIN, 0};
        while (!interrupted() && ::poll(&input, 1, kLookMs) <= 0) {
        }
        char byte = 0;
        if (interrupted()) return -1;
        if (::read(STDIN_FILENO, &byte, 1) <= 0) return 0;
        const size_t bytes = std::mbrtowc(character, &byte, 1, &state);
        if (bytes == static_cast<size_t>(-2)) continue;  // not whole yet
        if (bytes == static_cast<size_t>(-1)) *character = L'\uFFFD';
        return 1;
    }
}

}  // namespace

struct LineEditor::State {
    EditLine* editor = nullptr;
    History* history = nullptr;
    std::string prompt, shown;

    ~State() {
        if (editor) ::el_end(editor);
        if (history) ::history_end(history);
    }
};

LineEditor::LineEditor(const std::string& prompt) : state_(new State) {
    // libedit reads characters of the locale's; text is UTF-8 whatever the user's locale is.
    std::setlocale(LC_CTYPE, "C.UTF-8");
    state_->prompt = prompt;
    state_->editor = ::el_init("hark", stdin, stderr, stderr);
    state_->history = ::history_init();
    require(state_->editor && state_->history, "the terminal cannot be used for editing");
    HistEvent event;
    ::history(state_->history, &event, H_SETSIZE, kHistoryLines);
    ::history(state_->history, &event, H_SETUNIQUE, 1);
    ::el_set(state_->editor, EL_CLIENTDATA, state_.get());
    ::el_set(
        state_->editor, EL_PROMPT, +[](EditLine* editor) {
            State* state = nullptr;
            ::el_get(editor, EL_CLIENTDATA, &state);
            return state->shown.data();
        });
    ::el_set(state_->editor, EL_GETCFN, read_character);
    ::el_set(state_->editor, EL_EDITOR, "emacs");
    ::el_set(state_->editor, EL_HIST, ::history, state_->history);
}

LineEditor::~LineEditor() = default;

std::optional<std::string> LineEditor::next() {
    std::string text;
    state_->shown = state_->prompt;
    for (;;) {
        clear_interrupt();
        ::el_set(state_->editor, EL_PREP_TERM, 1);  // before the prompt: it says that keys are read
        int count = 0;
        const char* const line = ::el_gets(state_->editor, &count);
        if (!line && interrupted()) {
            std::fputs("^C\n", stderr);
            ::el_reset(state_->editor);
            text.clear();
            state_->shown = state_->prompt;
            continue;
        }
        if (!line || count <= 0) {
            std::fputs("\n", stderr);
            return std::nullopt;
        }
        text += line;
        while (text.ends_with('\n') || text.ends_with('\r')) text.pop_back();
        if (!text.ends_with('\\')) break;
        text.back() = '\n';
        state_->shown = std::string(state_->prompt.size(), ' ');
    }
    HistEvent event;
    if (!text.empty()) ::history(state_->history, &event, H_ENTER, text.c_str());
    return replace_invalid(text);
}

}  // namespace hark::gpt
