// SPDX-License-Identifier: MIT
package workload;

import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;

/**
 * Shares [SECONDS [LENGTH]]: three methods that run the same loop of LENGTH steps 5, 3 and 2 times a
 * round, so that they hold 50, 30 and 20 % of the CPU time. The line "SHARES a b c" is what the thread's CPU clock
 * saw: the truth even where the compiler treated the three differently.
 */
public final class Shares {
    static volatile long sink;
    static int length = 200_000; // far longer than the reading of the clock

    public static void main(String[] args) throws Exception {
        long limit = Workload.argument(args, 0, 8) * 1_000_000_000L;
        ThreadMXBean clock = ManagementFactory.getThreadMXBean();
        length = (int) Workload.argument(args, 1, length);
        for (int i = 0; i < 200; i++) // compiled before it counts
            round(clock, new long[3]);
        Workload.ready();
        long[] spent = new long[3];
        while (spent[0] + spent[1] + spent[2] < limit)
            round(clock, spent);
        double all = (spent[0] + spent[1] + spent[2]) / 100.0;
        Workload.say(String.format("SHARES %.2f %.2f %.2f", spent[0] / all, spent[1] / all, spent[2] / all));
        Workload.done();
    }

    static void round(ThreadMXBean clock, long[] spent) {
        long start = clock.getCurrentThreadCpuTime();
        fifty();
        long afterFifty = clock.getCurrentThreadCpuTime();
        thirty();
        long afterThirty = clock.getCurrentThreadCpuTime();
        twenty();
        spent[0] += afterFifty - start;
        spent[1] += afterThirty - afterFifty;
        spent[2] += clock.getCurrentThreadCpuTime() - afterThirty;
    }

    static void fifty() {
        for (int i = 0; i < 5; i++)
            sink += kernel(i);
    }

    static void thirty() {
        for (int i = 0; i < 3; i++)
            sink += kernel(i);
    }

    static void twenty() {
        for (int i = 0; i < 2; i++)
            sink += kernel(i);
    }

    static long kernel(long x) {
        for (int i = 0; i < length; i++) // no compiler can shorten it
            x = (x ^ (x >>> 29)) * 6364136223846793005L + 1442695040888963407L;
        return x;
    }
}
