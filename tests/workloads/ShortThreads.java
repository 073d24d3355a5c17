// SPDX-License-Identifier: MIT
package workload;

import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;

/**
 * ShortThreads [SECONDS [MICROS]]: eight threads at a time that live for MICROS of CPU each, in burn(). Says
 * "THREADS n" in the end.
 */
public final class ShortThreads {
    static volatile long sink;

    public static void main(String[] args) throws Exception {
        long steps = Workload.argument(args, 1, 100) * stepsPerMicro();
        Thread[] threads = new Thread[8];
        long count = 0;
        Workload.ready();
        long end = System.nanoTime() + Workload.argument(args, 0, 8) * 1_000_000_000L;
        for (; System.nanoTime() < end; count += threads.length) {
            for (int i = 0; i < threads.length; i++) {
                threads[i] = new Thread(() -> burn(steps), "short-" + i);
                threads[i].start();
            }
            for (Thread thread : threads)
                thread.join();
        }
        Workload.say("THREADS " + count);
        Workload.done();
    }

    /** Of CPU, not of time: the machine may be busy with others. */
    private static long stepsPerMicro() {
        ThreadMXBean clock = ManagementFactory.getThreadMXBean();
        long start = 0, steps = 10_000_000;
        for (int i = 0; i < 5; i++) { // the last counts
            start = clock.getCurrentThreadCpuTime();
            burn(steps);
        }
        return Math.max(1, steps * 1000 / (clock.getCurrentThreadCpuTime() - start));
    }

    static void burn(long steps) {
        long x = steps;
        for (long i = 0; i < steps; i++)
            x = (x ^ (x >>> 29)) * 6364136223846793005L + 1442695040888963407L;
        sink = x;
    }
}
