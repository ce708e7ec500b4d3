# `make help` lists the targets.

SHELL := /bin/bash

# With sources that the user names nothing is installed: no apt, no root, no nginx.
WANTED_PACKAGES := $(if $(filter undefined,$(origin NGINX_SRC)),build)

NGINX_SRC ?= /usr/share/nginx/src
BUILD     ?= build
JOBS      ?= $(shell nproc)

MODULE  := ngx_http_sliding_limit_module.so
SOURCES := config $(wildcard src/* src/*/* src/*/*/* lua/* page/*)

.DEFAULT_GOAL := module
.PHONY: module help demo npm-packages test fuzz bench sanitize build-test lint format docker-test tls-test deb deb-lint deb-test apt-repository dist matrix mutants repeat chaos coverage clean

# Further flags for the compiler, with which the module and its parts in the unit tests note which
# of their lines are reached: see scripts/coverage.
export COVERAGE

module: $(BUILD)/$(MODULE) ## build the module (the default): build/ngx_http_sliding_limit_module.so

$(BUILD)/$(MODULE): $(SOURCES) scripts/build-module $(BUILD)/nginx-version
	@echo "building $@"
	@scripts/build-module "$(NGINX_SRC)" "$(BUILD)" "$(JOBS)"

# A module fits only the nginx it was built for, so a new nginx must be noticed.
$(BUILD)/nginx-version: FORCE
	@scripts/install-packages $(WANTED_PACKAGES) \
	    || { echo "or build for another nginx, with its sources: make NGINX_SRC=dir" >&2; exit 1; }
	@mkdir -p $(@D)
	@{ echo "$(NGINX_SRC)"; cat "$(NGINX_SRC)/src/core/nginx.h" 2> /dev/null; } > $@.new || true
	@cmp -s $@.new $@ && rm $@.new || mv $@.new $@

FORCE:

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' Makefile
	@echo
	@echo "  NGINX_SRC=dir  nginx sources to build against (default: those of the installed nginx)"
	@echo "  PORT=n         where the demo listens (default: 8080)"
	@echo "  SUITES=files   which tests to run (default: all)"
	@echo "  SECONDS=n      how long chaos lasts, or each target is fuzzed (default: 60)"
	@echo "  TARGETS=names  what to fuzz, as files in t/fuzz are called (default: all)"
	@echo "  FILES=files    which files to make mutants of (default: all that t/mutants/run.py names)"
	@echo "  SURVIVORS=1    try only those mutants again that survived the last time"
	@echo "  TIMES=n        how often to repeat them (default: 20)"
	@echo "  SEED=n         which faults it draws, to repeat a run (default: any, and it says which)"
	@echo "  QUICK=1        a first impression instead of the whole benchmark (a quarter of an hour); bench/run knows more"
	@echo "  SYSTEMS=names  where to walk docs/tls.md, as scripts/tls-test names them (default: all)"
	@echo "  IMAGES=names   which images to build, as scripts/docker-test names them (default: all)"
	@echo "  LANES=names    which versions to test with, as scripts/matrix or deb-test names them (default: all)"
	@echo "  KEY=name       the key of gpg that signs the apt repository (default: none)"

PORT ?= 8080

demo: ## install what is missing, build, and serve an example on 127.0.0.1:8080
	@scripts/install-packages build redis demo
	@$(MAKE) -s module
	@scripts/demo "$(abspath $(BUILD))/$(MODULE)" "$(PORT)"

# Code without nginx and hiredis is compiled into the tests.
PURE := $(wildcard src/*/pure/*.cpp src/*/pure/*.h)
PURE_SOURCES := $(filter %.cpp,$(PURE))

UNIT_TESTS := $(patsubst t/unit/%.cpp,$(BUILD)/unit/%,$(wildcard t/unit/*/*.cpp))
UNIT_FLAGS := -std=c++17 -O1 -g -W -Wall -Wextra -Werror -fsanitize=address,undefined \
              -fno-sanitize-recover=all -Isrc -It/unit $(COVERAGE)

$(BUILD)/unit/src/%.o: src/%.cpp $(PURE)
	@mkdir -p $(@D)
	$(CXX) $(UNIT_FLAGS) $(MORE_FLAGS) -c -o $@ $<

$(BUILD)/unit/%: t/unit/%.cpp $(wildcard t/unit/*.h t/unit/*/*.h) $(patsubst %.cpp,$(BUILD)/unit/%.o,$(PURE_SOURCES))
	@mkdir -p $(@D)
	$(CXX) $(UNIT_FLAGS) -o $@ $< $(filter %.o,$^) -lcmocka

