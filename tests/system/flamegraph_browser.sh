#!/bin/bash
# SPDX-License-Identifier: MIT
# The page with its flame graph, call tree and heat map in a real browser: Debian's Chromium, driven by playwright-core.
# timeout: 600
. "$(dirname "$0")/lib.sh"
driver=$(dirname "$(realpath "$0")")/flamegraph_browser
shots=$DUET_BUILD/tests/flamegraph

# The driver's own node_modules stays out of the source tree.
prepare() {
	mkdir -p "$shots"
	exec {lock}>"$shots/lock"
	flock "$lock"
	cp "$driver/package.json" "$driver/"*.mjs "$shots/"
	[ -d "$shots/node_modules/playwright-core" ] ||
		npm install --prefix "$shots" --no-audit --no-fund --silent >"$shots/npm.log" 2>&1 || return
	flock -u "$lock"
}

skip_all() {
	echo "skip flamegraph_browser: $*"
	exit 0
}

command -v node >/dev/null && command -v "${CHROMIUM:-chromium}" >/dev/null || skip_all "needs node and chromium"
prepare || skip_all "playwright-core could not be installed"
make_profile=$DUET_BUILD/tests/system/flamegraph_profile

# Profiles of 10000 and 20000 samples: hot has 50 and 60 %, same 30 % of both but for what chance explains; gone is only
# in before, new only in after.
make_diff() {
	local run='main;app/Main.run_[j];app/Main' before=$shots/before.collapsed after=$shots/after.collapsed
	printf '%s\n' "$run.hot_[j] 5000" "$run.same_[j] 2970" "$run.same_[j];leaf 30" \
		"$run.gone_[0];java/util/HashMap.get_[i] 2000" >"$before"
	printf '%s\n' "$run.hot_[j] 12000" "$run.same_[j] 5930" "$run.same_[j];leaf 70" "$run.new_[j] 2000" >"$after"
	echo 'main;idle 0' >"$shots/nothing.collapsed"
	"$duet" diff "$before" "$after" "$shots/diff.html" &&
		"$duet" diff "$before" "$shots/nothing.collapsed" "$shots/diff-gone.html"
}

make_graphs() {
	local recursion=300 title
	title=$(printf 'recording-of-a-host-with-a-long-name-%d-' {1..4})
	"$make_profile" 50000 "$shots/graph.html" "$shots/graph.collapsed" &&
		"$make_profile" 0 "$shots/empty.html" &&
		"$make_profile" -t "$title" 10 "$shots/small.html" &&
		"$make_profile" -i 10 "$shots/small-inverted.html" &&
		"$make_profile" -d $recursion 1000 "$shots/tall.html" &&
		"$make_profile" -d $recursion -i 1000 "$shots/tall-inverted.html" &&
		make_diff
}

# Pages that open with the call tree and the heat map. Of 5 samples, 2 are in the same 10 ms, and 4 of thread 2.
make_shapes() {
	printf 't %s: 1 cycles:\n%s\n' \
		'1/2 100.000000' $'\t1 leaf (x)\n\t1 run (x)\n' '1/2 100.005000' $'\t1 leaf (x)\n\t1 run (x)\n' \
		'1/2 100.010000' $'\t1 other (x)\n\t1 run (x)\n' '1/3 101.500000' $'\t1 leaf (x)\n\t1 run (x)\n' \
		'1/2 103.000000' $'\t1 </script> (x)\n\t1 run (x)\n' >"$shots/a.perf"
	"$duet" convert "$shots/a.perf" "$shots/a.heatmap.html" &&
		"$duet" convert "$shots/a.perf" "$shots/a.tree.html" &&
		"$duet" convert "$shots/nothing.collapsed" "$shots/nothing.heatmap.html" &&
		"$DUET_BUILD/tests/bench/made_up_day" 2160000 "$shots/day.heatmap.html" >/dev/null
}

# Two events, two threads, recursion, two seconds.
make_views() {
	local leaf=$'\t1 java.util.C.leaf (x)\n' call=$'\t1 java.util.B.call (x)\n' main=$'\t1 main (x)\n'
	printf '%s %s: 1 %s:\n%s\n' \
		't 1/2' 100.0 cycles "$leaf$call$main" 't 1/2' 100.2 cycles "$leaf$call$call$main" \
		't 1/2' 100.4 cycles "$leaf$call$call$main" 'u 1/3' 100.6 cycles "$leaf$call$main" \
		't 1/2' 101.5 cycles "$main" 'u 1/3' 102.0 cycles $'\t1 java.io.A.read (x)\n'"$main" \
		't 1/2' 101.0 faults "$main" >"$shots/views.perf"
	printf 't 1/2 %s cpu-clock:\n%s\n' "1.0: 3000000000" $'\t1 long (x)\n' "2.0: 500000000" $'\t1 short (x)\n' \
		"3.0: 500000000" $'\t1 short (x)\n' >"$shots/waits.perf"
	"$duet" convert "$shots/views.perf" "$shots/views.html" &&
		"$duet" convert "$shots/waits.perf" "$shots/waits.html"
}

# A sleep of three seconds. Long names, below the JVM's entry and beside it.
make_others() {
	local leaves='a/A.main_[j];java/util/List.forEach_[j]'
	local long='a/very/long/name/of/Type$Inner.methodWithALongName_[j]'
	local template='std::map<std::string, std::vector<std::pair<int, std::string> > >::emplace_hint'
	printf '%s\n' "clone3;JavaThread::run;$leaves;$long 9" "clone3;GangWorker::loop;$template 5" \
		"$leaves;read;vfs_read_[k] 4" "b/B.b_[j] 2" >"$shots/names.collapsed"
	printf 't 1/2 %s cpu-clock:\n%s\n' "10.0: 1000000" $'\t1 tick (x)\n' "14.0: 3000000000" $'\t1 sleep (x)\n' \
		>"$shots/sleep.perf"
	"$duet" convert "$shots/sleep.perf" "$shots/sleep.html" &&
		"$duet" convert "$shots/names.collapsed" "$shots/names.html"
}

if [ "${1:-}" = large ]; then
	parts=(large)
	"$make_profile" 1000000 "$shots/large.html"
else
	parts=(test seen views)
	make_graphs && make_shapes && make_views && make_others
fi || { echo "not ok flamegraph_profile, duet diff: exit code $?"; exit 1; }
cd "$shots" && exec node all.mjs "$PWD" "${parts[@]}"
