#include "gpt/engine/drafts.h"

#include <gtest/gtest.h>

namespace hark::gpt {
namespace {

using Tokens = std::vector<int32_t>;

TEST(Drafts, AreWhatFollowedTheSameTokens) {
    EXPECT_EQ(draft_tokens(Tokens{1, 2, 3, 4, 5, 1, 2, 3}, 2), (Tokens{4, 5}));
    EXPECT_EQ(draft_tokens(Tokens{1, 2, 3, 4, 5, 1, 2, 3}, 7), (Tokens{4, 5, 1, 2, 3}));
    EXPECT_EQ(draft_tokens(Tokens{2, 3, 4, 9, 2, 3}, 1), (Tokens{4}));  // two tokens
    EXPECT_EQ(draft_tokens(Tokens{7, 7, 7, 7}, 3), (Tokens{7}));        // the last such place
}

TEST(Drafts, OfThreeTokensComeBeforeThoseOfTwo) {
    EXPECT_EQ(draft_tokens(Tokens{1, 2, 3, 4, 9, 2, 3, 5, 1, 2, 3}, 1), (Tokens{4}));
}

TEST(Drafts, AreNoneOfNewTokens) {
    EXPECT_EQ(draft_tokens(Tokens{1, 2, 3, 4}, 4), Tokens());
    EXPECT_EQ(draft_tokens(Tokens{1}, 4), Tokens());
    EXPECT_EQ(draft_tokens(Tokens(), 4), Tokens());
    EXPECT_EQ(draft_tokens(Tokens{1, 2, 1, 2}, 0), Tokens());
}

}  // namespace
}  // namespace hark::gpt
