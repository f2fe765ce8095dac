#pragma once

namespace samesum::harness {

/// Origin of this program.
struct Build {
  const char* version;
  const char* flags;      ///< of the compiler
  const char* libraries;  ///< other libraries that take part: "Boost 1.83.0, TBB 2021.8.0"
  const char* commit;     ///< "unknown" without .git; ends in "-dirty" if the source tree was changed
  const char* source;     ///< folder of the source tree, which has the report
};
Build build();

}  // namespace samesum::harness
