#include "gpt/chat/conversation.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <atomic>
#include <thread>

#include "core/error.h"
#include "support/error_of.h"
#include "support/process.h"

namespace hark::test {
namespace {

using gpt::Conversation;

class ConversationFile : public testing::Test {
  protected:
    TemporaryDirectory folder_;
    std::string path_ = (folder_.path() / "talk.jsonl").string();
    std::string text() const { return read_text(path_); }
    // What is wrong with a file of this text.
    std::string error(const std::string& text, const std::string& system = "") {
        write_text(path_, text);
        return error_of([&] { Conversation(path_, system); });
    }
};

constexpr const char* kTurn =
    "{\"role\":\"user\",\"content\":\"a\\nb\"}\n{\"role\":\"assistant\",\"content\":\"c\"}\n";

TEST_F(ConversationFile, IsBegunAndContinued) {
    Conversation begun(path_, "Be brief.");
    EXPECT_FALSE(std::filesystem::exists(path_));
    EXPECT_EQ(begun.messages().size(), 1u);
    begun.append("a\nb", "c");
    const std::string first =
        std::string("{\"role\":\"system\",\"content\":\"Be brief.\"}\n") + kTurn;
    EXPECT_EQ(text(), first);
    Conversation continued(path_, "Be brief.");
    EXPECT_EQ(continued.messages().size(), 3u);
    continued.append("a\nb", "c");
    EXPECT_EQ(text(), first + kTurn);
    EXPECT_EQ(Conversation(path_, "").messages(), continued.messages());
}

TEST_F(ConversationFile, KeepsWhatItDoesNotKnowAndItsMode) {
    const std::string line = R"({"role": "user",  "content": "x", "name": "n"})"
                             "\n"
                             R"({"role": "assistant", "content": "y"})";
    write_text(path_, line);  // without a line end
    ::chmod(path_.c_str(), 0600);
    Conversation conversation(path_, "");
    EXPECT_EQ(conversation.messages()[0]["name"], "n");
    conversation.append("a\nb", "c");
    EXPECT_EQ(text(), line + "\n" + kTurn);
    struct stat status = {};
    ASSERT_EQ(::stat(path_.c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777, 0600u);
}

TEST_F(ConversationFile, IsInMemoryWithoutAPath) {
    Conversation conversation("", "");
    conversation.append("a", "b");
    EXPECT_EQ(conversation.messages().size(), 2u);
}

TEST_F(ConversationFile, ATornOrWrongFileIsNamed) {
    const std::string where = path_ + ": line ";
    EXPECT_EQ(error(std::string(kTurn) + R"({"role": "us)"),
              where + "3: expected a message, an object in JSON, found text that is not JSON");
    EXPECT_EQ(error("[]\n"), where + "1: expected a message, an object, found array");
    EXPECT_EQ(error("{\"role\": \"user\"}\n"), where + "1: expected a text named content");
    EXPECT_EQ(error("{\"content\": \"x\"}\n"), where + "1: expected a text named role");
    EXPECT_EQ(error("{\"role\": \"user\", \"content\": \"x\"}\n"),
              where + "1: the last message is the user's, and has no answer; remove this line");
    EXPECT_EQ(error(kTurn, "Be brief."),
              path_ + ": the conversation began without this --system message; leave it out");
    EXPECT_EQ(error(std::string(kTurn) + "\n"),
              where + "3: expected a message, an object in JSON, found text that is not JSON");
}

TEST_F(ConversationFile, WhereItCannotBeWrittenIsAnErrorAtOnce) {
    const std::string path = (folder_.path() / "none" / "talk.jsonl").string();
    const std::string found = error_of([&] { Conversation(path, ""); });
    EXPECT_NE(found.find(path + ": cannot write next to it"), std::string::npos) << found;
}

TEST_F(ConversationFile, AnotherProgramsChangeIsNotOverwritten) {
    Conversation conversation(path_, "");
    write_text(path_, kTurn);
    EXPECT_EQ(error_of([&] { conversation.append("a", "b"); }),
              path_ + ": another program has changed the file; this answer is not in it");
    EXPECT_EQ(text(), kTurn);
}

// A program appends only to what it has read: no turn is lost, whoever comes between.
TEST_F(ConversationFile, TurnsOfSeveralProgramsAreAllThere) {
    constexpr int kTurns = 10;
    std::atomic<int> refused = 0;
    const auto talk = [&] {
        for (int turn = 0; turn < kTurns;) try {
                Conversation(path_, "").append("a\nb", "c");
                ++turn;
            } catch (const Error& why) {
                EXPECT_NE(std::string(why.what()).find("another program has changed"),
                          std::string::npos);
                ++refused;
            }
    };
    std::vector<std::thread> programs;
    for (int i = 0; i < 4; ++i) programs.emplace_back(talk);
    for (std::thread& program : programs) program.join();
    EXPECT_EQ(Conversation(path_, "").messages().size(), 2u * 4 * kTurns);
    RecordProperty("refused", std::to_string(refused));
}

}  // namespace
}  // namespace hark::test
