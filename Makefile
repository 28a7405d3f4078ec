# Two commands on a fresh machine do everything: make run, make test.
# Each installs what it needs (Debian packages, a virtual environment in .venv) and does nothing the second time.

BUILD ?= build
JOBS ?= $(shell nproc)
FUZZ_SECONDS ?= 3600
PYTHON := .venv/bin/python
PIP := $(PYTHON) -m pip install -q --disable-pip-version-check --no-compile
TORCH := torch==2.13.0
TENSORFLOW := tensorflow-cpu==2.21.0
RUFF := ruff==0.14.14
STAMPS := .cache/stamps

APT_BUILD := cmake ninja-build g++ ccache libfmt-dev nlohmann-json3-dev libcli11-dev zlib1g-dev liblzma-dev libzstd-dev libgtest-dev python3-venv
APT_BENCH := libbenchmark-dev
APT_TEST := chromium
APT_FORM := clang-format-14
APT_CLANG := clang-14 libclang-rt-14-dev clang-tidy-14 llvm-14

# The user's settings for other Python programs are not for these; bytecode is kept, and so written once, of what is used.
unexport PYTHONPATH PYTHONHOME PYTHONSAFEPATH PYTHONDONTWRITEBYTECODE

# ccache refuses to compile where it cannot write its cache, as with a home that is read-only.
COMPILE = cache="$$(ccache --get-config cache_dir 2>/dev/null)"; { mkdir -p "$$cache" && [ -w "$$cache" ]; } 2>/dev/null || export CCACHE_DIR="$$PWD/.cache/ccache"; \
          cmake --build

# $(call beside,targets): what is compiled and what is downloaded do not wait for each other.
beside = @$(MAKE) -s --no-print-directory $(if $(filter -j%,$(MAKEFLAGS)),,-j2) $(1)

.PHONY: all build build-tests run test check test-native test-python test-all test-left-out test-tensorflow form reform test-versions wheel bench fuzz sanitized sanitize lint clean

all: build

$(STAMPS)/apt-build: Makefile
	@scripts/install_packages.sh $(APT_BUILD)
	@mkdir -p $(STAMPS) && touch $@

# A browser to open pages in. Where it cannot be had, those tests are skipped, and say so.
$(STAMPS)/apt-test: Makefile $(STAMPS)/apt-build
	@scripts/install_packages.sh $(APT_TEST) && touch $@ || true

$(STAMPS)/apt-bench: Makefile $(STAMPS)/apt-build
	@scripts/install_packages.sh $(APT_BENCH)
	@touch $@

$(STAMPS)/apt-form: Makefile $(STAMPS)/apt-build
	@scripts/install_packages.sh $(APT_FORM)
	@touch $@

$(STAMPS)/apt-clang: Makefile $(STAMPS)/apt-build
	@scripts/install_packages.sh $(APT_CLANG)
	@touch $@

# A virtual environment is complete when pip is in it.
.venv/bin/pip: | $(STAMPS)/apt-build
	@python3 -m venv .venv

$(STAMPS)/venv: Makefile tests/python/requirements.txt $(STAMPS)/venv-torch
	@$(PIP) -r tests/python/requirements.txt
	@touch $@

# PyTorch's CPU build, for programs to plan, and to measure its own viewer and pickle.load beside Faultline. It has an index of its own, and where that
# cannot be reached the build with CUDA does as well.
$(STAMPS)/venv-torch: Makefile .venv/bin/pip $(STAMPS)/apt-build
	@$(PIP) $(TORCH)+cpu numpy 2>/dev/null || $(PIP) --extra-index-url https://download.pytorch.org/whl/cpu $(TORCH)+cpu numpy || $(PIP) $(TORCH) numpy
	@touch $@

# NVIDIA's headers of the CUDA driver and of NVTX (2.7 MB): the list of driver functions is made from them. No toolkit is needed.
$(STAMPS)/cuda-headers: Makefile .venv/bin/pip $(STAMPS)/apt-build
	@rm -rf .cache/cuda
	@$(PIP) --no-deps --target .cache/cuda nvidia-cuda-runtime==13.4.92 nvidia-nvtx==13.4.92
	@touch $@

$(BUILD)/build.ninja: CMakeLists.txt $(STAMPS)/apt-build $(STAMPS)/cuda-headers
	@cmake -S . -B $(BUILD) -G Ninja -DCMAKE_BUILD_TYPE=Release -DFAULTLINE_TESTS=OFF >/dev/null

build: $(BUILD)/build.ninja
	@$(COMPILE) $(BUILD) -j $(JOBS) --target faultline

# What the wheel shows too, with a Python that has PyTorch.
run:
	$(call beside,build $(STAMPS)/venv-torch)
	@rm -rf $(BUILD)/demo
	@PATH="$$PWD/.venv/bin:$$PATH" $(BUILD)/faultline demo -o $(BUILD)/demo

test:
	$(call beside,build-tests $(STAMPS)/venv $(STAMPS)/apt-test)
	@$(MAKE) --no-print-directory check test-native wheel test-python

# Rooms that include only those before them, the form of files, and figures that are those of the code.
check:
	@python3 scripts/architecture.py

# Every file as its formatter writes it; `make reform` has them written so.
form: $(STAMPS)/apt-form $(STAMPS)/venv-ruff
	@find src -name '*.cpp' -o -name '*.h' | xargs clang-format-14 --dry-run -Werror
	@.venv/bin/ruff check -q python tests scripts
	@.venv/bin/ruff format -q --check python tests scripts

