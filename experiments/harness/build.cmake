# Writes a header with the origin of the build. Runs at every build, and touches the header only if it changes:
# cmake -DSOURCE=… -DVERSION=… -DFLAGS=… -DLIBRARIES=… -DHEADER=… -P build.cmake
set(COMMIT unknown)
find_package(Git QUIET)
if(GIT_FOUND AND EXISTS ${SOURCE}/.git)
  execute_process(COMMAND ${GIT_EXECUTABLE} -C ${SOURCE} describe --always --dirty --abbrev=40 --exclude=*
                  OUTPUT_VARIABLE described OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
  if(NOT failed)
    set(COMMIT ${described})
  endif()
endif()
string(REPLACE "\\" "\\\\" FLAGS "${FLAGS}")
string(REPLACE "\"" "\\\"" FLAGS "${FLAGS}")
file(CONFIGURE OUTPUT ${HEADER} CONTENT [=[
#pragma once
#define SAMESUM_BUILD_VERSION "@VERSION@"
#define SAMESUM_BUILD_FLAGS "@FLAGS@"
#define SAMESUM_BUILD_LIBRARIES "@LIBRARIES@"
#define SAMESUM_BUILD_COMMIT "@COMMIT@"
#define SAMESUM_BUILD_SOURCE "@SOURCE@"
]=] @ONLY)
