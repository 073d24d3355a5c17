// SPDX-License-Identifier: MIT
package workload;

/**
 * SecondProfiler: a thread that burns CPU while another profiler, in workload.c, holds SIGPROF and its timer.
 * Says "TICKS n" ten times a second, and "STOLEN" once that handler is not the one in place any more.
 */
public final class SecondProfiler {
    static volatile long sink;

    public static void main(String[] args) throws Exception {
        System.loadLibrary("workload");
        start();
        Thread burner = new Thread(SecondProfiler::burn, "burner");
        burner.start();
        Workload.ready();
        for (;;) {
            Thread.sleep(100);
            long ticks = ticks();
            Workload.say(ticks < 0 ? "STOLEN" : "TICKS " + ticks);
        }
    }

    static void burn() {
        for (;;)
            sink += step(sink);
    }

    static long step(long x) {
        for (int i = 0; i < 20_000; i++)
            x = x * 6364136223846793005L + 1442695040888963407L;
        return x;
    }

    static native void start();

    /** -1 when SIGPROF is in other hands. */
    static native long ticks();
}
