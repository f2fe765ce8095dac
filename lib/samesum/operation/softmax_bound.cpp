#include <limits>

#include "samesum/operation/softmax.hpp"
namespace samesum {}
