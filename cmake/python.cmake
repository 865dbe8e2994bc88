# python.cmake -- the module stoker._core: stable ABI, one binary for CPython 3.11 and all that follow.

find_package(Python 3.11 REQUIRED COMPONENTS Interpreter Development.Module)
file(GLOB python_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/python/*.c")
set(python_map "${PROJECT_SOURCE_DIR}/cmake/python.map")

add_library(stoker_python MODULE ${python_sources})
set_target_properties(stoker_python PROPERTIES OUTPUT_NAME _core PREFIX "" SUFFIX ".abi3.so"
    LINK_DEPENDS "${python_map}")
target_compile_definitions(stoker_python PRIVATE Py_LIMITED_API=0x030B0000)
target_link_options(stoker_python PRIVATE "-Wl,--version-script=${python_map}")
target_link_libraries(stoker_python PRIVATE Python::Module stoker_linked stoker_cli stoker_static)
install(TARGETS stoker_python LIBRARY DESTINATION stoker COMPONENT python)
