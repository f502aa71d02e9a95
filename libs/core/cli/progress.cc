#include "core/cli/progress.h"

#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "core/clean_up.h"
#include "core/json/json.h"

namespace hark {
namespace {

constexpr double kLineInterval = 0.1, kLogInterval = 1;  // seconds between two reports
constexpr char kClear[] = "\r\033[K";

double now_seconds() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

// A character outside of ASCII counts as two columns, the most that it can take.
size_t columns_of(const std::string& text) {
    size_t columns = 0;
    for (const char byte : text) {
        const auto value = static_cast<unsigned char>(byte);
        if ((value & 0xc0) != 0x80) columns += value < 0x80 ? 1 : 2;
    }
    return columns;
}

// The beginning of the text, or with `from_end` its end, in at most `columns`.
std::string part_of(const std::string& text, size_t columns, bool from_end) {
    std::vector<std::string> characters;
    for (const char byte : text) {
        if ((static_cast<unsigned char>(byte) & 0xc0) != 0x80 || characters.empty())
            characters.emplace_back();
        characters.back() += byte;
    }
    if (from_end) std::reverse(characters.begin(), characters.end());
    std::string part;
    size_t used = 0;
    for (const std::string& character : characters) {
        used += columns_of(character);
        if (used > columns) break;
        part = from_end ? character + part : part + character;
    }
    return part;
}

std::string without_middle(const std::string& text, size_t columns) {
    if (columns_of(text) <= columns) return text;
    if (columns < 5) return part_of(text, columns, false);
    const size_t end = (columns - 3) / 2;  // the ending of a file's name tells more
    return part_of(text, columns - 3 - end, false) + "..." + part_of(text, end, true);
}

// "0:37", "1:02:03".
std::string clock_time(double seconds) {
    const long long whole = std::llround(seconds);
    char text[48];
    if (whole >= 3600)
        std::snprintf(text, sizeof text, "%lld:%02lld:%02lld", whole / 3600, whole / 60 % 60,
                      whole % 60);
    else
        std::snprintf(text, sizeof text, "%lld:%02lld", whole / 60, whole % 60);
    return text;
}

std::string rounded(double value) {
    char text[48];
    std::snprintf(text, sizeof text, value < 10 ? "%.1f" : "%.0f", value);
    return text;
}

std::string amount_text(const ProgressReport& report) {
    switch (report.unit) {
        case ProgressReport::Unit::seconds:
            return report.total > 0
                       ? concat(static_cast<int>(100 * report.done / report.total), "%")
                       : clock_time(report.done);
        case ProgressReport::Unit::bytes:
            return rounded(report.done / 1e6) +
                   (report.total > 0 ? " of " + rounded(report.total / 1e6) : "") + " MB";
        case ProgressReport::Unit::steps:
            break;
    }
    return concat("step ", std::llround(report.done),
                  report.total > 0 ? concat(" of ", std::llround(report.total)) : "");
}

std::string speed_text(ProgressReport::Unit unit, double speed) {
    switch (unit) {
        case ProgressReport::Unit::seconds:
            return rounded(speed) + "x";
        case ProgressReport::Unit::bytes:
            return rounded(speed / 1e6) + " MB/s";
        case ProgressReport::Unit::steps:
            break;
    }
    return rounded(speed) + " steps/s";
}

// Seconds until all that is known is done; negative: not known.
double seconds_left(const ProgressReport& report, double speed) {
    if (speed <= 0 || report.total <= 0) return -1;
    return std::max(0.0, report.total - report.done + report.after) / speed;
}

size_t terminal_columns() {
    winsize size{};
    return ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

bool is_terminal() {
    const char* const kind = std::getenv("TERM");
    return ::isatty(STDERR_FILENO) && (!kind || std::string_view(kind) != "dumb");
}

volatile std::sig_atomic_t progress_has_line = 0;

// A signal that ends the process leaves no half line to the shell.
void clear_progress_line() {
    if (progress_has_line) (void)!::write(STDERR_FILENO, kClear, sizeof kClear - 1);
}

}  // namespace

std::string progress_line(const ProgressReport& report, double speed, size_t columns) {
    std::string rest = amount_text(report);
    if (report.items > 1) rest += concat(", ", report.item, " of ", report.items);
    if (speed > 0) rest += ", " + speed_text(report.unit, speed);
    if (!report.note.empty()) rest += ", " + printable(report.note);
    const double left = seconds_left(report, speed);
    if (left >= 0) rest += ", " + clock_time(left) + " left";
    if (report.name.empty()) return part_of(rest, columns, false);
    constexpr size_t kLeastName = 8;
    const size_t used = columns_of(rest) + 2;
    const size_t room = columns > used + kLeastName ? columns - used : kLeastName;
    return part_of(without_middle(printable(report.name), room) + ": " + rest, columns, false);
}

std::string progress_json(const ProgressReport& report, double speed) {
    static const char* const kUnits[] = {"seconds", "bytes", "steps"};
    const auto to_milli = [](double value) { return std::round(value * 1000) / 1000; };
    nlohmann::ordered_json json;
    if (!report.name.empty()) json["name"] = report.name;
    json["unit"] = kUnits[static_cast<int>(report.unit)];
    json["done"] = to_milli(report.done);
    if (report.total > 0) json["total"] = to_milli(report.total);
    if (report.item > 0) json["item"] = report.item;
    if (report.items > 0) json["items"] = report.items;
    if (speed > 0) json["speed"] = to_milli(speed);
    const double left = seconds_left(report, speed);
    if (left >= 0) json["seconds_left"] = to_milli(left);
    if (!report.note.empty()) json["note"] = report.note;
    return json_text(json);
}

Progress::Progress(Console& console) : console_(console) {
    struct stat out {};
    const bool ends_the_pipe = ::fstat(STDOUT_FILENO, &out) == 0 && !S_ISFIFO(out.st_mode);
    const bool silent = console.quiet || console.verbose || console.tracing;
    if (console.progress == "json")
        form_ = Form::json;
    else if (console.progress == "always")
        form_ = is_terminal() ? Form::line : Form::log;
    else if (console.progress == "auto" && is_terminal() && ends_the_pipe && !silent)
        form_ = Form::line;
    if (form_ != Form::line) return;
    progress_has_line = 1;
    add_clean_up(clear_progress_line);
    console_.around_message = [this](const std::function<void()>& write) { above(write); };
}

Progress::~Progress() {
    clear();
    if (form_ != Form::line) return;
    console_.around_message = nullptr;
    progress_has_line = 0;
}

double Progress::speed(const ProgressReport& report, double now) {
    const double work = report.before + report.done;
    const bool begins = first_time_ < 0 || work < last_work_;  // another file
    if (begins) first_time_ = now, first_work_ = work;
    last_work_ = work;
    return now > first_time_ ? (work - first_work_) / (now - first_time_) : 0;
}

void Progress::show(const ProgressReport& report) {
    if (form_ == Form::none) return;
    const double now = now_seconds(), units_per_second = speed(report, now);
    const bool at_once = report.name != name_ || (report.total > 0 && report.done >= report.total);
    const double interval = form_ == Form::log ? kLogInterval : kLineInterval;
    if (now - shown_ < interval && !at_once) return;
    shown_ = now;
    name_ = report.name;
    if (form_ == Form::json) {
        std::fprintf(stderr, "%s\n", progress_json(report, units_per_second).c_str());
    } else if (form_ == Form::log) {
        std::fprintf(stderr, "%s\n", progress_line(report, units_per_second, 200).c_str());
    } else {
        // The last column stays empty: some terminals begin a new line after it.
        line_ = progress_line(report, units_per_second, terminal_columns() - 1);
        draw();
    }
}

void Progress::clear() {
    if (line_.empty() || gaps_ > 0) return;
    std::fputs(kClear, stderr);
    std::fflush(stderr);
}

void Progress::draw() {
    if (line_.empty() || gaps_ > 0) return;
    std::fprintf(stderr, "%s%s", kClear, line_.c_str());
    std::fflush(stderr);
}

}  // namespace hark
