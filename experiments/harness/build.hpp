#pragma once

namespace samesum::harness {

/// Origin of this program.
struct Build {
  const char* version;
  const char* flags;   ///< of the compiler
  const char* commit;  ///< "unknown" without .git; ends in "-dirty" if the source tree was changed
  const char* source;  ///< folder of the source tree, which has the report
};
Build build();

}  // namespace samesum::harness
