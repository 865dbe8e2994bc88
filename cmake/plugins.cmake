# plugins.cmake -- shared libraries that the engine opens when it needs them: the decoder of videos, where
# FFmpeg's headers are; and those of the example and the tests. They link with nothing of Stoker's.

# Where the engine looks for plugins. A wheel has no place on the system: its plugin lies in the package.
if(NOT STOKER_PYTHON)
    set_property(SOURCE src/codec/video_codec.c APPEND PROPERTY COMPILE_DEFINITIONS
        "STOKER_PLUGIN_FOLDER=\"${CMAKE_INSTALL_FULL_LIBDIR}/stoker\""
        "STOKER_PLUGIN_RELATIVE=\"../${CMAKE_INSTALL_LIBDIR}/stoker\"")
endif()

# stoker_plugin(NAME FOLDER source...): a module in FOLDER of the build.
function(stoker_plugin name folder)
    add_library(${name} MODULE ${ARGN})
    target_include_directories(${name} PRIVATE "${PROJECT_SOURCE_DIR}/include")
    target_compile_options(${name} PRIVATE -fno-lto)
    target_link_libraries(${name} PRIVATE stoker_flags)
    set_target_properties(${name} PROPERTIES LIBRARY_OUTPUT_DIRECTORY "${folder}")
endfunction()

option(STOKER_VIDEO "build the decoder of videos when FFmpeg's headers are there" ON)
set(HAVE_VIDEO OFF)
if(STOKER_VIDEO)
    pkg_check_modules(FFMPEG IMPORTED_TARGET libavformat>=59 libavcodec libswscale libavutil)
    set(HAVE_VIDEO ${FFMPEG_FOUND})
endif()
if(HAVE_VIDEO)
    # In the build it lies beside libstoker.so and the command, and there it is found.
    file(GLOB video_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/plugins/video/*.c")
    stoker_plugin(stoker_video "${PROJECT_BINARY_DIR}" ${video_sources})
    # FFmpeg keeps pointers into it (its log), so it is never unloaded.
    target_link_options(stoker_video PRIVATE -Wl,-z,nodelete)
    target_link_libraries(stoker_video PRIVATE PkgConfig::FFMPEG m)
    install(TARGETS stoker_video LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}/stoker" COMPONENT core)
    if(TARGET stoker_python)
        add_dependencies(stoker_python stoker_video)
        install(TARGETS stoker_video LIBRARY DESTINATION stoker COMPONENT python)
    endif()
else()
    message(STATUS "FFmpeg's headers are not installed, or STOKER_VIDEO is OFF: videos are not decoded")
endif()

if(TARGET tests)
    set(test_plugins "${PROJECT_BINARY_DIR}/plugins")
    stoker_plugin(solarize "${test_plugins}" examples/plugin/solarize.c)
    stoker_plugin(strange_plugin "${test_plugins}" tests/unit/base/strange_plugin.c)
    set(built solarize strange_plugin)
    set_target_properties(${built} PROPERTIES PREFIX "" EXCLUDE_FROM_ALL ON)
    if(HAVE_VIDEO)
        list(APPEND built stoker_video)
    endif()
    foreach(target IN ITEMS tests tests_base tests_transform tests_codec tests_pipeline tests_dataset
                    tests_loader tests_fuzz)
        add_dependencies(${target} ${built})
    endforeach()
    get_property(all_tests DIRECTORY PROPERTY TESTS)
    set_property(TEST ${all_tests} APPEND PROPERTY ENVIRONMENT "STOKER_PLUGINS=${PROJECT_BINARY_DIR}")
endif()
