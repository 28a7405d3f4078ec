# Two commands on a fresh machine do everything: make run, make test.
# Each installs what it needs (Debian packages, a virtual environment in .venv) and does nothing the second time.

BUILD ?= build
JOBS ?= $(shell nproc)
FUZZ_SECONDS ?= 3600
SUDO := $(shell [ "$$(id -u)" = 0 ] || echo sudo)
PYTHON := .venv/bin/python
STAMPS := .cache/stamps

APT_BUILD := cmake ninja-build g++ ccache libfmt-dev nlohmann-json3-dev libcli11-dev zlib1g-dev liblzma-dev libzstd-dev libgtest-dev python3-venv
APT_BENCH := libbenchmark-dev
APT_CLANG := clang-14 libclang-rt-14-dev clang-tidy-14 llvm-14

.PHONY: all build build-tests run test test-native test-python bench fuzz fuzzers sanitize lint clean

all: build

# $(call apt_install,packages): only what dpkg does not know yet, and no network when nothing is missing.
define apt_install
	@mkdir -p $(STAMPS)
	@missing=; for p in $(1); do dpkg-query -W -f='$${Status}' $$p 2>/dev/null | grep -q 'install ok installed' || missing="$$missing $$p"; done; \
	if [ -n "$$missing" ]; then echo "installing:$$missing"; \
	  $(SUDO) apt-get update -qq && $(SUDO) env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $$missing >/dev/null || exit 1; fi
endef

$(STAMPS)/apt-build: Makefile
	$(call apt_install,$(APT_BUILD))
	@touch $@

$(STAMPS)/apt-bench: Makefile $(STAMPS)/apt-build
	$(call apt_install,$(APT_BENCH))
	@touch $@

$(STAMPS)/apt-clang: Makefile $(STAMPS)/apt-build
	$(call apt_install,$(APT_CLANG))
	@touch $@

$(STAMPS)/venv: Makefile tests/python/requirements.txt $(STAMPS)/venv-torch
	@test -x $(PYTHON) || python3 -m venv .venv
	@$(PYTHON) -m pip install -q --disable-pip-version-check -r tests/python/requirements.txt
	@touch $@

# PyTorch's CPU build, for programs to plan, and to measure its own viewer and pickle.load beside Faultline.
$(STAMPS)/venv-torch: Makefile $(STAMPS)/apt-build
	@test -x $(PYTHON) || python3 -m venv .venv
	@$(PYTHON) -m pip install -q --disable-pip-version-check torch==2.13.0 numpy
	@touch $@

# NVIDIA's headers of the CUDA driver and of NVTX (2.7 MB): the list of driver functions is made from them. No toolkit is needed.
$(STAMPS)/cuda-headers: Makefile $(STAMPS)/apt-build
	@test -x $(PYTHON) || python3 -m venv .venv
	@rm -rf .cache/cuda
	@$(PYTHON) -m pip install -q --disable-pip-version-check --no-deps --target .cache/cuda nvidia-cuda-runtime==13.4.92 nvidia-nvtx==13.4.92
	@touch $@

$(BUILD)/build.ninja: CMakeLists.txt $(STAMPS)/apt-build $(STAMPS)/cuda-headers
	@cmake -S . -B $(BUILD) -G Ninja -DCMAKE_BUILD_TYPE=Release -DFAULTLINE_TESTS=OFF >/dev/null

build: $(BUILD)/build.ninja
	@cmake --build $(BUILD) -j $(JOBS) --target faultline

run: build $(STAMPS)/venv-torch
	@echo "Explaining a real recording: a GPT training step that ran out of memory on an H200 (tests/fixtures/torch/gpt_oom.pickle.xz)"
	@echo
	@$(BUILD)/faultline explain tests/fixtures/torch/gpt_oom.pickle.xz || [ $$? -eq 1 ]
	@echo
	@echo "Replaying the same requests on a device of 8 GiB: would they fit?"
	@echo
	@$(BUILD)/faultline replay tests/fixtures/torch/gpt_oom.pickle.xz --gpu 8GiB || [ $$? -eq 1 ]
	@echo
	@echo "Planning a program that has not run yet: examples/train_gpt.py on a T4, without a GPU"
	@echo
	@rm -rf $(BUILD)/plan-example
	@$(BUILD)/faultline plan --gpu T4 -o $(BUILD)/plan-example -- $(PYTHON) examples/train_gpt.py --batch-size 16 || [ $$? -eq 1 ]
	@echo
	@echo "Recording a program that uses the driver interface, on a GPU that this machine's processor plays: examples/driver_copy.cpp"
	@echo
	@rm -rf $(BUILD)/run-example
	@$(CXX) -std=c++17 -g -O1 -I .cache/cuda/nvidia/cu13/include -o $(BUILD)/driver_copy examples/driver_copy.cpp -L $(BUILD)/capture -l:libcuda.so.1
	@$(BUILD)/faultline run --gpu virtual:4GiB -o $(BUILD)/run-example -- $(BUILD)/driver_copy || [ $$? -eq 1 ]

test: test-native test-python

build-tests: $(BUILD)/build.ninja
	@cmake -S . -B $(BUILD) -DFAULTLINE_TESTS=ON >/dev/null
	@cmake --build $(BUILD) -j $(JOBS)

test-native: build-tests
	@cd $(BUILD) && ctest --output-on-failure -j $(JOBS) --timeout 300

test-python: build-tests $(STAMPS)/venv
	@FAULTLINE=$(abspath $(BUILD))/faultline $(PYTHON) -m pytest -q -n $(JOBS) --dist loadgroup tests/python

bench: $(STAMPS)/apt-bench $(STAMPS)/venv $(STAMPS)/venv-torch
	@cmake -S . -B $(BUILD) -G Ninja -DCMAKE_BUILD_TYPE=Release -DFAULTLINE_BENCHMARKS=ON >/dev/null
	@cmake --build $(BUILD) -j $(JOBS)
	@$(PYTHON) scripts/bench/run.py --faultline $(BUILD)/faultline --replay-bench $(BUILD)/replay_bench --torch-python $(PYTHON)

fuzzers: $(STAMPS)/apt-clang $(STAMPS)/cuda-headers
	@CXX=clang++-14 cmake -S . -B build-fuzz -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo -DFAULTLINE_TESTS=OFF -DFAULTLINE_FUZZERS=ON \
	  -DFAULTLINE_SANITIZE=fuzzer-no-link,address,undefined >/dev/null
	@cmake --build build-fuzz -j $(JOBS)

# Every fuzz target for FUZZ_SECONDS, as many at once as there are cores.
fuzz: fuzzers
	@scripts/fuzz.sh build-fuzz $(FUZZ_SECONDS) $(JOBS)

sanitize: $(STAMPS)/apt-build $(STAMPS)/cuda-headers
	@cmake -S . -B build-asan -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo -DFAULTLINE_TESTS=ON -DFAULTLINE_SANITIZE=address,undefined >/dev/null
	@cmake --build build-asan -j $(JOBS)
	@cd build-asan && ASAN_OPTIONS=detect_leaks=1 UBSAN_OPTIONS=print_stacktrace=1 ctest --output-on-failure -j $(JOBS) --timeout 900

lint: $(STAMPS)/apt-clang $(BUILD)/build.ninja
	@scripts/lint.sh $(BUILD)

clean:
	@rm -rf build build-asan build-fuzz
