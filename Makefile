# Stoker. `make help` lists what can be made.

PREFIX ?= /usr/local
JOBS ?= $(shell nproc)
FUZZ_SECONDS ?= 10
PYTHON = .venv/bin/python
BUILD = cmake --build
CTEST = ctest --output-on-failure --no-tests=error --timeout 60 -j $(JOBS)
# Sanitizers reserve fixed ranges of addresses: where random placement can be switched off, it is.
FIXED = $(shell setarch -R true 2> /dev/null && echo setarch -R)

# The leak sanitizer of gcc 12 at times falls over the thread-local memory of a library that libcurl
# brings along, when it looks there at the end of a test.
LEAKS = ASAN_OPTIONS=intercept_tls_get_addr=0

.PHONY: all help setup demo bottleneck test test-unit test-asan test-tsan test-fuzz test-python \
        test-stores fuzz gpu-test gpu-bench bench lint format wheel install clean
.NOTPARALLEL:

all: build/build.ninja ## the library and the command, C only: build/stoker, build/libstoker.*
	@$(BUILD) build -j $(JOBS)

help: ## this list
	@grep -hE '^[a-z%-]+:.*## ' $(MAKEFILE_LIST) | \
	    awk -F ':.*## ' '{ printf "make %-14s %s\n", $$1, $$2 }'

setup: ## installs what is missing: system packages, .venv with the package; nothing the second time
	@tools/setup.sh all

demo: setup ## the usual loaders against Stoker, then a training run; prints the table
	@$(PYTHON) examples/streaming/demo.py

bottleneck: setup ## a slow training and a fast one under `stoker run`: build/bottleneck/report.html
	@$(PYTHON) examples/bottleneck/run.py

test: setup test-unit test-asan test-tsan test-fuzz test-python test-stores ## all tests, with set-up

test-unit: all ## C unit tests
	@$(BUILD) build -j $(JOBS) --target tests
	@$(CTEST) --test-dir build

test-asan: build/asan/build.ninja ## C unit tests under the address and undefined sanitizers
	@$(BUILD) build/asan -j $(JOBS) --target all tests
	@$(LEAKS) $(FIXED) $(CTEST) --test-dir build/asan

test-tsan: build/tsan/build.ninja ## C unit tests of what has threads under the thread sanitizer
	@$(BUILD) build/tsan -j $(JOBS) --target tests_net tests_store tests_work \
	    tests_loader tests_pack test_collect test_inject_sim test_inject_process_sim sim_cuda
	@$(FIXED) $(CTEST) --test-dir build/tsan -L '^(net|store|work|loader|pack)$$'
	@$(FIXED) $(CTEST) --test-dir build/tsan -R '^watch/test_(collect|inject.*sim)'

test-fuzz: build/fuzz/build.ninja ## fuzz targets for FUZZ_SECONDS each (10)
	@$(BUILD) build/fuzz -j $(JOBS) --target tests_fuzz
	@$(FIXED) tools/fuzz.sh build/fuzz $(FUZZ_SECONDS) $(JOBS)

test-python: setup all ## tests of the command, the package and the installed tree
	@failed=0; tools/pytest.sh tests/cli tests/python || failed=1; \
	for folder in truth install; do \
	    echo "pytest tests/$$folder"; $(PYTHON) -m pytest -q tests/$$folder || failed=1; \
	done; exit $$failed

test-stores: setup all ## tests of remote data against servers on loopback, faults and all
	@tools/pytest.sh tests/stores

fuzz: FUZZ_SECONDS = 300
fuzz: test-fuzz ## fuzz targets for five minutes each

gpu-test: setup ## tests that need a GPU; without one they are skipped, and say why
	@$(PYTHON) -m pytest -q tests/gpu

gpu-bench: setup ## benchmarks of the GPU path, on a machine with a GPU: results/gpu/*.json
	@$(PYTHON) -m bench.gpu all

bench: setup ## all benchmarks
	@$(PYTHON) -m bench.run all

bench-%: setup ## one benchmark: make bench-tensors
	@$(PYTHON) -m bench.run $*

lint: setup ## formatting, include law, exports, both compilers with -Werror, Python
	@tools/lint.sh $(JOBS)

format: setup ## lays out C and Python as lint wants it
	@find include src inject cli plugins python tests tools examples bench -name '*.[ch]' | \
	    xargs .venv/bin/clang-format -i
	@.venv/bin/ruff check --quiet --fix --select I . && .venv/bin/ruff format --quiet .

wheel: setup ## dist/stoker-*.whl, with its shared libraries inside
	@tools/wheel.sh

install: all ## into PREFIX (/usr/local): headers, libraries, pkg-config and CMake files, the command
	@cmake --install build --prefix $(PREFIX) --component core

clean: ## removes build/ and dist/, keeps .venv
	@rm -rf build dist

# Sources are found by CMake itself on every build; only the first configuration is made here.
build/build.ninja:
	@tools/setup.sh check
	@cmake --preset release
build/%/build.ninja:
	@tools/setup.sh check
	@cmake --preset $*
