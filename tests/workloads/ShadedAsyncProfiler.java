// SPDX-License-Identifier: MIT
package workload.shaded;

// The natives of async-profiler 1.2 to 1.5, in a package and with a name of its own: what a library makes of it that
// includes it. JMH has it in a class within its own.
public class ShadedAsyncProfiler {
    public ShadedAsyncProfiler() {
        System.loadLibrary("asyncProfiler");
    }

    public native void start0(String event, long interval);

    public native void stop0();

    public native String execute0(String command);

    public native String dumpCollapsed0(int counter);

    public native String dumpTraces0(int rows);

    public native String dumpFlat0(int rows);

    public native long getSamples();

    public native String version0();
}
