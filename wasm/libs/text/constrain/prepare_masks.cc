// Without threads no mask is made before mask() asks for it.
#include "text/constrain/token_masks.h"

namespace hark {

void TokenMasks::prepare(State) {}

}  // namespace hark
