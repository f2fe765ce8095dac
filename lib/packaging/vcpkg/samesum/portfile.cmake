# A port of vcpkg: `vcpkg install samesum --overlay-ports=lib/packaging/vcpkg` builds the sources around it. In a registry,
# SOURCE_PATH is that of a release.
get_filename_component(SOURCE_PATH "${CURRENT_PORT_DIR}/../../../.." ABSOLUTE)

vcpkg_check_features(OUT_FEATURE_OPTIONS options FEATURES cuda SAMESUM_CUDA)
vcpkg_cmake_configure(SOURCE_PATH "${SOURCE_PATH}" OPTIONS ${options} -DSAMESUM_PORTABLE=ON -DSAMESUM_TOOLS=OFF -DSAMESUM_SQL=OFF)
vcpkg_cmake_install()
vcpkg_cmake_config_fixup(CONFIG_PATH lib/cmake/samesum)
vcpkg_fixup_pkgconfig()
file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/debug/include" "${CURRENT_PACKAGES_DIR}/debug/share")
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE")
