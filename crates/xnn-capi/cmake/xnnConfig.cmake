# Imported targets of xnn-delegate's C API: xnn::xnn (shared), xnn::xnn_static. The paths are relative to this file.
get_filename_component(_xnn_prefix "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
include(CMakeFindDependencyMacro)
find_dependency(Threads)

if(NOT TARGET xnn::xnn)
  add_library(xnn::xnn SHARED IMPORTED)
  set_target_properties(xnn::xnn PROPERTIES
    IMPORTED_LOCATION "${_xnn_prefix}/lib/libxnn.so.@VERSION@"
    IMPORTED_SONAME "libxnn.so.@SOVERSION@"
    INTERFACE_INCLUDE_DIRECTORIES "${_xnn_prefix}/include")
endif()

if(NOT TARGET xnn::xnn_static)
  add_library(xnn::xnn_static STATIC IMPORTED)
  set_target_properties(xnn::xnn_static PROPERTIES
    IMPORTED_LOCATION "${_xnn_prefix}/lib/libxnn.a"
    IMPORTED_LINK_INTERFACE_LANGUAGES C
    INTERFACE_INCLUDE_DIRECTORIES "${_xnn_prefix}/include"
    INTERFACE_LINK_LIBRARIES "Threads::Threads;@PRIVATE_LIBS_CMAKE@")
endif()

unset(_xnn_prefix)
