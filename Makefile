# SPDX-License-Identifier: Apache-2.0
# A thin front door; CMakeLists.txt and CMakePresets.json do the work.
PRESET ?= release
PREFIX ?= /usr/local/Ascend/poolgrad
JOBS   ?= $(shell nproc)

build_dir := build/$(PRESET)
# For the scripts, which take them from the environment: no character of a path means anything to make then.
export PREFIX
ifneq ($(strip $(DESTDIR)),)
  export DESTDIR
endif
# A compiler that was asked for is used everywhere; without a word CMake looks for one.
ifneq ($(origin CC),default)
  export CC
endif

# What is built and where it would be installed, in words of the shell; some targets say it differently below.
tests  := OFF
layout := $$PWD/build/prefix
what   := build
clang  := $(filter clang-release asan ubsan-integer tsan fuzz,$(PRESET))

# CMake runs a make of its own, which must not inherit this one's flags.
cmake := env MAKEFLAGS=--no-print-directory cmake
configure = @bash tools/deps.sh $(what) $(if $(clang),clang) $(filter aarch64 coverage,$(PRESET)) && \
  bash tools/aloud.sh "configuring" bash tools/configure.sh $(PRESET) -DBUILD_TESTING=$(tests) \
  -DCMAKE_INSTALL_PREFIX="$(layout)" $(if $(CUDA),-DPOOLGRAD_CUDA=$(CUDA)) $(OPTIONS)
compile = @bash tools/aloud.sh "compiling" $(cmake) --build $(build_dir) --parallel $(JOBS)

.NOTPARALLEL:
.PHONY: build cuda run tests test test-npu stress install uninstall package bench bench-npu torch lint fuzz fuzz-merge docs deps clean help

build cuda tests:
	$(configure)
	$(compile)

cuda: CUDA := ON
tests test stress lint: tests := ON
tests test stress lint: what := test

run: build
	@rm -rf build/prefix
	@cmake --install $(build_dir) --prefix "$$PWD/build/prefix" > /dev/null
	@bash tools/run_examples.sh "$$PWD/build/prefix" $(build_dir)

test: tests
	@bash tools/aloud.sh "testing" bash tools/run_tests.sh $(build_dir) --parallel $(JOBS)

# PyTorch with Huawei's adapter on the library as installed; NPU=2.8.0 chooses the version of torch.
test-npu: build
	@rm -rf build/prefix-npu
	@cmake --install $(build_dir) --prefix "$$PWD/build/prefix-npu" > /dev/null
	@bash tools/aloud.sh "testing" bash tools/test_npu.sh build/prefix-npu $(or $(NPU),2.7.1) $(ARGS)

# Random calls from many threads, then steady use for a tenth of that time.
stress: tests
	@bash tools/aloud.sh "stressing" $(build_dir)/tests/stress --seconds $(or $(SECONDS),600) $(ARGS)
	@bash tools/aloud.sh "soaking" $(build_dir)/tests/stress --soak $$(( $(or $(SECONDS),600) / 10 + 3 ))

# Not behind `build`: that may have been done already, for another place. Root gives the folder back to its owner.
install: layout := $$(realpath -ms -- "$$PREFIX")
install:
	$(configure)
	$(compile)
	@bash tools/install.sh $(build_dir)
	@[ "$$(id -u)" -ne 0 ] || chown -R --reference=. build

uninstall:
	@bash tools/install.sh --remove

# Below /usr, where compiler and loader look by themselves.
package: layout := /usr
package: what := build package
package:
	$(configure)
	$(compile)
	@cd $(build_dir) && cpack -G DEB > package.log || { cat package.log; exit 1; }
	@ls $(build_dir)/*.deb

# The newest PyTorch as a peer; without it `make bench` takes the one of the system.
torch:
	@bash tools/torch.sh

bench: what := build bench
bench: build
	$(compile) --target bench
	@bash tools/aloud.sh "measuring" python3 -u bench/bench.py --build $(build_dir) $(ARGS)

# The same through PyTorch with Huawei's adapter, on the library as installed.
bench-npu: build
	@rm -rf build/prefix-npu
	@cmake --install $(build_dir) --prefix "$$PWD/build/prefix-npu" > /dev/null
	@python=$$(python3 tools/npu_env.py $(or $(NPU),2.7.1)) && . build/prefix-npu/set_env.sh && \
	  PYTHONDONTWRITEBYTECODE=1 bash tools/aloud.sh "measuring" "$$python" -u bench/npu.py $(ARGS)

lint: tests
	@bash tools/deps.sh lint
	@bash tools/configure.sh clang-release -DBUILD_TESTING=ON $(if $(CUDA),-DPOOLGRAD_CUDA=$(CUDA))
	@bash tools/aloud.sh "linting" bash tools/lint.sh build/clang-release $(build_dir)/lib64/libpoolgrad.so

# The fuzzers of fuzz/, each for SECONDS or TARGET alone; what they find stays in build/fuzz/fuzz/found.
fuzz fuzz-merge:
	@bash tools/deps.sh build clang
	@bash tools/configure.sh fuzz
	@bash tools/aloud.sh "compiling" $(cmake) --build build/fuzz --parallel $(JOBS)
	@bash tools/aloud.sh "fuzzing" bash fuzz/run.sh build/fuzz/fuzz $(if $(filter fuzz-merge,$@),merge,$(or $(SECONDS),30)) $(TARGET)

# WHAT="test bench": what the packages are for; tools/deps.sh has the list.
deps:
	@bash tools/deps.sh $(or $(WHAT),test)

# The documentation as a site in build/site; MkDocs comes from PyPI into build/docs-venv.
docs:
	@bash tools/deps.sh docs
	@python3 tools/check_links.py
	@bash tools/aloud.sh "making the site" python3 -u tools/build_site.py

clean:
	rm -rf build

help:
	@echo "make            build the library into build/$(PRESET)"
	@echo "make run        build, install into build/prefix, compile and run every example"
	@echo "make test       build and run all tests (make tests: only build them)"
	@echo "make test-npu   run tests/torch_npu in an environment with PyTorch and torch_npu; NPU=2.8.0 ARGS=\"-k max\""
	@echo "make cuda       build the CUDA plug-in too, also where there is no GPU"
	@echo "make install    install into PREFIX (/usr/local/Ascend/poolgrad); DESTDIR stages"
	@echo "make uninstall  remove what was installed into PREFIX"
	@echo "make package    a Debian package in build/$(PRESET)"
	@echo "make deps       install what WHAT=\"test\" needs; make run and make test do it when something is missing"
	@echo "make torch      download the newest PyTorch for make bench (3 GB)"
	@echo "make bench      build and run the benchmarks; ARGS=\"--quick --filter mp2\" passes arguments"
	@echo "make bench-npu  time pooling through torch_npu next to PyTorch's CPU; NPU=2.8.0 ARGS=\"--quick\""
	@echo "make stress     random calls from many threads; SECONDS=600 PRESET=tsan ARGS=\"--seed 7\""
	@echo "make fuzz       run the fuzzers, SECONDS=30 each or TARGET=operators alone; make fuzz-merge keeps what they found"
	@echo "make lint       check layout, static analysis and the house rules"
	@echo "make docs       the documentation as a site in build/site"
	@echo "make clean      remove build/"
	@echo "PRESET=release|debug|asan|ubsan-integer|tsan|clang-release|aarch64 chooses the build, CC=clang-19 the compiler,"
	@echo "OPTIONS=-DPOOLGRAD_STATIC=ON any option of CMake. POOLGRAD_DEPS=no installs no packages, POOLGRAD_DEPS=skip looks for none."
