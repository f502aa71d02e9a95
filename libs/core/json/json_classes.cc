#include "core/json.h"

HARK_JSON_CLASSES(template)
