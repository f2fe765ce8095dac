#pragma once

namespace samesum::harness {

/// What this program was built from.
struct Build {
  const char* version;
  const char* flags;  ///< of the compiler
  const char*
      commit;  ///< "unknown" for a source tree without .git; ends in "-dirty" for one that was changed
};
Build build();

}  // namespace samesum::harness
