// Runs a fuzz target without libFuzzer: mutates its seeds for a while under the sanitizers.
//
//   fuzz_readers NAME [--seconds N] [--seed N] [--crash FILE] [CORPUS_DIR | INPUT]...
//
// The input under test is in FILE while it runs long enough to be noticed, and after a crash:
// `fuzz_readers NAME --seconds 0 FILE` runs it again. The same seed gives the same inputs.
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "fuzz/heap_peak.h"
#include "fuzz/target.h"

extern "C" void __asan_set_death_callback(void (*callback)()) __attribute__((weak));
// Freed memory is kept from use only a while, so that a peak is that of the target.
extern "C" const char* __asan_default_options() { return "quarantine_size_mb=16"; }

namespace {

using Clock = std::chrono::steady_clock;
using hark::fuzz::kTimesInput;
using hark::fuzz::Target;

constexpr size_t kMaxInput = 1 << 16;
constexpr unsigned kMaxSeconds = 10;     // for one input
constexpr long kMaxGrowth = 256 * 1024;  // KiB above what the process held before the first input

std::string current;     // the input under test
std::string crash_file;  // where it goes when the target dies
int64_t most_beyond = 0;  // bytes of the heap beyond kTimesInput times an input

void save_current() {
    if (crash_file.empty()) return;
    const int fd = ::open(crash_file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd < 0) return;
    if (::write(fd, current.data(), current.size()) >= 0)
        std::fprintf(stderr, "fuzz: the input is in %s\n", crash_file.c_str());
    ::close(fd);
}

void on_signal(int signal) {
    save_current();
    if (signal == SIGALRM) {
        static const char text[] = "fuzz: one input took longer than its time limit\n";
        (void)!::write(STDERR_FILENO, text, sizeof text - 1);
    }
    ::_exit(70);
}

long peak_kib() {
    rusage usage{};
    ::getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss;
}

class Mutator {
  public:
    Mutator(std::vector<std::string> pool, uint64_t seed) : pool_(std::move(pool)), random_(seed) {}

    std::string next() {
        std::string input = pool_[below(pool_.size())];
        for (size_t edits = 1 + below(6); edits > 0; --edits) edit(input);
        if (input.size() > kMaxInput) input.resize(kMaxInput);
        return input;
    }

  private:
    size_t below(size_t n) { return n == 0 ? 0 : random_() % n; }

    void edit(std::string& s) {
        switch (below(8)) {
            case 0:  // flip a bit
                if (!s.empty()) s[below(s.size())] ^= static_cast<char>(1 << below(8));
                break;
            case 1:  // any byte
                if (!s.empty()) s[below(s.size())] = static_cast<char>(random_());
                break;
            case 2:  // cut the end off
                s.resize(below(s.size() + 1));
                break;
            case 3: {  // take a piece out
                const size_t at = below(s.size() + 1);
                s.erase(at, below(32));
                break;
            }
            case 4: {  // put a piece of another seed in
                const std::string& other = pool_[below(pool_.size())];
                const size_t from = below(other.size() + 1);
                s.insert(below(s.size() + 1), other, from, below(64));
                break;
            }
            case 5:
                return set_integer(s);
            case 6:
                return edit_number(s);
            default: {  // repeat a piece
                const size_t from = below(s.size() + 1);
                const std::string piece = s.substr(from, below(64));
                for (size_t times = below(16); times > 0; --times) s.insert(from, piece);
            }
        }
    }

    // A binary length field: 1 to 8 bytes of a value at the edge of something.
    void set_integer(std::string& s) {
        static const uint64_t kEdges[] = {
            0,       1,          2,          0x7f,       0x80,       0xff,       0x7fff, 0xffff,
            0x10000, 0x7fffffff, 0x80000000, 0xffffffff, 1ull << 32, 1ull << 62, ~0ull};
        uint64_t value = kEdges[below(std::size(kEdges))] + below(3) - 1;
        const size_t bytes = size_t{1} << below(4);
        if (s.size() < bytes) return;
        const size_t at = below(s.size() - bytes + 1);
        const bool big_endian = below(8) == 0;
        for (size_t i = 0; i < bytes; ++i, value >>= 8)
            s[at + (big_endian ? bytes - 1 - i : i)] = static_cast<char>(value);
    }

