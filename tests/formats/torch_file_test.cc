// torch.save's files: what they hold, and that none of what a hostile one asks for is done.
// Golden: tests/golden/model_files/small.pt by PyTorch (tests/golden/model_files.py), and
// tests/fuzz/corpus/torch_file by Python's pickle (tests/golden/torch_pickle.py).
#include "formats/torch_file.h"

#include <gtest/gtest.h>

#include <cstring>

#include "core/error.h"
#include "support/process.h"
#include "support/torch_writer.h"

namespace hark {
namespace {

using namespace test;

class TorchFileTest : public testing::Test {
  protected:
    std::filesystem::path file(const std::string& bytes) {
        write_text(directory_.path() / "x.pt", bytes);
        return directory_.path() / "x.pt";
    }
    std::filesystem::path archive(const std::string& pickle, bool zip64 = false) {
        return file(zip_of({{"x/data.pkl", pickle},
                            {"x/byteorder", "little"},
                            {"x/data/0", std::string(24, '\x3c')},
                            {"x/version", "3\n"}},
                           0, zip64));
    }
    // What reading all of it says.
    std::string error_of(const std::filesystem::path& path) {
        try {
            TorchFile torch(path);
            torch.numbers("dims");
            torch.tensors("model_state_dict");
        } catch (const Error& error) {
            return error.what();
        }
        return "no error";
    }
    std::string error_of_tensors(const std::vector<TorchTensor>& tensors) {
        return error_of(archive(pickled({}, tensors)));
    }
    TemporaryDirectory directory_;
};

TorchTensor tensor(const std::string& name, std::vector<int64_t> shape, int64_t offset = 0) {
    return {name, "HalfStorage", "0", 12, shape, contiguous(shape), offset};
}

// As many values as no number of 64 bits counts, unless `last` is 0.
TorchTensor huge(int64_t last) {
    return {"a", "HalfStorage", "0", 12, {1 << 30, 1 << 30, 1 << 30, last}, {1, 1, 1, 1}};
}

#define EXPECT_FOUND(part, text)                                              \
    do {                                                                      \
        const std::string found = text;                                       \
        EXPECT_NE(found.find(part), std::string::npos) << "found: " << found; \
    } while (false)

TEST_F(TorchFileTest, GivesNumbersAndTensorsAsTheyLie) {
    for (const bool zip64 : {false, true}) {
        const TorchFile torch(
            archive(pickled({{"n_mels", 80}, {"n", -5}}, {tensor("a", {2, 3}, 6), tensor("b", {})}),
                    zip64));
        EXPECT_EQ(torch.numbers("dims"),
                  (std::map<std::string, int64_t>{{"n_mels", 80}, {"n", -5}}));
        const auto tensors = torch.tensors("model_state_dict");
        ASSERT_EQ(tensors.size(), 2u);
        const Tensor a = torch.tensor(tensors.at("a"));
        EXPECT_EQ(describe(a), "f16 (2, 3)");
        EXPECT_EQ(a.as<f16_t>()[5].bits, 0x3c3c);
        EXPECT_EQ(tensors.at("a").begin, tensors.at("b").begin + 12);
        EXPECT_EQ(describe(torch.tensor(tensors.at("b"))), "f16 ()");
    }
}

TEST_F(TorchFileTest, ReadsWhatPytorchWrites) {
    const std::filesystem::path golden = source_dir() / "tests/golden/model_files";
    const TorchFile torch(golden / "small.pt");
    EXPECT_EQ(torch.numbers("dims").at("n_text_ctx"), 16);
    const auto tensors = torch.tensors("model_state_dict");
    const SafetensorsFile same(golden / "hugging-face/model.safetensors");
    const Tensor found = torch.tensor(tensors.at("encoder.conv1.weight"));
    const Tensor expected = same.tensor(*same.find("model.encoder.conv1.weight"));
    EXPECT_EQ(describe(found), describe(expected));
    EXPECT_EQ(std::memcmp(found.data, expected.data, expected.bytes()), 0);
}

// The same objects in every protocol that torch.save can be told to write.
TEST_F(TorchFileTest, ReadsProtocols2To5) {
    for (const char* protocol : {"2", "4", "5"}) {
        const TorchFile torch(source_dir() / "tests/fuzz/corpus/torch_file" /
                              concat("protocol-", protocol, ".pt"));
        EXPECT_EQ(torch.numbers("dims"),
                  (std::map<std::string, int64_t>{
                      {"n_mels", 80}, {"n_vocab", 51865}, {"negative", -5}, {"large", 1ll << 40}}))
            << protocol;
        const auto tensors = torch.tensors("model_state_dict");
        ASSERT_EQ(tensors.size(), 3u);
        const Tensor a = torch.tensor(tensors.at("a")), b = torch.tensor(tensors.at("b"));
        EXPECT_EQ(describe(a), "f16 (2, 3)");
        EXPECT_EQ(a.as<f16_t>()[0].bits, 0x0d0c);  // the storage's bytes 12 and 13
        EXPECT_EQ(describe(b), "f16 (6)");
        EXPECT_EQ(b.as<f16_t>()[0].bits, 0x0100);
        std::string long_name;
        for (int i = 0; i < 150; ++i) long_name += "ä";
        const Tensor c = torch.tensor(tensors.at(long_name));
        EXPECT_EQ(describe(c), "f32 ()");
        EXPECT_EQ(c.as<float>()[0], 0.5f);
    }
}

// In Python only objects of 4 GiB have lengths of 8 bytes.
TEST_F(TorchFileTest, ReadsLengthsOf8Bytes) {
    const auto text = [](const std::string& text) {
        return "\x8d" + little(text.size(), 8) + text;
    };
    const std::string pickle = "\x80\x04}(" + text("dims") + "}" + text("n") + "K\x05s" +
                               text("x") + "\x8e" + little(3, 8) + "abcu.";
    EXPECT_EQ(TorchFile(archive(pickle)).numbers("dims"),
              (std::map<std::string, int64_t>{{"n", 5}}));
}

TEST_F(TorchFileTest, TiedTensorsMayShareWhatOthersMayNot) {
    EXPECT_EQ(error_of_tensors({tensor("a", {12}), tensor("tied", {12})}), "no error");
    EXPECT_EQ(error_of_tensors({tensor("a", {6}), tensor("b", {6}, 6)}), "no error");
    EXPECT_FOUND("overlaps", error_of_tensors({tensor("a", {7}), tensor("b", {6}, 6)}));
}

TEST_F(TorchFileTest, ATensorLiesInItsStorage) {
    EXPECT_FOUND("tensor 'a': is larger than its storage of 12",
                 error_of_tensors({tensor("a", {13})}));
    EXPECT_FOUND("is larger", error_of_tensors({huge(1 << 30)}));
    EXPECT_FOUND("are outside its storage", error_of_tensors({tensor("a", {12}, 1)}));
    EXPECT_FOUND("are outside its storage", error_of_tensors({tensor("a", {1}, -1)}));
    EXPECT_FOUND("whole numbers from 0 on", error_of_tensors({tensor("a", {-1})}));
    EXPECT_FOUND("found none", error_of_tensors({huge(0)}));
    TorchTensor larger = tensor("a", {12});
    larger.count = 1 << 30;  // 2 GiB
    EXPECT_FOUND("is said to have 1073741824 values", error_of_tensors({larger}));
    TorchTensor elsewhere = tensor("a", {12});
    elsewhere.key = "../0";
    EXPECT_FOUND("expected a member 'x/data/../0', found none", error_of_tensors({elsewhere}));
    TorchTensor across = tensor("a", {3, 4});
    across.strides = {1, 3};
    EXPECT_FOUND("call contiguous()", error_of_tensors({across}));
}

TEST_F(TorchFileTest, NoCodeIsRun) {
    const auto calling = [&](const std::string& call) {
        return error_of(archive("\x80\x02}(" + pickled("dims") + call + "u."));
    };
    const std::string touched = (directory_.path() / "touched").string();
    const std::string command = "(" + pickled("touch " + touched) + "tR";
    EXPECT_FOUND("names 'posix system'", calling(global("posix", "system") + command));
    EXPECT_FOUND("names '__builtin__ eval'", calling(global("__builtin__", "eval") + command));
    EXPECT_FOUND("names 'torch load'", calling(global("torch", "load") + command));
    EXPECT_FOUND("found INST", calling("(" + pickled("touch") + "iposix\nsystem\n"));
    EXPECT_FOUND("names 'posix system'",
                 calling(pickled("posix") + pickled("system") + "\x93" + command));
    EXPECT_FOUND("names 'builtins eval'", calling("\x8c\x08"
                                                  "builtins\x94\x8c\x04"
                                                  "eval\x93"));
    // The pieces of a name may come from the memo, or be no text at all.
    EXPECT_FOUND("names 'posix posix'", calling(pickled("posix") + "\x94h" + '\0' + "\x93"));
    EXPECT_FOUND("expected a module and a name", calling("K\x01K\x02\x93"));
    EXPECT_FOUND("expected a module and a name",
                 calling(global("torch", "HalfStorage") + pickled("x") + "\x93"));
    EXPECT_FOUND("found NEXT_BUFFER", calling("\x97"));
    EXPECT_FOUND("found NEWOBJ_EX", calling(global("torch", "HalfStorage") + ")}\x92"));
    EXPECT_FOUND("found NEWOBJ", calling(global("torch", "HalfStorage") + ")\x81"));
    EXPECT_FOUND("found EXT", calling("\x82\x01"));
    EXPECT_FALSE(std::filesystem::exists(touched));
    // A call of what may be named is not done either: it is no dictionary and no tensor.
    EXPECT_FOUND("expected a dictionary 'dims'", calling(global("torch", "HalfStorage") + ")R"));
}

TEST_F(TorchFileTest, BrokenPicklesAreRefused) {
    const std::string whole = pickled({{"n_mels", 80}}, {tensor("a", {12})});
    for (size_t size = 0; size < whole.size(); ++size)
        EXPECT_NE(error_of(archive(whole.substr(0, size))), "no error") << size;
    for (const char* text : {".", "}0.", "t.", "}(Ku.", "NNs.", "h\x05.", "}q\x01h\x01h\x01s.",
                             "Q.", "}(X\xff\xff\xff\x7f", "\x8a\xff", "NNR.", "(((("})
        EXPECT_NE(error_of(archive(text)), "no error") << text;
    EXPECT_FOUND("expected a pickle of at most", error_of(archive(std::string(2 << 20, '}'))));
    // As deep as it gets: a value holds the one before it, and a dictionary itself.
    EXPECT_FOUND("'dims'", error_of(archive(")" + std::string(1 << 19, '\x85') + ".")));
    EXPECT_FOUND("'dims'", error_of(archive("}q\x01" + pickled("x") + "h\x01s.")));
}

TEST_F(TorchFileTest, BrokenPicklesOfProtocol4AreRefused) {
    const std::string framed =
        read_text(source_dir() / "tests/fuzz/corpus/torch_file/protocol-4.pt");
    const size_t begin = framed.find("\x80\x04\x95"), end = framed.find("PK", begin);
    ASSERT_NE(begin, framed.npos);
    const size_t bytes = 11 + static_cast<unsigned char>(framed[begin + 3]) +
                         static_cast<unsigned char>(framed[begin + 4]) * 256;
    ASSERT_LE(begin + bytes, end);
    // Truncated, its frame is too long; without the frame, something else is missing.
    for (size_t size = 0; size < bytes; ++size)
        EXPECT_NE(error_of(archive(size <= 11 ? framed.substr(begin, size)
                                              : framed.substr(begin + 11, size - 11))),
                  "no error")
            << size;
    EXPECT_FOUND("expected a frame of at most",
                 error_of(archive("\x80\x04\x95" + std::string(8, '\xff') + "}.")));
    EXPECT_FOUND("a frame begins before byte",
                 error_of(archive("\x80\x04\x95" + little(11, 8) + "\x95" + little(2, 8) + "}.")));
    for (const char protocol : {'\x00', '\x01', '\x06', '\xff'})
        EXPECT_FOUND("expected protocol 2 to 5", error_of(archive(std::string("\x80") + protocol)));
    for (const std::string& text :
         {std::string("\x94."), std::string("\x93."), std::string("]\x93"),
          "\x8d" + little(~uint64_t{0}, 8), "\x8d" + little(4097, 8) + std::string(4097, 'x') + ".",
          "\x8e" + little(~uint64_t{0}, 8), "\x8e" + little(uint64_t{1} << 32, 8) + "x",
          "B" + little(0xffffffff, 4) + "x", std::string("C\xffx"), std::string("\x8c\xffx")})
        EXPECT_NE(error_of(archive(text)), "no error") << text;
    EXPECT_FOUND("'dims'", error_of(archive("N" + std::string(1 << 19, '\x94') + ".")));
}

TEST_F(TorchFileTest, BrokenArchivesAreRefused) {
    const std::string pickle = pickled({}, {tensor("a", {12})});
    const ZipMembers members = {{"x/data.pkl", pickle}, {"x/data/0", std::string(24, 'x')}};
    EXPECT_FOUND("'x/data.pkl' is compressed (method 8)", error_of(file(zip_of(members, 8))));
    EXPECT_FOUND("without data.pkl", error_of(file(zip_of({members[1]}))));
    EXPECT_FOUND("'x/data.pkl' is there twice", error_of(file(zip_of({members[0], members[0]}))));
    EXPECT_FOUND("expected a zip archive", error_of(file(pickle)));
    EXPECT_FOUND("little-endian",
                 error_of(file(zip_of({members[0], members[1], {"x/byteorder", "big"}}))));
    const std::string whole = zip_of(members), whole64 = zip_of(members, 0, true);
    ASSERT_EQ(error_of(file(whole)), "no error");
    ASSERT_EQ(error_of(file(whole64)), "no error");
    for (size_t size = 1; size < whole64.size(); ++size)
        EXPECT_NE(error_of(file(whole64.substr(0, size))), "no error") << size;
    // The second member's header said to be the first one's, and a data size of 2 GiB.
    const size_t entry = whole.rfind(little(0x02014b50, 4));
    std::string overlapping = whole;
    overlapping.replace(entry + 42, 4, little(0, 4));
    EXPECT_FOUND("overlaps", error_of(file(overlapping)));
    std::string huge = whole;
    huge.replace(entry + 20, 8, little(0x7fffffff, 4) + little(0x7fffffff, 4));
    EXPECT_FOUND("expected 2147483647 bytes", error_of(file(huge)));
    for (const uint64_t place : {~uint64_t{0}, uint64_t{1} << 63, uint64_t{1} << 31}) {
        std::string far = whole64;
        far.replace(far.size() - 22 - 12, 8, little(place, 8));
        EXPECT_FOUND(concat("expected ", place, " bytes"), error_of(file(far)));
    }
}

}  // namespace
}  // namespace hark
