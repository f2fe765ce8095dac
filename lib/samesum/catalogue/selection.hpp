/// Calls in which only some elements take part (Options::where, Options::skip_nan).
#pragma once

#include "samesum/catalogue/partial.hpp"

namespace samesum {

/// Returns the options for a call on the elements that take part.
inline Options of_all_elements(Options options) {
  options.where = {};
  options.skip_nan = false;
  return options;
}

/// Returns a message about the selection of such a call alone; empty if it is valid. The rest of the call is
/// that of `of_all_elements`.
std::string selection_error(const Call& call);

/// Runs such a call where its backend packs the elements that take part: on the host, or, for "cuda", on the
/// device.
/// @throws as `run` does, and std::invalid_argument if there is not one flag for each element.
void run_selected(const Call& call);

/// Adds the elements that take part to a partial.
void add_selected(Partial& partial, const Values& x, const Values& y, const Options& options);

}  // namespace samesum
