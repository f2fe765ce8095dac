/// Version of the library, as major.minor.patch and as one number.
#pragma once

/// Major, minor and patch version.
#define SAMESUM_VERSION_MAJOR 0
#define SAMESUM_VERSION_MINOR 1
#define SAMESUM_VERSION_PATCH 0

/// Version as one number, for comparisons: 10203 for 1.2.3.
#define SAMESUM_VERSION (10000 * SAMESUM_VERSION_MAJOR + 100 * SAMESUM_VERSION_MINOR + SAMESUM_VERSION_PATCH)