reform: $(STAMPS)/apt-form $(STAMPS)/venv-ruff
	@find src -name '*.cpp' -o -name '*.h' | xargs clang-format-14 -i
	@.venv/bin/ruff check -q --fix python tests scripts
	@.venv/bin/ruff format -q python tests scripts
	@python3 scripts/architecture.py --write

$(STAMPS)/venv-ruff: Makefile .venv/bin/pip
	@$(PIP) $(RUFF)
	@touch $@

build-tests: build
	@cmake -S . -B $(BUILD) -DFAULTLINE_TESTS=ON >/dev/null
	@$(COMPILE) $(BUILD) -j $(JOBS)

test-native: build-tests
	@cd $(BUILD) && ctest --output-on-failure -j $(JOBS) --timeout 900

test-python: build-tests $(STAMPS)/venv $(STAMPS)/apt-test
	@FAULTLINE="$$(cd $(BUILD) && pwd)/faultline" $(PYTHON) -m pytest -q -n $$(($(JOBS) + 1)) --dist loadgroup tests/python $(PYTEST)

# Also the tests that take long (tests/python/conftest.py names them), and those with TensorFlow, which has an environment of its own: about twice the time.
with_tensorflow = @FAULTLINE_TENSORFLOW_PYTHON="$$PWD/.cache/venv-tensorflow/bin/python" $(MAKE) --no-print-directory test-python PYTEST=$(1)
test-all: test-native wheel $(STAMPS)/venv-tensorflow
	$(call with_tensorflow,--all)

# Of these only what `make test` leaves out.
test-left-out: build-tests $(STAMPS)/venv-tensorflow
	$(call with_tensorflow,--left-out)

# And of those only TensorFlow's.
test-tensorflow: build-tests $(STAMPS)/venv-tensorflow
	$(call with_tensorflow,"--left-out -k tensorflow")

$(STAMPS)/venv-tensorflow: Makefile $(STAMPS)/apt-build
	@python3 -m venv .cache/venv-tensorflow
	@.cache/venv-tensorflow/bin/python -m pip install -q --disable-pip-version-check --no-compile $(TENSORFLOW)
	@touch $@

# The dry run with several releases of PyTorch, each in an environment of its own (gigabytes each; VERSIONS="--versions 2.4.1 2.8.0 --keep").
test-versions: build $(STAMPS)/venv
	@$(PYTHON) scripts/test_versions.py --faultline $(BUILD)/faultline --jobs $(JOBS) $(VERSIONS)

$(STAMPS)/venv-wheel: Makefile .venv/bin/pip $(STAMPS)/apt-build
	@$(PIP) scikit-build-core wheel
	@touch $@

# One wheel for every CPython from 3.9 on and every x86-64 Linux with glibc 2.35 or later, and the sources it is made from.
wheel: build $(STAMPS)/venv-wheel
	@rm -rf dist
	@CMAKE_GENERATOR=Ninja $(PYTHON) -m pip wheel -q --disable-pip-version-check . --no-deps --no-build-isolation -w dist -C build-dir=$(BUILD)
	@$(PYTHON) -m wheel tags --remove --platform-tag manylinux_2_35_x86_64 dist/*.whl
	@$(PYTHON) -c "from scikit_build_core.build import build_sdist; build_sdist('dist')" >/dev/null
	@ls -l dist

bench: $(STAMPS)/apt-bench $(STAMPS)/apt-test $(STAMPS)/venv $(STAMPS)/venv-torch
	@cmake -S . -B $(BUILD) -G Ninja -DCMAKE_BUILD_TYPE=Release -DFAULTLINE_BENCHMARKS=ON -DFAULTLINE_TESTS=ON >/dev/null
	@$(COMPILE) $(BUILD) -j $(JOBS)
	@$(PYTHON) scripts/bench/run.py --faultline $(BUILD)/faultline --replay-bench $(BUILD)/replay_bench --torch-python $(PYTHON)
	@$(PYTHON) scripts/bench/view.py --faultline $(BUILD)/faultline --torch-python $(PYTHON)
	@$(PYTHON) scripts/bench/costs.py --faultline $(BUILD)/faultline

# Tests and fuzz targets with AddressSanitizer and UndefinedBehaviorSanitizer, in one tree.
sanitized: $(STAMPS)/apt-clang $(STAMPS)/cuda-headers
	@CXX=clang++-14 cmake -S . -B build-asan -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo -DCMAKE_CXX_FLAGS_RELWITHDEBINFO="-O1 -gline-tables-only -DNDEBUG" \
	  -DFAULTLINE_TESTS=ON -DFAULTLINE_FUZZERS=ON -DFAULTLINE_TOGETHER=ON -DFAULTLINE_SANITIZE=fuzzer-no-link,address,undefined >/dev/null
	@$(COMPILE) build-asan -j $(JOBS)

# Every fuzz target for FUZZ_SECONDS, as many at once as there are cores.
fuzz: sanitized
	@scripts/fuzz.sh build-asan $(FUZZ_SECONDS) $(JOBS)

sanitize: sanitized
	@cd build-asan && ASAN_OPTIONS=detect_leaks=1 UBSAN_OPTIONS=print_stacktrace=1 ctest --output-on-failure -j $(JOBS) --timeout 3000

lint: $(STAMPS)/apt-clang $(BUILD)/build.ninja
	@scripts/lint.sh $(BUILD)

clean:
	@rm -rf $(BUILD) build-asan
