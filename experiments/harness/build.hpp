#pragma once

namespace samesum::harness {

/// What this program was built from.
struct Build {
  const char* version;
  const char* flags;  ///< of the compiler
  const char*
      commit;  ///< "unknown" for a source tree without .git; ends in "-dirty" for one that was changed
  const char* source;  ///< the folder of the source tree, where the report is
};
Build build();

}  // namespace samesum::harness
