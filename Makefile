# SPDX-License-Identifier: Apache-2.0 OR MIT
# Every target first runs scripts/install.sh for its purpose: quick when nothing is missing.

export PATH := $(HOME)/.cargo/bin:$(PATH)
CARGO ?= cargo
PREFIX ?= /usr/local

.PHONY: help tools demo test install test-long applications fuzz bench area fmt lint check audit \
	docs clean

help:
	@echo "make demo       build, run programs on a trace, draw them, measure them in memory"
	@echo "make test       unit tests, goldens, tidy, both back ends against each other;"
	@echo "                ARGS='--help' lists its options, such as a part of a test's name"
	@echo "make test-long  larger inputs, more programs and seeds, and the long tests;"
	@echo "                PART=sockets, xdp, packets, fabric, store or house runs only that part"
	@echo "make applications  install every program of docs/reference/applications.csv, and test"
	@echo "                them for longer"
	@echo "make fuzz       fuzz readers of other processes' data, a minute each; needs nightly Rust"
	@echo "make install    build, and install command and sockets library below PREFIX=$(PREFIX)"
	@echo "make bench      measure network functions and comparable programs, into out/bench"
	@echo "make area       measure the size of the hardware on an FPGA, with Yosys"
	@echo "make fmt        format every Rust and ClickNP source"
	@echo "make lint       clippy, warnings are errors"
	@echo "make check      formatting, clippy and documentation; changes nothing, warnings are errors"
	@echo "make audit      licences, known vulnerabilities and sources of all crates, by cargo-deny;"
	@echo "                ARGS='licenses bans sources' needs no list of vulnerabilities"
	@echo "make docs       the pages of docs/ as a book in target/book, by mdBook"
	@echo "make clean      remove target/ and out/"

tools:
	@bash scripts/install.sh

demo:
	@bash scripts/install.sh --demo
	@bash scripts/demo.sh

TEST = $(CARGO) run --locked --quiet --package freeport-test-runner --

# The runner comes last: its last line has the counts of the run.
test:
	@bash scripts/install.sh --test
	$(CARGO) test --locked --workspace --doc --quiet
	$(TEST) $(ARGS)

# PART=sockets, xdp, packets, fabric, store or house; without it all parts, one after the other.
test-long:
	@bash scripts/install.sh --applications
	$(TEST) --long $(if $(PART),--part $(PART)) $(ARGS)
	$(if $(filter-out xdp,$(PART)),,FREEPORT_LONG=1 bash scripts/test-lanes.sh)

applications:
	@bash scripts/install.sh --applications
	$(TEST) --long cli::accelerated::

fuzz: tools
	@bash scripts/fuzz.sh ring shared_queue hello monitor_messages

install: tools
	$(CARGO) build --locked --profile dist -p freeport-cli -p freeport-preload
	@PREFIX="$(PREFIX)" bash scripts/install-built.sh "$(DESTDIR)$(PREFIX)"

bench:
	@bash scripts/install.sh --demo
	$(CARGO) run --locked --release --quiet -p freeport-cli -- bench nf --out out/bench

area:
	@bash scripts/install.sh --area
	@bash scripts/area.sh

fmt: tools
	$(CARGO) fmt --all
	$(CARGO) run --locked --quiet -p freeport-cli -- fmt elements examples

lint: tools
	$(CARGO) clippy --locked --workspace --all-targets -- -D warnings

# The quickest checks come first. The style test also checks the format of ClickNP programs.
check: tools
	$(CARGO) fmt --all --check
	@$(MAKE) --no-print-directory lint
	$(CARGO) clippy --locked -p freeport-cli --no-default-features -- -D warnings
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --locked --workspace --no-deps \
		--document-private-items

# cargo-deny takes minutes to build, so only this target installs it, if it is missing.
DENY = 0.20.2
audit: tools
	@command -v cargo-deny >/dev/null || \
		$(CARGO) install --locked cargo-deny --version $(DENY)
	$(CARGO) deny --locked check $(ARGS)

# The book of docs/. The pages are the same that are read in the repository.
docs:
	@bash scripts/install.sh --docs
	@$(HOME)/.cache/freeport/mdbook/bin/mdbook build docs

clean: tools
	$(CARGO) clean --quiet
	rm -rf out
