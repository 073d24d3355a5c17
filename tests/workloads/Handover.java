// SPDX-License-Identifier: MIT
package workload;

import java.util.Arrays;

/**
 * Handover: two threads take a lock by turns, for ever. Who has it keeps it until the other one has been blocked for a
 * while. Says "HANDOVER ns" for each 200 turns: the median time from the last moment of one thread in the
 * synchronized code to the first moment of the other.
 */
public final class Handover {
    private static final int TURNS = 200;
    private static final long ASLEEP_NS = 200_000;
    private static final Object lock = new Object();
    private static final Thread[] threads = new Thread[2];
    private static volatile Thread holder;
    private static long left; // by the lock
    private static final long[] times = new long[TURNS];
    private static int turns;

    private static void enter(Thread other) {
        synchronized (lock) {
            long entered = System.nanoTime();
            times[turns % TURNS] = entered - left;
            if (++turns % TURNS == 0)
                report();
            holder = Thread.currentThread();
            while (other.getState() != Thread.State.BLOCKED)
                continue;
            long until = System.nanoTime() + ASLEEP_NS;
            while (System.nanoTime() < until)
                continue;
            left = System.nanoTime();
        }
    }

    private static void report() {
        long[] sorted = times.clone();
        Arrays.sort(sorted);
        Workload.say("HANDOVER " + sorted[TURNS / 2]);
    }

    private static void loop(Thread other) {
        for (;;) {
            enter(other);
            while (holder != other)
                continue;
        }
    }

    public static void main(String[] args) throws Exception {
        for (int i = 0; i < 2; i++) {
            int other = 1 - i;
            threads[i] = new Thread(() -> loop(threads[other]), "taker-" + i);
        }
        Workload.ready();
        for (Thread thread : threads)
            thread.start();
    }
}
