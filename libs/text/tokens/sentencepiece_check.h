// What the sentencepiece library trusts in a model's file and must not.
#pragma once

#include <string_view>

namespace hark {

// Whether the normalisation tables of a serialised ModelProto can be walked without leaving them:
// the library follows their offsets unchecked. Of the rest of the file only as much is read as
// leads there. Source: sentencepiece's sentencepiece_model.proto and normalizer.cc; darts-clone's
// darts.h for the units of its double array.
bool has_sound_tables(std::string_view model);

}  // namespace hark
