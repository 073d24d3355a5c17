# SPDX-License-Identifier: MIT
# shellcheck shell=bash
#
# Programs that need more than a JVM, for a bench that has sourced lib.sh. command_NAME prepares its files in $scratch
# and sets `command`, which runs it in $jdk with JVM_OPTS, without end and as one process.

command_javac() {
	local sources=$scratch/javac home
	for home in "$jdk" $(jdks); do
		[ ! -e "$home/lib/src.zip" ] || break
	done
	if [ ! -e "$sources" ]; then
		mkdir -p "$sources"
		(cd "$sources" && "$home/bin/jar" xf "$(realpath "$home/lib/src.zip")" jdk.compiler) ||
			die "$home has no sources of the compiler"
	fi
	command=("$home/bin/java" -Xmx1g ${JVM_OPTS[@]+"${JVM_OPTS[@]}"} -cp "$workloads" workload.Bench javac
		"$sources/jdk.compiler")
}

page=http://localhost:18080/examples/servlets/servlet/HelloWorldExample

command_tomcat() {
	local base=$scratch/tomcat
	if [ ! -e "$base" ]; then
		tomcat10-instance-create -p 18080 -c 18005 "$base" >/dev/null || die "no Tomcat instance"
		cp -r /usr/share/tomcat10-examples/examples "$base/webapps/"
	fi
	command=(env CATALINA_BASE="$base" JAVA_HOME="$jdk" CATALINA_OPTS="${JVM_OPTS[*]}"
		/usr/share/tomcat10/bin/catalina.sh run)
}

await_tomcat() {
	local end=$((SECONDS + 60))
	until wrk -t 1 -c 1 -d 1 "$page" 2>/dev/null | grep -q 'Requests/sec'; do
		[ $SECONDS -lt $end ] || die "Tomcat does not answer: $(tail -n 5 "$scratch/tomcat.log")"
		sleep 0.2
	done
}

# A compiler that was compiled by another compiler than javac. It compiles the same made-up classes again and again.
command_scalac() {
	local sources=$scratch/scalac path name i
	mkdir -p "$sources/out"
	for ((i = 0; i < 40; i++)); do
		cat >"$sources/T$i.scala" <<-END
			package made
			sealed trait T$i[+X] { def size: Int }
			case class Leaf$i[X](x: X) extends T$i[X] { def size = 1 }
			case class Node$i[X](l: T$i[X], r: T$i[X]) extends T$i[X] { def size = l.size + r.size }
			object T$i {
			  def fold[X, Y](t: T$i[X])(f: X => Y)(g: (Y, Y) => Y): Y = t match {
			    case Leaf$i(x) => f(x)
			    case Node$i(l, r) => g(fold(l)(f)(g), fold(r)(f)(g))
			  }
			  implicit class Rich[X](val t: T$i[X]) { def map[Y](f: X => Y): T$i[Y] =
			    fold[X, T$i[Y]](t)(x => Leaf$i(f(x)))(Node$i(_, _)) }
			  def pairs(xs: List[Int]) = for (x <- xs; y <- xs if x > y) yield (x, y.toString)
			  def words(s: String) = s.split(" ").groupBy(_.length).mapValues(_.map(_.trim).toList).toMap
			}
		END
	done
	for name in scala-compiler scala-library scala-reflect scala-xml_2.11 scala-parser-combinators_2.11; do
		path+=${path:+:}/usr/share/java/$name.jar
	done
	command=("$jdk/bin/java" -Xmx1g -Xss4m ${JVM_OPTS[@]+"${JVM_OPTS[@]}"} -Dscala.boot.class.path="$path"
		-cp "$path:$workloads" workload.Repeat scala.tools.nsc.Main process -usejavacp -nowarn
		-d "$sources/out" "$sources"/*.scala)
}

command_jruby() {
	cat >"$scratch/work.rb" <<-'END'
		def fib(n) n < 2 ? n : fib(n - 1) + fib(n - 2) end
		loop do
		  fib(18)
		  words = {}
		  2000.times { |i| words["k#{i}"] = i.to_s.reverse }
		  words.keys.sort.map(&:upcase).join(',').scan(/K\d+/).size
		  (1..500).map { |x| Math.sqrt(x).round(3) }.inject(:+)
		end
	END
	command=(env JAVA_HOME="$jdk" JAVA_OPTS="${JVM_OPTS[*]}" jruby "$scratch/work.rb")
}

# ---- for bench_all() ---------------------------------------------------------------------------------

start_tomcat() {
	jvm_out=$here/requests
	command_tomcat
	"${command[@]}" >"$scratch/tomcat.log" 2>&1 </dev/null &
	jvm=$!
	jvms+=("$jvm")
	await_tomcat
	load_tomcat &
	jvms+=("$!")
}

# Prints the number of requests so far, every second.
load_tomcat() {
	local total=0 count
	while :; do
		count=$(wrk -t 1 -c 8 -d 1 "$page" | sed -n 's/ *\([0-9]*\) requests in.*/\1/p')
		total=$((total + count))
		echo "OPS $total $(($(cpu_ticks "$jvm") * (1000000000 / hz)))"
	done >"$jvm_out"
}

start_javac() {
	command_javac
	jvm_out=$here/jvm.0
	"${command[@]}" >"$jvm_out" 2>"$jvm_out.err" </dev/null &
	jvm=$!
	jvms+=("$jvm")
	wait_for_line "$jvm_out" '^READY' 30
}