MODEL_TESTS := $(patsubst t/model/%.cpp,$(BUILD)/model/%,$(wildcard t/model/*.cpp))
MODEL_FLAGS := -std=c++17 -O2 -g -W -Wall -Wextra -Werror -It/model -Isrc

$(BUILD)/model/src/%.o: src/%.cpp $(PURE)
	@mkdir -p $(@D)
	$(CXX) $(MODEL_FLAGS) -c -o $@ $<

$(BUILD)/model/%: t/model/%.cpp $(wildcard t/model/*.h) $(patsubst %.cpp,$(BUILD)/model/%.o,$(PURE_SOURCES))
	$(CXX) $(MODEL_FLAGS) -o $@ $< $(filter %.o,$^) -lhiredis

# A fuzz target is a file t/fuzz/NAME.cpp, linked with the pure code. With clang it is
# a fuzzer; the compiler of the tests makes a program of it that is given files.
FUZZ_TARGETS := $(patsubst t/fuzz/%.cpp,%,$(wildcard t/fuzz/*.cpp))
REPLAYS      := $(FUZZ_TARGETS:%=$(BUILD)/replay/%)
FUZZ_FLAGS   := $(UNIT_FLAGS) -It/fuzz

$(BUILD)/fuzz/src/%.o: src/%.cpp $(PURE)
	@mkdir -p $(@D)
	clang++ $(FUZZ_FLAGS) -fsanitize=fuzzer-no-link $(MORE_FLAGS) -c -o $@ $<

$(BUILD)/fuzz/%: t/fuzz/%.cpp $(wildcard t/fuzz/*.h) $(patsubst %.cpp,$(BUILD)/fuzz/%.o,$(PURE_SOURCES))
	clang++ $(FUZZ_FLAGS) -fsanitize=fuzzer $(MORE_FLAGS) -o $@ $< $(filter %.o,$^) $(MORE_LIBS)

$(BUILD)/replay/%: t/fuzz/%.cpp t/fuzz/replay/replay.cpp $(wildcard t/fuzz/*.h) \
                   $(patsubst %.cpp,$(BUILD)/unit/%.o,$(PURE_SOURCES))
	@mkdir -p $(@D)
	$(CXX) $(FUZZ_FLAGS) $(MORE_FLAGS) -o $@ $< t/fuzz/replay/replay.cpp $(filter %.o,$^) $(MORE_LIBS)

# This one compares our hashes with those of OpenSSL.
$(BUILD)/fuzz/hashes $(BUILD)/replay/hashes: MORE_LIBS := -lcrypto

# These link src/redis, hiredis, and what t/fuzz/redis has in the place of nginx and of
# the servers. TLS is left out.
REDIS_TARGETS := redis_story redis_stream
REDIS_SOURCES := $(filter-out %_tls.cpp,$(wildcard src/redis/*.cpp))
REDIS_HELPERS := $(patsubst t/fuzz/%.cpp,%.o,$(wildcard t/fuzz/redis/*.cpp))
REDIS_FUZZED  := $(patsubst %.cpp,$(BUILD)/fuzz/%.o,$(REDIS_SOURCES)) $(REDIS_HELPERS:%=$(BUILD)/fuzz/%)
REDIS_PLAYED  := $(patsubst %.cpp,$(BUILD)/unit/%.o,$(REDIS_SOURCES)) $(REDIS_HELPERS:%=$(BUILD)/replay/%)
REDIS_BUILT   := $(REDIS_TARGETS:%=$(BUILD)/fuzz/%) $(REDIS_TARGETS:%=$(BUILD)/replay/%)

$(REDIS_TARGETS:%=$(BUILD)/fuzz/%): $(REDIS_FUZZED)
$(REDIS_TARGETS:%=$(BUILD)/replay/%): $(REDIS_PLAYED)
$(REDIS_BUILT): MORE_LIBS := -lhiredis
# (Not all of these directories are there in every version of nginx.)
$(REDIS_BUILT) $(REDIS_FUZZED) $(REDIS_PLAYED): MORE_FLAGS = \
    $(addprefix -isystem $(BUILD)/nginx/,src/core src/event src/event/modules src/event/quic src/os/unix \
                src/http src/http/modules src/http/v2 src/http/v3 objs objs/sliding_limit) \
    $(shell cat $(BUILD)/nginx/cc_opt)
$(REDIS_BUILT) $(REDIS_FUZZED) $(REDIS_PLAYED): $(wildcard src/*/*.h) | $(BUILD)/$(MODULE)
$(REDIS_BUILT) $(REDIS_HELPERS:%=$(BUILD)/fuzz/%) $(REDIS_HELPERS:%=$(BUILD)/replay/%): \
    t/fuzz/fuzz.h $(wildcard t/fuzz/redis/*.h)

$(BUILD)/fuzz/redis/%.o: t/fuzz/redis/%.cpp
	@mkdir -p $(@D)
	clang++ $(FUZZ_FLAGS) $(MORE_FLAGS) -c -o $@ $<

$(BUILD)/replay/redis/%.o: t/fuzz/redis/%.cpp
	@mkdir -p $(@D)
	$(CXX) $(FUZZ_FLAGS) $(MORE_FLAGS) -c -o $@ $<

# This one asks a Redis what t/model asks it.
$(BUILD)/fuzz/table_and_script $(BUILD)/replay/table_and_script: MORE_FLAGS := -It/model
$(BUILD)/fuzz/table_and_script $(BUILD)/replay/table_and_script: MORE_LIBS := -lhiredis
$(BUILD)/fuzz/table_and_script $(BUILD)/replay/table_and_script: $(wildcard t/model/*.h)

# The tests load this beside the module, so it is built for the same nginx.
TEST_MODULE := $(BUILD)/ngx_http_test_module.so

$(TEST_MODULE): t/modules/ngx_http_test_module.c scripts/build-test-module $(BUILD)/$(MODULE)
	@scripts/build-test-module "$(BUILD)/nginx" $@

# Make keeps what it built on the way for the next time.
.SECONDARY:

# The first two read our headers as clients do, for t/header_parsers.t; the others
# speak gRPC, for t/grpc.t, and drive a browser, for t/metrics_page.t and t/stepping_in_page.t.
NPM_PACKAGES := ratelimit-header-parser@0.1.0 structured-headers@2.1.0 @grpc/grpc-js@1.14.7 playwright-core@1.61.1

export SLIDING_LIMIT_NPM_DIR := $(abspath $(BUILD))/npm

# This does nothing where these versions are installed.
npm-packages:
	@[ "$$(cat $(BUILD)/npm/installed 2> /dev/null)" = "$(NPM_PACKAGES)" ] || { \
	    scripts/install-packages npm && echo "installing: $(NPM_PACKAGES)" && mkdir -p $(BUILD)/npm \
	    && npm install --loglevel=error --ignore-scripts --no-save --no-package-lock --no-audit --no-fund \
	        --prefix "$(BUILD)/npm" $(NPM_PACKAGES) > $(BUILD)/npm/log \
	    && echo "$(NPM_PACKAGES)" > $(BUILD)/npm/installed; }

# BROWSER= (empty) skips the tests that need one: any nginx serves the same page.
BROWSER ?= browser
export SLIDING_LIMIT_BROWSER := $(BROWSER)

# What the suites run beside nginx.
TEST_PROGRAMS := $(TEST_MODULE) $(UNIT_TESTS) $(MODEL_TESTS) $(REPLAYS)

test: ## install what is missing, build, and run every test
	@scripts/install-packages build redis test demo $(BROWSER)
	@$(MAKE) -s -j$(JOBS) module npm-packages $(TEST_PROGRAMS)
	@scripts/run-tests "$$(command -v nginx)" "$(abspath $(BUILD))/$(MODULE)" \
	    "$(abspath $(BUILD))/unit" $(SUITES)

SECONDS ?= 60
TARGETS ?= $(FUZZ_TARGETS)

fuzz: ## give made-up bytes to all that reads foreign ones
	@scripts/install-packages build redis fuzz
	@$(MAKE) -s -j$(JOBS) $(TARGETS:%=$(BUILD)/fuzz/%)
	@scripts/fuzz "$(BUILD)" "$(SECONDS)" "$(JOBS)" $(TARGETS)

mutants: ## change the code that counts and decides, bit by bit: does a test notice?
	@scripts/install-packages build redis test mutants
	@$(MAKE) -s $(BUILD)/model/redis_script
	@nice python3 t/mutants/run.py "$(BUILD)" "$(JOBS)" $(if $(SURVIVORS),--survivors) $(FILES)

TIMES ?= 20

repeat: ## run each test twenty times, many at once, and say which of them waver
	@scripts/install-packages build redis test demo $(BROWSER)
	@$(MAKE) -s -j$(JOBS) module npm-packages $(TEST_PROGRAMS)
	@scripts/repeat-tests "$(TIMES)" "$$(command -v nginx)" "$(abspath $(BUILD))/$(MODULE)" \
	    "$(abspath $(BUILD))/unit" $(SUITES)

# Loaded into Redis and nginx, so that their clocks can be set.
CLOCK_SHIM := $(BUILD)/chaos_clock.so

$(CLOCK_SHIM): t/chaos/clock_shim.c
	@mkdir -p $(@D)
	$(CC) -O2 -W -Wall -Wextra -Werror -shared -fPIC -o $@ $<

chaos: ## break Redis, network, clocks and nginx at random for SECONDS, and judge what came of it
	@scripts/install-packages build redis chaos
	@$(MAKE) -s module $(CLOCK_SHIM)
	@t/chaos/run "$(abspath $(BUILD))/$(MODULE)" "$(abspath $(CLOCK_SHIM))" "$(abspath $(BUILD))/chaos" \
	    "$(SECONDS)" "$(SEED)"

bench: ## install what is missing, build, and measure beside the alternatives: build/bench/results.json
	@scripts/install-packages build redis bench
	@$(MAKE) -s module
	@bench/run "$(BUILD)/$(MODULE)" "$(BUILD)"

sanitize: ## the same tests under AddressSanitizer and UBSan
	@scripts/install-packages build redis test demo $(BROWSER) sanitize
	@$(MAKE) -s -j$(JOBS) module npm-packages
	@scripts/build-sanitized-nginx "$(BUILD)" "$(JOBS)"
	@scripts/sanitize "$(BUILD)" $(SUITES)

matrix: ## the same tests with other versions of nginx, hiredis and Redis, and with Valkey
	@scripts/install-packages matrix
	@$(MAKE) -s npm-packages
	@scripts/matrix "$(BUILD)" "$(LANES)" $(SUITES)

coverage: ## which lines of the module the tests reach: build/coverage/unreached.txt
	@scripts/install-packages build redis test demo $(BROWSER) sanitize matrix coverage
	@$(MAKE) -s npm-packages
	@scripts/coverage "$(BUILD)" $(SUITES)

build-test: ## every way to build the module, with a plain nginx tree
	@scripts/install-packages build sanitize
	@scripts/build-test "$(BUILD)" "$(JOBS)"

# The package is for the nginx of this system; pandoc makes its man page.
deb: ## install what is missing, and make the Debian package: build/libnginx-mod-http-sliding-limit_*.deb
	@scripts/install-packages build deb
	@scripts/build-deb "$(BUILD)"

deb-lint: deb ## have lintian check the Debian package, and uscan find releases
	@scripts/install-packages deb-lint
	@lintian --allow-root --fail-on error,warning "$(BUILD)"/deb/*.changes
	@scripts/try-watch

deb-test: ## make the Debian package for several releases, and try it in fresh systems: build/debs
	@scripts/install-packages deb-test apt-repository
	@scripts/deb-test "$(BUILD)" "$(LANES)"

apt-repository: ## make an apt repository of the packages that deb-test has left: build/apt
	@scripts/install-packages apt-repository
	@scripts/apt-repository "$(BUILD)/debs" "$(BUILD)/apt" "$(KEY)"

dist: ## make the source tarball of this version in build/
	@scripts/dist "$(BUILD)"

tls-test: ## walk both ways of docs/tls.md, on a fresh Debian 12 and a fresh Ubuntu 22.04
	@scripts/install-packages tls-test
	@scripts/tls-test $(SYSTEMS)

docker-test: ## build the Docker images without a daemon, and try them
	@scripts/install-packages docker redis
	@scripts/docker-test $(IMAGES)

CXX_FILES := $(shell find src bench t -name '*.cpp' -o -name '*.h' -o -name '*.c')

# The texts of the script and the page are generated: cppcheck would stumble over them. The files of
# lua/ are checked as the one script that they make.
lint: ## check formatting, C++ (for musl, too), Lua, shell scripts and that there is one version
	@scripts/install-packages build lint
	@clang-format --dry-run -Werror $(CXX_FILES)
	@cppcheck -q --std=c++17 --enable=warning,performance,portability --error-exitcode=1 \
	    --suppress=missingInclude --suppress=unknownMacro -i src/redis/sl_redis_script.cpp \
	    -i src/monitor/sl_metrics_page.cpp -Isrc src t/unit t/model t/fuzz
	@scripts/check-includes
	@scripts/check-version
	@shellcheck lua/assemble scripts/* examples/try docker/entrypoint docker/modules/sliding-limit/prebuild .ci/run debian/tests/limits-requests
	@mkdir -p $(BUILD) && sh lua/assemble > $(BUILD)/script.lua
	@luacheck -q $(BUILD)/script.lua bench t/lua
	@for program in bench/*.cpp; do $(CXX) -std=c++17 -fsyntax-only -Isrc "$$program" || exit 1; done
	@$(MAKE) -s module
	@scripts/check-musl "$(BUILD)/nginx"

format: ## format the C++ sources
	@scripts/install-packages lint
	clang-format -i $(CXX_FILES)

clean: ## remove what was built
	rm -rf $(BUILD)
