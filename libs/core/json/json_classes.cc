#include "core/json/json.h"

HARK_JSON_CLASSES(template)
