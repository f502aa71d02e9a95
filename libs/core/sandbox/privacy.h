// What others may read of a program that runs, and of its files.
#pragma once

namespace hark {

// From here on the system writes no dump of this process, which would hold recordings and texts,
// and no other process of the user can trace it.
void forbid_core_dumps();

// That, and from here on new files have mode 0600, new folders 0700.
void keep_private();

// Whether HARK_OFFLINE forbids to use the network: it is set, to something other than 0.
bool is_offline();

}  // namespace hark