    // A number written out, as in JSON.
    void edit_number(std::string& s) {
        static const char* kNumbers[] = {"0",
                                         "-1",
                                         "18446744073709551615",
                                         "9223372036854775808",
                                         "1e999",
                                         "4294967296",
                                         "0.5",
                                         "null",
                                         "\"x\"",
                                         "[]",
                                         "{}",
                                         "\"\\ud800\"",
                                         "1000000000000"};
        const size_t from = below(s.size() + 1);
        const size_t begin = s.find_first_of("0123456789", from);
        if (begin == std::string::npos) return;
        const size_t end = s.find_first_not_of("0123456789", begin);
        s.replace(begin, std::min(end, s.size()) - begin, kNumbers[below(std::size(kNumbers))]);
    }

    std::vector<std::string> pool_;
    std::mt19937_64 random_;
};

void check_heap(const Target& target, const hark::fuzz::HeapPeak& heap) {
    most_beyond = std::max(most_beyond, heap.beyond(current.size()));
    if (heap.beyond(current.size()) <= target.allowance) return;
    save_current();
    std::fprintf(stderr,
                 "fuzz: an input of %zu bytes took %lld KiB of the heap; expected at most %lld "
                 "times its size and %lld KiB\n",
                 current.size(), static_cast<long long>(heap.bytes() / 1024),
                 static_cast<long long>(kTimesInput),
                 static_cast<long long>(target.allowance / 1024));
    std::exit(70);
}

void run(const Target& target, const std::string& input, long base_kib) {
    current = input;
    ::alarm(kMaxSeconds);
    // A copy of exactly its size, so that the sanitizer sees a read past its end.
    std::vector<uint8_t> exact(input.begin(), input.end());
    const hark::fuzz::HeapPeak heap;
    target.input(exact.data(), exact.size());
    ::alarm(0);
    check_heap(target, heap);
    if (peak_kib() - base_kib > kMaxGrowth) {
        save_current();
        std::fprintf(stderr, "fuzz: an input of %zu bytes took more than %ld KiB\n", input.size(),
                     kMaxGrowth);
        std::exit(70);
    }
}

std::string content_of(const std::filesystem::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

int main(int argc, char** argv) {
    double seconds = 10;
    uint64_t seed = 1;
    const std::string name = argc > 1 ? argv[1] : "";
    const auto target = std::ranges::find(Target::all(), name, &Target::name);
    if (target == Target::all().end()) {
        std::fprintf(stderr, "fuzz: expected the name of a target, found '%s'\n", name.c_str());
        return 2;
    }
    std::vector<std::string> pool = target->seeds();
    for (int i = 2; i < argc; ++i) {
        const std::string word = argv[i];
        const bool flag = word.rfind("--", 0) == 0;
        if (flag && i + 1 == argc) {
            std::fprintf(stderr, "fuzz: expected a value after %s\n", argv[i]);
            return 2;
        }
        if (word == "--seconds") {
            seconds = std::atof(argv[++i]);
        } else if (word == "--seed") {
            seed = std::strtoull(argv[++i], nullptr, 10);
        } else if (word == "--crash") {
            crash_file = argv[++i];
        } else if (std::filesystem::is_directory(word)) {
            std::vector<std::filesystem::path> files;
            for (const auto& entry : std::filesystem::directory_iterator(word))
                files.push_back(entry.path());
            std::sort(files.begin(), files.end());
            for (const auto& file : files) pool.push_back(content_of(file));
        } else {
            pool.push_back(content_of(word));
        }
    }
    pool.emplace_back();
    if (__asan_set_death_callback) __asan_set_death_callback(save_current);
    for (int signal : {SIGALRM, SIGABRT, SIGFPE, SIGILL}) ::signal(signal, on_signal);

    // The first seed makes what a target keeps: its memory is not counted.
    current = pool[0];
    target->input(reinterpret_cast<const uint8_t*>(current.data()), current.size());
    const bool counts_heap = hark::fuzz::HeapPeak::install();
    const long base_kib = peak_kib();
    for (const std::string& input : pool) run(*target, input, base_kib);
    Mutator mutator(pool, seed);
    int64_t count = 0;
    const auto end = Clock::now() + std::chrono::duration<double>(seconds);
    for (; Clock::now() < end; ++count) run(*target, mutator.next(), base_kib);
    std::printf("%zu seeds and %lld mutated inputs ran, peak %ld KiB above the start\n",
                pool.size(), static_cast<long long>(count), peak_kib() - base_kib);
    if (counts_heap)
        std::printf("the heap held at most %lld KiB beyond %lld times an input\n",
                    static_cast<long long>(most_beyond / 1024),
                    static_cast<long long>(kTimesInput));
    return 0;
}
