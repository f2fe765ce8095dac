#include "harness/build.hpp"

#include "samesum_build.hpp"  // written by build.cmake

namespace samesum::harness {

Build build() {
  return {SAMESUM_BUILD_VERSION, SAMESUM_BUILD_FLAGS, SAMESUM_BUILD_LIBRARIES, SAMESUM_BUILD_COMMIT,
          SAMESUM_BUILD_SOURCE};
}

}  // namespace samesum::harness
