/// Stands in for zlib where it was not found.
#include "harness/input_parts.hpp"

namespace samesum::harness {

std::unique_ptr<Bytes> open_deflated(std::unique_ptr<Bytes>, const std::string& name) {
  throw InputError{name,
                   "is compressed, and this tool was built without zlib (zlib1g-dev); save the archive with "
                   "numpy.savez instead of savez_compressed"};
}

std::unique_ptr<Bytes> open_gzip(std::unique_ptr<Bytes>, const std::string& name) {
  throw InputError{name,
                   "is compressed, and this tool was built without zlib (zlib1g-dev); decompress it with "
                   "gzip -dk, or pipe a text, .npy or .npz file: gzip -dc FILE.gz | samesum sum -"};
}

}  // namespace samesum::harness
