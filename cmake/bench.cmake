# bench.cmake -- gpu_kernels: the kernels alone, for `python -m bench.gpu kernels`. Of the shared
# libraries that the engine reads files with it links none that it does not use: so it also runs on a
# machine that has a GPU and little else.

if(EXISTS "${PROJECT_SOURCE_DIR}/bench/gpu_kernels.c")
    add_executable(gpu_kernels EXCLUDE_FROM_ALL bench/gpu_kernels.c)
    target_compile_options(gpu_kernels PRIVATE -fno-lto)
    target_link_options(gpu_kernels PRIVATE -fno-lto -Wl,--as-needed)
    target_link_libraries(gpu_kernels PRIVATE stoker_static stoker_flags)
    set_target_properties(gpu_kernels PROPERTIES
        RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bench")
endif()
