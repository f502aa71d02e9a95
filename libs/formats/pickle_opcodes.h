// The opcodes of Python's pickle that are read, and the names of those that are refused.
// Source: Python's pickletools.
#pragma once

#include <cstdint>

namespace hark {

enum Opcode : uint8_t {
    kMark = '(',
    kEmptyTuple = ')',
    kStop = '.',
    kBinInt = 'J',
    kBinInt1 = 'K',
    kBinInt2 = 'M',
    kBinFloat = 'G',
    kNone = 'N',
    kBinPersId = 'Q',
    kReduce = 'R',
    kBinUnicode = 'X',
    kEmptyList = ']',
    kAppend = 'a',
    kBuild = 'b',
    kGlobal = 'c',
    kAppends = 'e',
    kBinGet = 'h',
    kLongBinGet = 'j',
    kBinPut = 'q',
    kLongBinPut = 'r',
    kSetItem = 's',
    kTuple = 't',
    kSetItems = 'u',
    kEmptyDict = '}',
    kProto = 0x80,
    kTuple1 = 0x85,
    kTuple2 = 0x86,
    kTuple3 = 0x87,
    kNewTrue = 0x88,
    kNewFalse = 0x89,
    kLong1 = 0x8a,
    // From protocol 3 on.
    kBinBytes = 'B',
    kShortBinBytes = 'C',
    // From protocol 4 on.
    kShortBinUnicode = 0x8c,
    kBinUnicode8 = 0x8d,
    kBinBytes8 = 0x8e,
    kStackGlobal = 0x93,
    kMemoize = 0x94,
    kFrame = 0x95,
};
inline constexpr uint8_t kMinProtocol = 2, kMaxProtocol = 5;

// Those that are refused but have a name that says more than their number.
inline const char* name_of_refused(uint8_t opcode) {
    switch (opcode) {
        case 'i':
            return "INST";
        case 'o':
            return "OBJ";
        case 'P':
            return "PERSID";
        case 0x81:
            return "NEWOBJ";
        case 0x82:
        case 0x83:
        case 0x84:
            return "EXT";
        case 0x8f:
            return "EMPTY_SET";
        case 0x91:
            return "FROZENSET";
        case 0x92:
            return "NEWOBJ_EX";
        case 0x96:
            return "BYTEARRAY8";
        case 0x97:
            return "NEXT_BUFFER";
        default:
            return "an unknown one";
    }
}

}  // namespace hark
