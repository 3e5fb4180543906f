# SPDX-License-Identifier: Apache-2.0
# A thin front door; CMakeLists.txt and CMakePresets.json do the work.
PRESET ?= release
PREFIX ?= /usr/local/Ascend/poolgrad
JOBS   ?= $(shell nproc)

build_dir  := build/$(PRESET)
run_prefix := $(CURDIR)/build/prefix
# CMake runs a make of its own, which must not inherit this one's flags.
cmake_build = MAKEFLAGS=--no-print-directory cmake --build $(build_dir) --parallel $(JOBS)

.NOTPARALLEL:
.PHONY: build run test stress install bench lint fuzz fuzz-merge docs clean help

build:
	@bash tools/bootstrap.sh $(filter aarch64,$(PRESET))
	@cmake --preset $(PRESET) > /dev/null
	@$(cmake_build)

run: build
	@cmake --install $(build_dir) --prefix $(run_prefix) > /dev/null
	@mkdir -p build/examples
	@set -e; for source in $(wildcard examples/*.c); do \
	  program=build/examples/$$(basename $$source .c); \
	  echo "== $$source"; \
	  $(CC) $$source -I$(run_prefix)/include -L$(run_prefix)/lib64 -lascendcl -lnnopbase -lopapi -o $$program; \
	  LD_LIBRARY_PATH=$(run_prefix)/lib64 $$program; \
	done

test: build
	@ctest --test-dir $(build_dir) --output-on-failure --parallel $(JOBS)

# Random calls from many threads, then steady use for a tenth of that time.
stress: build
	@$(build_dir)/tests/stress --seconds $(or $(SECONDS),600) $(ARGS)
	@$(build_dir)/tests/stress --soak $$(( $(or $(SECONDS),600) / 10 + 3 ))

install: build
	@cmake --install $(build_dir) --prefix $(abspath $(PREFIX)) > /dev/null
	@echo "installed; next: source $(abspath $(PREFIX))/set_env.sh"

bench: build
	@bash tools/bootstrap.sh bench
	@cmake --preset $(PRESET) > /dev/null
	@$(cmake_build) --target bench
	@python3 bench/bench.py --build $(build_dir) $(ARGS)

lint: build
	@bash tools/bootstrap.sh lint
	@cmake --preset clang-release > /dev/null
	@bash tools/lint.sh build/clang-release $(build_dir)/lib64/libpoolgrad.so

# The fuzzers of fuzz/, each for SECONDS or TARGET alone; what they find stays in build/fuzz/fuzz/found.
fuzz fuzz-merge:
	@bash tools/bootstrap.sh lint
	@cmake --preset fuzz > /dev/null
	@MAKEFLAGS=--no-print-directory cmake --build build/fuzz --parallel $(JOBS) > build/fuzz/build.log \
	  || { cat build/fuzz/build.log; exit 1; }
	@bash fuzz/run.sh build/fuzz/fuzz $(if $(filter fuzz-merge,$@),merge,$(or $(SECONDS),30)) $(TARGET)

# The documentation as a site in build/site; MkDocs comes from PyPI into build/docs-venv.
docs:
	@python3 tools/check_links.py
	@python3 tools/build_site.py

clean:
	rm -rf build

help:
	@echo "make            build the library and its tests into build/$(PRESET)"
	@echo "make run        build, install into build/prefix, compile and run every example"
	@echo "make test       build and run all tests"
	@echo "make stress     random calls from many threads; SECONDS=600 PRESET=tsan ARGS=\"--seed 7\""
	@echo "make install    install into PREFIX ($(PREFIX))"
	@echo "make bench      build and run the benchmarks; ARGS=\"--quick --filter mp2\" passes arguments"
	@echo "make lint       check layout, static analysis and the house rules"
	@echo "make fuzz       run the fuzzers, SECONDS=30 each or TARGET=operators alone; make fuzz-merge keeps what they found"
	@echo "make docs       make the documentation site in build/site"
	@echo "make clean      remove build/"
	@echo "PRESET=release|debug|asan|ubsan-integer|tsan|clang-release|aarch64 chooses the build."
