// The target of a request, its host and its origin.
#include "serve/web/paths.h"

#include <gtest/gtest.h>

namespace hark::test {
namespace {

using namespace hark::serve;
using Query = std::vector<std::pair<std::string, std::string>>;

TEST(Paths, QueriesAreDecoded) {
    EXPECT_EQ(path_of("/a%20b?c=d"), "/a b");
    EXPECT_EQ(query_of("/a"), Query());
    EXPECT_EQ(query_of("/a?"), Query());
    EXPECT_EQ(query_of("/a?b=c+d%2Be&f&=g&&h=i=j?k"),
              (Query{{"b", "c d+e"}, {"f", ""}, {"", "g"}, {"h", "i=j?k"}}));
    EXPECT_EQ(query_of("/a?b=%4&c=%zz%"), (Query{{"b", "%4"}, {"c", "%zz%"}}));
}

TEST(Paths, AnOriginIsTheServersOwnOrAnother) {
    EXPECT_TRUE(is_own_origin("http://localhost:8080", "localhost:8080"));
    EXPECT_TRUE(is_own_origin("https://Example.org", "example.org"));
    EXPECT_FALSE(is_own_origin("http://localhost:8081", "localhost:8080"));
    EXPECT_FALSE(is_own_origin("http://example.org", "example.org.evil.org"));
    EXPECT_FALSE(is_own_origin("null", "null"));
    EXPECT_FALSE(is_own_origin("file://", ""));
}

}  // namespace
}  // namespace hark::test
