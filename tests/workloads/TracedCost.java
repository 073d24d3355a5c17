// SPDX-License-Identifier: MIT
package workload;

import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;

/**
 * TracedCost: for ever calls work(), about a million times a second, and says "RATE n": calls in a millisecond of its
 * own CPU time, each half second of it.
 */
public final class TracedCost {
    static volatile long sink;

    static long work(long x) {
        for (int i = 0; i < 500; i++) {
            x ^= x << 13;
            x ^= x >>> 7;
            x ^= x << 17;
        }
        return x;
    }

    public static void main(String[] args) throws Exception {
        ThreadMXBean threads = ManagementFactory.getThreadMXBean();
        Workload.ready();
        for (;;) {
            long begin = threads.getCurrentThreadCpuTime(), spent, calls = 0, x = sink | 1;
            do {
                for (int i = 0; i < 1000; i++)
                    x = work(x);
                calls += 1000;
                spent = threads.getCurrentThreadCpuTime() - begin;
            } while (spent < 500_000_000L);
            sink = x;
            Workload.say("RATE " + calls * 1_000_000 / spent);
        }
    }
}
