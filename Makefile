# The everyday commands. `make help` lists them; CMakePresets.json has the builds behind them.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help setup packages browser languages build demo test deep levels lint asan tsan arm corpus site fuzz bench format clean

JOBS ?= $(shell nproc)
FUZZ_SECONDS ?= 60
# CI takes levels, asan and fuzz in parts: 2/3 is the second third of each test's cases, and of the fuzzers.
PART ?= 1/1
TAKE_PART := GTEST_TOTAL_SHARDS=$(notdir $(PART)) GTEST_SHARD_INDEX=$$(($(patsubst %/,%,$(dir $(PART))) - 1))
# The sources that git knows; in CI the clone may belong to another user than the one that runs this.
LIST_SOURCES := git -c safe.directory='*' ls-files -z -- '*.h' '*.cpp'
# From ctest's log: its summary counts a test that left parts of itself out as passed.
LIST_SKIPPED := awk '/ Testing: / { test = $$3 } /: Skipped$$/ { getline why } \
  /^\[  SKIPPED \] .* ms\)$$/ { print "not run: " test " " $$4 ": " why }'

help: ## list the commands
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' Makefile

packages:
	@scripts/setup.sh

setup: packages ## install what is missing from Debian's packages (scripts/packages.txt), MLX and wgpu-native
	@scripts/fetch_mlx.sh build/mlx || echo "setup: no MLX, and so no device mlx:cpu" >&2
	@scripts/fetch_wgpu.sh build/wgpu || echo "setup: no wgpu-native, and so no device webgpu" >&2

build: setup ## build the library, the command and the tests: build/release
	cmake --preset release
	cmake --build --preset release --parallel $(JOBS)

demo: packages ## build the library and the command alone, and embed a dozen sentences with all-MiniLM-L6-v2
	cmake --preset release
	cmake --build --preset command --parallel $(JOBS)
	scripts/demo.sh

browser:
	@scripts/setup.sh browser_packages.txt || echo "test: no Chromium, and so no tests of pages" >&2

languages:
	@scripts/setup.sh language_packages.txt || echo "test: no Rust, or no Go, and so no tests of examples in them" >&2

test: browser languages build ## run all tests
	scripts/fetch_minilm.sh build/minilm
	RLX_MINILM=$(CURDIR)/build/minilm ctest --preset release --parallel $(JOBS)
	@$(LIST_SKIPPED) build/release/Testing/Temporary/LastTest.log

deep: setup levels lint arm corpus asan tsan fuzz ## lower levels, lint, ARM, corpora on Ray, sanitizers and fuzzers: CI runs a share of it

levels: build ## run the tests at the lower levels of this machine's CPU
	$(TAKE_PART) scripts/levels.sh build/release $(JOBS)

lint: setup ## check the documents, the format (clang-format) and the code (clang-tidy)
	scripts/check_sentences.py
	scripts/check_links.py
	$(LIST_SOURCES) | xargs -0 -r clang-format-19 --dry-run -Werror
	cmake --preset lint --log-level=WARNING
	cmake --build --preset lint
	run-clang-tidy-19 -quiet -j $(JOBS) -p build/lint '/(src|tools)/.*\.cpp$$|/Unity/.*\.cxx$$'

asan: setup ## run the tests under AddressSanitizer and UndefinedBehaviorSanitizer
	cmake --preset asan-ubsan
	cmake --build --preset asan-ubsan --parallel $(JOBS)
	scripts/fetch_minilm.sh build/minilm
	$(TAKE_PART) RLX_MINILM=$(CURDIR)/build/minilm ctest --preset asan-ubsan --parallel $(JOBS)

tsan: setup ## run the tests of threads under ThreadSanitizer
	cmake --preset tsan
	cmake --build --preset tsan --parallel $(JOBS)
	ctest --preset tsan

arm: setup ## build the kernels for 64-bit ARM and test them under qemu
	cmake --preset aarch64
	cmake --build --preset aarch64 --parallel $(JOBS)
	ctest --preset aarch64 --parallel $(JOBS)

corpus: build ## test corpora on Ray and Dask, through Python
	ctest --preset release -R '^python_module$$'
	scripts/corpus_test.sh build/release

site: setup ## build the documentation as a site: build/site/site/index.html
	scripts/site.sh build/site

fuzz: setup ## run each fuzzer for FUZZ_SECONDS (60)
	cmake --preset asan-ubsan
	cmake --build --preset fuzz --parallel $(JOBS)
	FUZZ_SECONDS=$(FUZZ_SECONDS) $(TAKE_PART) scripts/fuzz.sh build/asan-ubsan

bench: build ## run the benchmarks of bench/
	cmake --build --preset release --target benchmarks --parallel $(JOBS)
	scripts/bench.sh build/release

format: ## format every source in place
	$(LIST_SOURCES) | xargs -0 -r clang-format-19 -i

clean: ## delete the build folder
	rm -rf build
