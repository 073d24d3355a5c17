# SPDX-License-Identifier: MIT
# duet: `make demo` and `make test` install what is missing; `make help` lists the rest.

MAKEFLAGS += --no-builtin-rules
.DELETE_ON_ERROR:
.DEFAULT_GOAL := all

VERSION := 0.1.0
ARCH ?= $(shell uname -m)
O ?= build$(if $(filter-out $(shell uname -m),$(ARCH)),-$(ARCH))
PREFIX ?= /usr/local
Q := $(if $(V),,@)
msg = $(if $(V),,@printf '  %-7s %s\n' $(1) $(2);)

# ---- tools and flags -------------------------------------------------------
ifeq ($(ARCH),x86_64)
vmlinux_arch := x86
bpf_target_arch := x86
else ifeq ($(ARCH),aarch64)
vmlinux_arch := aarch64
bpf_target_arch := arm64
else
$(error ARCH=$(ARCH) is not supported: x86_64 or aarch64)
endif
CROSS := $(if $(filter-out $(shell uname -m),$(ARCH)),$(ARCH)-linux-gnu-)
CC := $(CROSS)gcc
CLANG ?= clang
BPFTOOL ?= $(firstword $(wildcard /usr/sbin/bpftool /sbin/bpftool) bpftool)
JNI_H := $(firstword $(wildcard /usr/lib/jvm/java-17-*/include/jni.h /usr/lib/jvm/*/include/jni.h))
JAVA_HOME_BUILD ?= $(JNI_H:%/include/jni.h=%)

warnings := -Wall -Wextra -Wno-unused-parameter -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wformat=2 \
	-Wno-format-nonliteral -Werror
optimize := $(if $(DEBUG),-O0,-O2) -g
sanitize := $(if $(SAN),-fsanitize=$(SAN) -fno-omit-frame-pointer -fno-sanitize-recover=all)
common := -std=gnu11 $(optimize) $(warnings) -Iheaders -MMD -MP -D_GNU_SOURCE -DDUET_VERSION='"$(VERSION)"'
user_cflags := $(common) $(sanitize) -Iuser -I$(O)/gen -fstack-protector-strong $(CFLAGS)
jni_includes := $(addprefix -isystem $(JAVA_HOME_BUILD)/,include include/linux)
agent_includes := -Ijvm-agent
# How the variable in context.c is found; arm64's default. Older clang, which builds the fuzz targets, does not know it.
tls_descriptors := $(if $(filter x86_64,$(ARCH)),$(shell $(CC) -mtls-dialect=gnu2 -xc -fsyntax-only /dev/null \
	2>/dev/null && echo -mtls-dialect=gnu2))
agent_cflags := $(common) $(agent_includes) $(jni_includes) -fPIC \
	-fvisibility=hidden -fno-omit-frame-pointer -fno-stack-protector -fno-plt \
	$(tls_descriptors) $(CFLAGS)
# -z now: binding a function at its first call takes locks of the dynamic linker, which a signal handler must not.
agent_ldflags := -shared -Wl,-z,defs -Wl,-z,now -Wl,-z,relro -Wl,-z,noexecstack -Wl,--as-needed -Wl,-Bsymbolic \
	-Wl,-soname,libduet.so -lpthread -lrt
# For a JVM that preloads the sanitizers' runtime: tests/system/agent_sanitized.sh. The rest of duet is as SAN says.
agent_sanitize := -fsanitize=address,undefined -fno-sanitize-recover=all
# The runtime is linked in, because it has to come before what a recorder is made to preload; user/base/memory.c wraps.
comma := ,
sanitizer_libs := $(if $(filter %gcc,$(CC)),$(if $(findstring address,$(SAN)),\
	-static-libasan -static-libubsan -Wl$(comma)--wrap=_exit))
# libbpf, libelf, zlib, liblzma, jansson and protobuf-c go into the executable: one file is a full installation.
user_libs := -Wl,--wrap=bpf_btf_get_next_id -Wl,-u,__wrap_bpf_btf_get_next_id \
	-Wl,--wrap=btf__load_vmlinux_btf -Wl,--wrap=bpf_prog_load \
	-Wl,-Bstatic -lbpf -lelf -lz -llzma -liberty -ljansson -lprotobuf-c \
	$(if $(STATIC),-static,-Wl,-Bdynamic) $(sanitizer_libs) $(LDFLAGS)
# v3, known since Linux 5.1, works on 32 bits: the verifier has a tenth fewer instructions to follow.
bpf_cflags := -std=gnu11 -O2 -g -target bpf -mcpu=v3 -D__TARGET_ARCH_$(bpf_target_arch) -MMD -MP -Iheaders -Ibpf \
	-Ivmlinux/$(vmlinux_arch) -idirafter /usr/include -Wall -Wextra -Wno-unused-parameter \
	-Wno-missing-declarations -Werror

# ---- files -------------------------------------------------------------------
user_src := $(filter-out user/main.c,$(sort $(wildcard user/*.c user/*/*.c user/*/*/*.c)))
# Reads JVMs from outside: the agent's code, with the memory of another process (user/reader/memory.h).
hotspot_obj := $(patsubst jvm-agent/%.c,$(O)/user/reader/%.o,$(wildcard jvm-agent/hotspot/*.c))
user_obj := $(user_src:%.c=$(O)/%.o) $(hotspot_obj) $(patsubst %.S,$(O)/%.o,$(wildcard user/*/*.S user/*/*/*.S))
# Formats of protobuf messages, user/profile/x.proto.
protobuf_gen := $(patsubst user/profile/%.proto,$(O)/gen/%.pb-c,$(wildcard user/profile/*.proto))
user_obj += $(protobuf_gen:%=%.o)
agent_obj := $(patsubst %.c,$(O)/%.o,$(sort $(wildcard jvm-agent/*.c jvm-agent/*/*.c)))
# The library for those who call async-profiler's: the same, and the executable inside it.
carried := jvm-agent/api/carried
# The Java classes of async-profiler's API, where there is a JDK.
api_java := $(wildcard jvm-agent/java/one/profiler/*.java)
api_jar := $(if $(wildcard $(JAVA_HOME_BUILD)/bin/jar),$(O)/duet-api.jar)
api_manifest := Premain-Class: one.profiler.Agent\nAgent-Class: one.profiler.Agent\n
skeletons := $(O)/gen/duet.skel.h $(O)/gen/duet_plain.skel.h $(O)/gen/names.skel.h
bpf_obj := $(patsubst %.c,$(O)/%.o,$(sort $(wildcard bpf/*.bpf.c)))
unit_tests := $(patsubst tests/unit/%.c,$(O)/tests/unit/%,$(sort $(wildcard tests/unit/test_*.c)))
# Of the C programs there, those with cmocka are tests, the others help a script.
system_programs := $(patsubst %.c,$(O)/%,$(wildcard tests/system/*.c tests/system/*/*.c tests/matrix/*.c)) \
	$(O)/tests/bench/made_up_day
# Run by hand only: built with the tests, so that they keep up with the code.
developer_programs := $(patsubst %.c,$(O)/%,$(wildcard tests/bench/*.c tests/corpus/*.c)) \
	$(patsubst tests/fuzz/%.c,$(O)/tests/linked/%,$(wildcard tests/fuzz/fuzz_*.c))
system_tests := $(patsubst %.c,$(O)/%,$(shell grep -ls '^#include <cmocka' tests/system/*.c)) \
	$(sort $(filter-out tests/system/lib.sh,$(wildcard tests/system/*.sh)))
# Each prints a table; the other scripts there fetch what they need.
matrix_tests := $(wildcard $(addprefix tests/matrix/,jdks.sh kernels.sh containers.sh privileges.sh service.sh \
	collector.sh))
fuzz_targets := $(addprefix fuzz_,$(or $(patsubst fuzz_%,%,$(TARGET)),$(patsubst tests/fuzz/fuzz_%.c,%,\
	$(sort $(wildcard tests/fuzz/fuzz_*.c)))))
# Objects made with other flags are stale: this file is rewritten, and all else after it, when a flag changes.
flags := $(O)/flags
all_flags := $(CC) $(user_cflags) $(agent_cflags) $(agent_sanitize) $(agent_ldflags) $(user_libs) $(CLANG) $(bpf_cflags)

all: $(O)/duet $(O)/libduet.so $(O)/libasyncProfiler.so $(api_jar) ## the executable and the agent (default)

$(O):
	$(Q)mkdir -p $@

# A new machine lacks this header. Without it, clang 14 crashes.
libbpf_headers := /usr/include/bpf/bpf_helpers.h

$(flags): FORCE | $(O)
	$(Q)[ -e $(libbpf_headers) ] || \
		{ echo "There is no $(libbpf_headers): as root, 'make packages' installs what is missing" >&2; exit 1; }
	$(Q)$(file >$@.new,$(all_flags))cmp -s $@ $@.new && rm $@.new || mv $@.new $@

$(O)/duet: $(O)/user/main.o $(O)/libduetuser.a
	$(call msg,LINK,$@)
	$(Q)$(CC) $(sanitize) -o $@ $^ $(user_libs)

$(O)/libduetuser.a: $(user_obj)
	$(call msg,AR,$@)
	$(Q)rm -f $@ && $(CROSS)ar rcs $@ $^

$(hotspot_obj): $(O)/user/reader/%.o: jvm-agent/%.c $(flags)
	$(call msg,CC,$@)
	$(Q)mkdir -p $(@D) && $(CC) $(user_cflags) -c -o $@ $<

$(O)/user/reader/%.o: private user_cflags += -Iuser/reader -Ijvm-agent
# The stack may have 128 kB.
$(O)/user/%.o: private user_cflags += $(if $(SAN)$(DEBUG),,-Wframe-larger-than=32768)
$(protobuf_gen:%=%.c): $(O)/gen/%.pb-c.c: user/profile/%.proto $(flags)
	$(call msg,PROTO,$<)
	$(Q)mkdir -p $(@D) && protoc-c --proto_path=$(<D) --c_out=$(@D) $(<F)

$(protobuf_gen:%=%.h): %.h: %.c ;

$(protobuf_gen:%=%.o): %.o: %.c
	$(call msg,CC,$<)
	$(Q)$(CC) $(user_cflags) -c -o $@ $<

$(O)/user/%.o: user/%.c $(skeletons) $(protobuf_gen:%=%.h) $(flags)
	$(call msg,CC,$<)
	$(Q)mkdir -p $(@D) && $(CC) $(user_cflags) -c -o $@ $<

$(O)/libduet.so: $(agent_obj) $(O)/$(carried).o
	$(call msg,LINK,$@)
	$(Q)$(CC) -o $@ $^ $(agent_ldflags)

# A JVM unloads an agent that refuses to start, but its thread stays.
$(O)/libasyncProfiler.so: $(agent_obj) $(O)/$(carried)_duet.o
	$(call msg,LINK,$@)
	$(Q)$(CC) -o $@ $^ $(agent_ldflags:%libduet.so=%libasyncProfiler.so) -Wl,-z,nodelete

$(O)/$(carried).o: $(carried).S $(flags)
	$(call msg,AS,$<)
	$(Q)mkdir -p $(@D) && $(CC) -c -o $@ $<

$(O)/$(carried)_duet.o: $(carried).S $(O)/duet.stripped
	$(call msg,EMBED,$<)
	$(Q)mkdir -p $(@D) && $(CC) -DEXECUTABLE_FILE='"$(O)/duet.stripped"' -c -o $@ $<

$(O)/duet.stripped: $(O)/duet
	$(Q)$(CROSS)strip -o $@ $<

$(O)/jvm-agent/%.o: jvm-agent/%.c $(flags)
	$(call msg,CC,$<)
	$(Q)mkdir -p $(@D) && $(CC) $(agent_cflags) -c -o $@ $<

$(O)/sanitized/jvm-agent/%.o: jvm-agent/%.c $(flags)
	$(call msg,CC,$@)
	$(Q)mkdir -p $(@D) && $(CC) $(agent_cflags) $(agent_sanitize) -c -o $@ $<

$(O)/sanitized/libduet.so: $(agent_obj:$(O)/%=$(O)/sanitized/%) $(O)/$(carried).o
	$(call msg,LINK,$@)
	$(Q)$(CC) $(agent_sanitize) -o $@ $^ $(agent_ldflags)

$(O)/sanitized/library.o: user/attach/library.S $(O)/sanitized/libduet.so
	$(call msg,EMBED,$@)
	$(Q)$(CC) -DAGENT_FILE='"$(O)/sanitized/libduet.so"' -c -o $@ $<

# library.o comes before the archive that has another one.
$(O)/sanitized/duet: $(O)/user/main.o $(O)/sanitized/library.o $(O)/libduetuser.a
	$(call msg,LINK,$@)
	$(Q)$(CC) $(sanitize) -o $@ $^ $(user_libs)

$(O)/duet-api.jar: $(api_java)
	$(call msg,JAR,$@)
	$(Q)rm -rf $(O)/api && mkdir -p $(O)/api && printf '$(api_manifest)' >$(O)/api.manifest
	$(Q)$(JAVA_HOME_BUILD)/bin/javac --release 8 -Xlint:-options -d $(O)/api $^
	$(Q)$(JAVA_HOME_BUILD)/bin/jar cfm $@ $(O)/api.manifest -C $(O)/api .

# Bytes inside the executable: the agent, the flame graph's page.
$(O)/user/%.o: user/%.S
	$(call msg,EMBED,$<)
	$(Q)mkdir -p $(@D) && $(CC) -DAGENT_FILE='"$(O)/libduet.so"' -c -o $@ $<

$(O)/user/attach/library.o: $(O)/libduet.so
$(O)/user/writers/html/assets.o: $(wildcard user/writers/html/flamegraph/*)

$(O)/bpf/%.bpf.o: bpf/%.bpf.c $(flags)
	$(call msg,BPF,$<)
	$(Q)mkdir -p $(@D) && $(CLANG) $(bpf_cflags) -c -o $@ $<

# The same programs twice, see bpf/unwind_vma.bpf.c: with what needs Linux 5.17, and without.
$(O)/gen/duet.bpf.o: $(filter-out %/unwind_no_vma.bpf.o %/names.bpf.o,$(bpf_obj))
$(O)/gen/duet_plain.bpf.o: $(filter-out %/unwind_vma.bpf.o %/names.bpf.o,$(bpf_obj))
$(O)/gen/names.bpf.o: $(O)/bpf/names.bpf.o
$(O)/gen/%.bpf.o:
	$(call msg,BPFLINK,$@)
	$(Q)mkdir -p $(@D) && $(BPFTOOL) gen object $@ $^

.SECONDARY: $(skeletons)
$(O)/gen/%.skel.h: $(O)/gen/%.bpf.o
	$(call msg,SKEL,$@)
	$(Q)$(BPFTOOL) gen skeleton $< name $*_bpf > $@

$(O)/tests/%: tests/%.c $(O)/libduetuser.a
	$(call msg,TEST,$@)
	$(Q)mkdir -p $(@D) && $(CC) $(user_cflags) -Itests $(agent_includes) $(jni_includes) -o $@ \
		$< $(O)/libduetuser.a -lcmocka $(user_libs)

# Those that have nothing of duet in them are free of sanitizers too, whose own memory would wait for what they block.
strangers := $(addprefix $(O)/tests/system/,asprof_hostile hostile_files hostile_crowd hostile_neighbour page_out \
	peak_memory replace_tmp)
$(strangers): $(O)/%: %.c $(flags)
	$(call msg,TEST,$@)
	$(Q)mkdir -p $(@D) && $(CC) $(common) $(CFLAGS) -Itests -o $@ $< -lpthread

# Notes which ways its walks take.
$(O)/tests/corpus/capture: private user_cflags += -fsanitize-coverage=trace-pc

# Not to be run: whether all that they use is there.
$(O)/tests/linked/%: tests/fuzz/%.c $(O)/libduetuser.a
	$(call msg,TEST,$@)
	$(Q)mkdir -p $(@D) && $(CC) $(user_cflags) -O0 -g0 -nostartfiles -Wl,-e,LLVMFuzzerTestOneInput -Itests \
		-Itests/fuzz $(agent_includes) $(jni_includes) -o $@ $< $(O)/libduetuser.a $(user_libs)

# Built by a make of its own, with clang and sanitizers in everything, see `fuzz` below.
$(O)/tests/fuzz/%: tests/fuzz/%.c $(O)/libduetuser.a
	$(call msg,FUZZ,$@)
	$(Q)mkdir -p $(@D) && $(CC) $(user_cflags) -fsanitize=fuzzer -Itests -Itests/fuzz $(agent_includes) \
		$(jni_includes) -o $@ $< $(O)/libduetuser.a $(user_libs)

# Java workloads, and the native half of those that need one.
$(O)/workloads/.made: $(wildcard tests/workloads/*.java) $(O)/duet-api.jar
	$(call msg,JAVAC,tests/workloads)
	$(Q)mkdir -p $(@D) && rm -rf $(@D)/*/
	$(Q)$(JAVA_HOME_BUILD)/bin/javac --release 8 -Xlint:-options -cp $(O)/duet-api.jar -d $(@D) \
		$(filter %.java,$^) && touch $@

$(O)/workloads/libworkload.so: tests/workloads/workload.c $(flags)
	$(call msg,CC,$<)
	$(Q)mkdir -p $(@D) && $(CC) $(agent_cflags) -shared -o $@ $<

$(O)/workloads/libmemory_late.so: private agent_cflags += -DTAKER=Late -Wl,-z,now -Wl,-z,relro
$(O)/workloads/libmemory.so $(O)/workloads/libmemory_late.so: tests/workloads/memory.c $(flags)
	$(call msg,CC,$@)
	$(Q)mkdir -p $(@D) && $(CC) $(agent_cflags) -shared -o $@ $<

$(O)/workloads/liblocks.so: tests/workloads/locks.c $(flags)
	$(call msg,CC,$@)
	$(Q)mkdir -p $(@D) && $(CC) $(agent_cflags) -shared -o $@ $<

crafted := $(if $(filter x86_64%,$(shell $(CC) -dumpmachine)),$(O)/workloads/libcrafted.so)

$(O)/workloads/libcrafted.so: tests/workloads/crafted.c $(flags)
	$(call msg,CC,$@)
	$(Q)mkdir -p $(@D) && $(CC) $(agent_cflags) -O1 -g0 -fomit-frame-pointer -fno-asynchronous-unwind-tables \
		-shared -o $@ $<

# Native workloads without frame pointers; the C++ one where there is a compiler for it.
CXX := $(CROSS)g++
native_cflags := $(filter-out -Wstrict-prototypes -Wmissing-prototypes,$(common)) -O2 -fomit-frame-pointer -Wno-shadow
musl_gcc := $(if $(CROSS),,$(shell command -v musl-gcc))
native_workloads := $(O)/workloads/libworkload.so $(O)/workloads/libmemory.so $(O)/workloads/libmemory_late.so \
	$(O)/workloads/liblocks.so $(crafted) \
	$(addprefix $(O)/workloads/,native native_static native_debug_frame busy instructions crowd events sleeps \
	kinds odd_sleeps disk_waits throng mayfly mayfly_child parked wakers transfers odd_files rings \
	libnative.so libraries liblarge_small.so liblarge_large.so libliar.so contexts services routes \
	libcontexts_descriptor.so libcontexts_index.so libcontexts_distance.so libclock_ahead.so routes_static \
	$(if $(shell command -v ld.lld),libcontexts_bound_descriptor.so libcontexts_bound_distance.so) \
	$(if $(shell command -v $(CXX)),native_throw) $(if $(musl_gcc),native_musl native_musl_static) \
	$(if $(shell command -v go),goroutines))

$(O)/workloads/native: tests/workloads/native.c $(flags)
	$(call msg,CC,$@)
	$(Q)mkdir -p $(@D) && $(CC) $(native_cflags) -o $@ $< -ldl -lpthread

# One variable, as the executable has it, and in the three ways that a library can.
$(addprefix $(O)/workloads/,contexts routes): $(O)/workloads/%: tests/workloads/%.c $(flags)
	$(call msg,CC,$@)
	$(Q)mkdir -p $(@D) && $(CC) $(native_cflags) -rdynamic -o $@ $< -ldl -lpthread

$(addprefix $(O)/workloads/,services routes): tests/workloads/publishing.h

$(O)/workloads/services: tests/workloads/services.c $(flags)
	$(call msg,CC,$@)
	$(Q)mkdir -p $(@D) && $(CC) $(native_cflags) -o $@ $<

tls_dialect = $(if $(filter x86_64,$(ARCH)),-mtls-dialect=$(if $(filter $1,descriptor),gnu2,gnu),\
	-mtls-dialect=$(if $(filter $1,descriptor),desc,trad))
tls_library = $(CC) $(native_cflags) -DAS_LIBRARY -fPIC $(call tls_dialect,$*) \
	-ftls-model=$(if $(filter distance,$*),initial-exec,global-dynamic) -shared -o $@ $<
$(O)/workloads/libcontexts_%.so: tests/workloads/contexts.c $(flags)
	$(call msg,CC,$@)
	$(Q)mkdir -p $(@D) && $(tls_library)

# The linker's relocations do not name the variable.
$(O)/workloads/libcontexts_bound_%.so: tests/workloads/contexts.c $(flags)
	$(call msg,CC,$@)
	$(Q)mkdir -p $(@D) && $(tls_library) -fuse-ld=lld -Wl,-Bsymbolic

$(O)/workloads/routes_static: tests/workloads/routes.c tests/workloads/publishing.h $(flags)
	$(call msg,CC,$@)
	$(Q)mkdir -p $(@D) && $(CC) $(native_cflags) -static-pie -Wl,--export-dynamic-symbol=otel_thread_ctx_v1 -o $@ $<

$(O)/workloads/busy: tests/workloads/busy.c $(flags)
	$(call msg,CC,$@)
	$(Q)mkdir -p $(@D) && $(CC) $(native_cflags) -o $@ $< -lpthread

$(O)/workloads/kinds: tests/workloads/kinds.c $(flags)
	$(call msg,CC,$@)
	$(Q)mkdir -p $(@D) && $(CC) $(native_cflags) -o $@ $< -lpthread

$(O)/workloads/libclock_ahead.so: tests/workloads/clock_ahead.c $(flags)
	$(call msg,CC,$@)
	$(Q)mkdir -p $(@D) && $(CC) $(native_cflags) -fPIC -shared -o $@ $<

$(O)/workloads/instructions: tests/workloads/instructions.c $(flags)
	$(call msg,CC,$@)
	$(Q)mkdir -p $(@D) && $(CC) $(native_cflags) -o $@ $<

$(O)/workloads/events: tests/workloads/events.c $(flags)
	$(call msg,CC,$@)
	$(Q)mkdir -p $(@D) && $(CC) $(native_cflags) -o $@ $< -lpthread

waiting_workloads := $(addprefix $(O)/workloads/,sleeps odd_sleeps disk_waits wakers parked transfers odd_files rings)
$(waiting_workloads): $(O)/workloads/%: tests/workloads/%.c $(flags)
	$(call msg,CC,$@)
	$(Q)mkdir -p $(@D) && $(CC) $(native_cflags) -o $@ $< -lpthread

$(O)/workloads/crowd: tests/workloads/crowd.c $(flags)
	$(call msg,CC,$@)
	$(Q)mkdir -p $(@D) && $(CC) $(native_cflags) -o $@ $<

$(O)/workloads/throng: tests/workloads/throng.c $(flags)
	$(call msg,CC,$@)
	$(Q)mkdir -p $(@D) && $(CC) $(native_cflags) -o $@ $<

$(O)/workloads/mayfly: tests/workloads/mayfly.c tests/workloads/mayfly.h $(flags)
	$(call msg,CC,$@)
	$(Q)mkdir -p $(@D) && $(CC) $(native_cflags) -o $@ $<

# Atomics out of line would ask libc for the CPU's features.
$(O)/workloads/mayfly_child: tests/workloads/mayfly_child.c tests/workloads/mayfly.h $(flags)
	$(call msg,CC,$@)
	$(Q)mkdir -p $(@D) && $(CC) $(native_cflags) $(if $(filter aarch64,$(ARCH)),-mno-outline-atomics) \
		-static -nostartfiles -o $@ $<

$(O)/workloads/native_static: tests/workloads/native.c $(flags)
	$(call msg,CC,$@)
	$(Q)mkdir -p $(@D) && $(CC) $(native_cflags) -DNATIVE_STATIC -static-pie -o $@ $<

$(O)/workloads/native_debug_frame: tests/workloads/native.c $(flags)
	$(call msg,CC,$@)
	$(Q)mkdir -p $(@D) && $(CC) $(native_cflags) -fno-asynchronous-unwind-tables -fno-unwind-tables -o $@ $< \
		-ldl -lpthread

$(O)/workloads/libnative.so: tests/workloads/native.c $(flags)
	$(call msg,CC,$@)
	$(Q)mkdir -p $(@D) && $(CC) $(native_cflags) -fPIC -shared -o $@ $<

$(O)/workloads/libraries: tests/workloads/libraries.c $(flags)
	$(call msg,CC,$@)
	$(Q)mkdir -p $(@D) && $(CC) $(native_cflags) -o $@ $< -ldl

$(O)/workloads/liblarge_small.so: FUNCTIONS := 3500
$(O)/workloads/liblarge_large.so: FUNCTIONS := 20000
$(O)/workloads/liblarge_%.so: tests/workloads/libraries.c $(flags)
	$(call msg,CC,$@)
	$(Q)mkdir -p $(@D) && $(CC) $(filter-out -g,$(native_cflags)) -fPIC -shared -DFUNCTIONS=$(FUNCTIONS) -o $@ $<

$(O)/workloads/libliar.so: tests/workloads/liar.c $(flags)
	$(call msg,CC,$@)
	$(Q)mkdir -p $(@D) && $(CC) $(native_cflags) -fPIC -shared -o $@ $< -lpthread

$(O)/workloads/native_throw: tests/workloads/native_throw.cc $(flags)
	$(call msg,CXX,$@)
	$(Q)mkdir -p $(@D) && $(CXX) $(filter-out -std=%,$(native_cflags)) -o $@ $<

$(O)/workloads/native_musl_static: private native_cflags += -static
$(O)/workloads/native_musl $(O)/workloads/native_musl_static: tests/workloads/native.c $(flags)
	$(call msg,CC,$@)
	$(Q)mkdir -p $(@D) && $(musl_gcc) $(native_cflags) -o $@ $< -lpthread

$(O)/workloads/goroutines: tests/workloads/goroutines.go $(flags)
	$(call msg,GO,$@)
	$(Q)mkdir -p $(@D) && GOCACHE=$(abspath $(O))/go GO111MODULE=off CGO_ENABLED=0 \
		GOARCH=$(if $(filter x86_64,$(ARCH)),amd64,arm64) go build -o $@ $<

# ---- what people type ----------------------------------------------------------
workloads: $(O)/workloads/.made $(native_workloads) ## what demo, tests and bench profile

# Where scripts find what was built.
export DUET_BUILD := $(abspath $(O))
# Tools may be missing until .ci/packages has run, so what uses them starts in a second make.
again = $(MAKE) --no-print-directory $(if $(filter -j%,$(MAKEFLAGS)),,-j$(shell nproc))

demo: ## install what is missing, build, profile a bundled JVM for 10 s
	$(Q).ci/packages build
	$(Q)$(again) all workloads
	$(Q)tests/demo.sh

check: $(unit_tests) $(developer_programs) ## units, formats and style: what needs neither JVM nor BPF, in a minute
	$(Q)tests/run $(unit_tests) tests/system/style_order.sh

test: ## install what is missing, build, and prove every area in minutes: `check` and the cases of tests/core
	$(Q).ci/packages build test
	$(Q)$(again) all workloads $(unit_tests) $(system_programs) $(developer_programs)
	$(Q)tests/run $(TEST_OPTIONS) -f tests/core $(unit_tests) $(system_tests)

test-all: ## every case, then test-matrix; PART=commit SECONDS=600: system cases beyond `test`, as that commit draws
	$(Q).ci/packages build test cross
	$(Q).ci/packages judge || echo "cases that need what is missing are skipped"
	$(Q)$(again) all workloads $(unit_tests) $(system_programs) $(O)/sanitized/duet
	$(Q)$(if $(PART),tests/run $(TEST_OPTIONS) -x tests/core -s $(PART) -t $(SECONDS) $(system_tests),\
		tests/run $(unit_tests) $(system_tests) && $(MAKE) --no-print-directory test-matrix)

test-sanitized: ## system cases of `test`, and a storm for MINUTES=1, with duet under sanitizers; PART=, SECONDS= too
	$(Q).ci/packages build test
	$(Q)$(again) O=$(O)/asan SAN=address,undefined sanitized-cases

.PHONY: test-sanitized sanitized-cases
sanitized-cases: all workloads $(system_programs)
	$(Q){ grep -vE '^(test_|style_order|build_everything|collector_sampling)' tests/core; \
		echo host_storm; } >$(O)/cases
	$(Q)MINUTES=$(MINUTES) tests/run $(TEST_OPTIONS) -f $(O)/cases $(if $(PART),-s $(PART) -t $(SECONDS)) \
		$(system_tests)

unit: $(if $(T),$(O)/tests/unit/test_$(T),$(unit_tests)) ## unit tests only, T=join: those of test_join.c
	$(Q)tests/run $^

# The walks in tests/fixtures/walk: which of them go there is for people to choose.
capture: all workloads $(developer_programs) ## walks of the JVMs here, for tests: FOLDER=, JDK=
	$(Q)tests/corpus/capture.sh "$(or $(FOLDER),$(O)/walks)" $(JDK)

system: all workloads $(system_programs) $(O)/sanitized/duet ## real JVMs, real BPF; T=record_join C=one_stack: a case
	$(Q)tests/run $(if $(C),-c $(C)) $(if $(T),$(filter $(foreach t,$(T),%/$(t) %/$(t).sh),$(system_tests)),\
		$(system_tests))

test-matrix: ## JDKs, kernels, containers, rights, unit; keeps what it unpacks in DUET_SCRATCH (/var/tmp/duet-matrix)
	$(Q).ci/packages build test
	$(Q).ci/packages cross matrix || echo "cells that need what is missing are skipped"
	$(Q)$(again) all workloads $(system_programs)
	$(Q)tests/run -w -j 1 $(matrix_tests)

chaos: all workloads ## storms in JVMs, killed loaders: SECONDS=180 SEED=random EPISODE=all of them
	$(Q)tests/chaos/chaos.sh "$(or $(SECONDS),180)" "$(SEED)" "$(EPISODE)"

fuzz: ## hostile bytes for every parser, or TARGET=elf; SECONDS=20 each, SEED=random
	$(Q).ci/packages build fuzz
	$(Q)$(again) O=$(O)/fuzz CC=$(CLANG) SAN=fuzzer-no-link,address,undefined fuzz-programs
	$(Q)tests/fuzz/run $(O)/fuzz/tests/fuzz "$(SECONDS)" "$(SEED)" $(fuzz_targets)

# Classes for the rewriter to begin with, where there is a JDK.
fuzz_classes := $(if $(wildcard $(JAVA_HOME_BUILD)/bin/javac),$(O)/tests/fuzz/fuzz_rewrite.corpus)
$(O)/tests/fuzz/fuzz_rewrite.corpus: $(wildcard tests/workloads/*.java)
	$(call msg,JAVAC,$@)
	$(Q)rm -rf $@ && mkdir -p $@
	$(Q)$(JAVA_HOME_BUILD)/bin/javac -g -Xlint:none -sourcepath jvm-agent/java -d $@ $^ && touch $@

.PHONY: fuzz fuzz-programs
fuzz-programs: $(fuzz_targets:%=$(O)/tests/fuzz/%) $(fuzz_classes)

# A window's seconds have another name in scripts: SECONDS counts there by itself.
bench_settings = ASPROF="$(ASPROF)" ROUNDS=$(ROUNDS) WINDOW=$(SECONDS)

bench: all workloads ## what profiling costs, as tables: ROUNDS=3 SECONDS=3 ASPROF=/path/to/asprof
	$(Q)$(bench_settings) tests/bench/run.sh

bench-walk: all workloads ## what BPF takes for a stack of 60 frames: ROUNDS=5 BEFORE=/path/to/another/duet
	$(Q)ROUNDS=$(ROUNDS) BEFORE="$(BEFORE)" tests/bench/walk_cost.sh

bench-taps: all workloads ## CPU time, allocations and locks together: PEER=/path/to/libasyncProfiler.so ROUNDS=5
	$(Q)$(bench_settings) PEER="$(PEER)" tests/bench/taps.sh

bench-events: all workloads ## what memory, locks and traced methods add to each call: ROUNDS=3 SECONDS=3
	$(Q)$(bench_settings) tests/bench/events.sh

bench-offcpu: $(O)/tests/bench/empty_program
bench-offcpu: all workloads ## time off CPU: costs, sums; ROUNDS=3 RUNS=10 BEFORE=/path/to/duet MEASURE=all_parked
	$(Q)$(bench_settings) RUNS=$(RUNS) BEFORE="$(BEFORE)" tests/bench/offcpu.sh

bench-convert: $(O)/tests/bench/made_up_day
bench-convert: all workloads $(O)/tests/system/peak_memory ## what converting ten million samples takes, for each format
	$(Q)JFRCONV="$(JFRCONV)" tests/bench/convert.sh

bench-peers: ## the same beside perf and async-profiler, with Tomcat, javac and others; fetches them
	$(Q).ci/packages build bench
	$(Q)$(again) all workloads
	$(Q)$(bench_settings) tests/bench/peers.sh

bench-attach: ## for how long an attach holds a large JVM, beside async-profiler: ROUNDS=3 JDK=HOME
	$(Q).ci/packages build bench
	$(Q)$(again) all workloads
	$(Q)$(bench_settings) tests/bench/attach.sh

bench-attacks: all workloads $(O)/tests/system/hostile_neighbour ## what victims keep beside attacks: ATTACK=forks
	$(Q)tests/bench/attacks.sh $(ATTACK)

bench-start: all workloads ## how long libasyncProfiler.so holds a JVM; CPU time of short recordings: ROUNDS=3 BEFORE=
	$(Q)$(bench_settings) BEFORE="$(BEFORE)" tests/bench/start.sh

bench-span: all workloads ## what it takes to set a thread's trace and span, and to make a span: ROUNDS=3 JDK=HOME
	$(Q)$(bench_settings) tests/bench/span.sh

bench-outside: all ## what javac notices when it is read from outside, its CPU time and pauses: ROUNDS=10 JDK=HOME
	$(Q)$(bench_settings) tests/bench/outside.sh

bench-inline: ## how right inlined methods are, beside async-profiler: ROUNDS=2 JDK=HOME ASPROF=/path WORKLOADS=leafs
	$(Q).ci/packages build bench
	$(Q)$(again) all workloads
	$(Q)ASPROF="$(ASPROF)" ROUNDS=$(ROUNDS) WINDOW=$(SECONDS) tests/bench/inline.sh

bench-loader: $(O)/tests/bench/loader_replay ## the records of 128 CPUs and 500 JVMs replayed: SECONDS=40 of that host
	$(Q)tests/bench/loader.sh $(SECONDS)

bench-results: ## run all of these, put their tables and the last test-matrix's into RESULTS.md; ONLY=matrix
	$(Q).ci/packages build bench
	$(Q)$(again) all workloads $(O)/tests/bench/loader_replay
	$(Q)ROUNDS=$(ROUNDS) WINDOW=$(SECONDS) tests/bench/results.sh $(ONLY)

cross: ## build for aarch64 (what ARCH=aarch64 does to any target)
	$(Q)$(again) ARCH=aarch64 O=$(O)/aarch64 all

install: all ## into DESTDIR, PREFIX (/usr/local)
	install -D -m 755 $(O)/duet $(DESTDIR)$(PREFIX)/bin/duet
	[ -e $(DESTDIR)$(PREFIX)/bin/asprof ] || ln -s duet $(DESTDIR)$(PREFIX)/bin/asprof # async-profiler's stays
	[ -e $(DESTDIR)$(PREFIX)/bin/jfrconv ] || ln -s duet $(DESTDIR)$(PREFIX)/bin/jfrconv # the same
	install -D -m 644 $(O)/libasyncProfiler.so $(DESTDIR)$(PREFIX)/lib/duet/libasyncProfiler.so
	[ -e $(DESTDIR)$(PREFIX)/lib/libasyncProfiler.so ] || \
		ln -s duet/libasyncProfiler.so $(DESTDIR)$(PREFIX)/lib/libasyncProfiler.so # the same
	$(if $(api_jar),install -D -m 644 $(api_jar) $(DESTDIR)$(PREFIX)/share/java/duet-api.jar)
	install -D -m 644 user/man/duet.1 $(DESTDIR)$(PREFIX)/share/man/man1/duet.1
	install -D -m 644 user/man/asprof.1 $(DESTDIR)$(PREFIX)/share/man/man1/duet-asprof.1
	install -D -m 644 user/man/duet.conf.5 $(DESTDIR)$(PREFIX)/share/man/man5/duet.conf.5
	[ -e $(DESTDIR)/etc/duet/duet.conf ] || \
		install -D -m 644 user/packaging/duet.conf $(DESTDIR)/etc/duet/duet.conf
	install -D -m 644 user/packaging/duet.service $(DESTDIR)$(PREFIX)/lib/systemd/system/duet.service
	sed -i 's|^ExecStart=[^ ]*|ExecStart=$(PREFIX)/bin/duet|' $(DESTDIR)$(PREFIX)/lib/systemd/system/duet.service
	install -D -m 644 user/packaging/duet.bash $(DESTDIR)$(PREFIX)/share/bash-completion/completions/duet
	install -D -m 644 user/packaging/duet.zsh $(DESTDIR)$(PREFIX)/share/zsh/vendor-completions/_duet
	install -D -m 644 user/packaging/duet.fish $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/duet.fish

packages: ## install what build, tests and cross build need (the list: .ci/packages)
	$(Q).ci/packages build test cross

format: ## clang-format all C
	$(Q).ci/packages format
	$(Q)clang-format -i $$(git ls-files '*.c' '*.h' | grep -v '^vmlinux/')

clean: ## remove the output folder
	$(Q)rm -rf $(O)

help: ## this list
	@sed -n 's/^\([a-z-]*\):.* ## \(.*\)/  make \1\t\2/p' Makefile | expand -t 20
	@printf '\n  O=DIR output folder  V=1 show commands  DEBUG=1 -O0  SAN=address,undefined  STATIC=1\n'

FORCE:
.PHONY: all workloads demo check test test-all unit capture system test-matrix chaos bench bench-walk bench-taps \
	bench-events bench-offcpu bench-convert bench-peers bench-attach bench-start bench-outside bench-inline \
	bench-loader bench-results cross install packages format clean help FORCE
-include $(shell find $(O) -name '*.d' 2>/dev/null)
