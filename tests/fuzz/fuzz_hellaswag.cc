// Files of questions in llm.c's evaluation format.
#include <cstdlib>

#include "core/error.h"
#include "fuzz/memory_file.h"
#include "fuzz/target.h"
#include "gpt/eval/hellaswag.h"

using namespace hark;
using namespace hark::fuzz;

namespace {

std::string number16(int value) {
    return {static_cast<char>(value & 255), static_cast<char>(value >> 8)};
}

}  // namespace

static std::vector<std::string> hellaswag_seeds() {
    std::string bytes(1024, '\0');
    const int magic = 20240522;
    const std::string fields =
        number16(magic & 65535) + number16(magic >> 16) + number16(1) + number16(0);
    bytes.replace(0, fields.size(), fields);
    std::vector<std::string> seeds;
    std::string examples;
    for (char count = 1; count < 4; ++count) {
        for (const int number : {65535, 34, 0, 2, 4, 2, 7, 8, 1, 3, 2, 4, 5, 1, 6, 1, 9})
            examples += number16(number);
        bytes[8] = count;
        seeds.push_back(bytes + examples);
    }
    return seeds;
}

static int hellaswag_input(const uint8_t* data, size_t size) {
    try {
        const fuzz::MemoryFile file(data, size);
        gpt::HellaSwag tasks(file.path(), 300, 64);
        for (const gpt::ChoiceQuestion& example : tasks.examples())
            if (example.longest() > 64 || example.choices.size() != 4) std::abort();
        const auto losses = tasks.losses(256, [](gpt::PackedRows& rows) {
            return std::vector<float>(rows.tokens.size(), 1.0f);
        });
        if (!losses.empty() && tasks.accuracy(losses) > 1) std::abort();
        tasks.keep_share(1, 2);
    } catch (const Error&) {
    }
    return 0;
}

static const hark::fuzz::Target kHellaswag{"hellaswag", hellaswag_seeds, hellaswag_input};
