// SPDX-License-Identifier: MIT
package workload;

import java.io.File;
import java.io.IOException;

// What JMH's profiler "async" asks of the library: a nested class with private natives loads it, a recording of the
// warm-up is thrown away, and files are asked for when the second one has stopped.
public class Jmh {
    static final class JavaApi {
        JavaApi() {
            System.loadLibrary("asyncProfiler");
        }

        String execute(String command) throws IOException {
            String reply = execute0(command);
            System.out.println(command.replaceAll(",.*", "") + ": " + reply.trim());
            return reply;
        }

        private native void start0(String event, long interval, boolean reset) throws IllegalStateException;

        private native void stop0() throws IllegalStateException;

        private native String execute0(String command) throws IllegalArgumentException, IOException;

        private native long getSamples();

        private native void filterThread0(Thread thread, boolean enable);
    }

    static void warmUp(long ms) {
        ProfilerCalls.work(ms);
    }

    static void iterate(long ms) {
        ProfilerCalls.work(ms);
    }

    // `start`: what follows only the action. `dumps`: format and file, by turns, when the recording has stopped.
    static void trial(JavaApi api, String config, String start, String... dumps) throws IOException {
        api.execute("start," + config + start);
        warmUp(500);
        api.execute("stop");
        api.execute("start," + config + start);
        iterate(1000);
        api.execute("stop");
        for (int i = 0; i < dumps.length; i += 2)
            api.execute(dumps[i] + "," + config + ",file=" + dumps[i + 1]);
    }

    public static void main(String[] args) throws Exception {
        File folder = new File(args[0], "workload.Jmh.iterate-AverageTime");
        JavaApi api = new JavaApi();
        if (!folder.mkdirs() || api.execute("version").startsWith("1."))
            return;
        String name = folder.getAbsolutePath() + "/";
        trial(api, "interval=1000000,ann,lib,sig,framebuf=10000000,width=1200,event=cpu", "",
            "flat=200,traces=200", name + "summary-cpu.txt", "flamegraph", name + "flame-cpu-forward.html",
            "flamegraph,reverse", name + "flame-cpu-reverse.html", "collapsed", name + "collapsed-cpu.csv",
            "tree", name + "tree-cpu.html", "otlp", name + "otlp-cpu.pb");
        trial(api, "interval=1000000,event=cpu", ",file=" + name + "jfr-cpu.jfr",
            "flat=200,traces=200", name + "both-cpu.txt");
        trial(api, "alloc,lock=1ms", ",file=" + name + "jfr-profile.jfr");
        trial(api, "alloc=64k", "", "collapsed", name + "collapsed-alloc.csv");
    }
}
