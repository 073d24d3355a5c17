// SPDX-License-Identifier: MIT
package workload;

/** Churn: for ever starts 8 threads that live about 100 us; says "ROUNDS n" now and then. */
public final class Churn {
    static volatile long sink;

    public static void main(String[] args) throws Exception {
        Workload.ready();
        for (long round = 1;; round++) {
            Thread[] threads = new Thread[8];
            for (int i = 0; i < threads.length; i++) {
                threads[i] = new Thread(Churn::live, "short-" + i);
                threads[i].start();
            }
            for (Thread thread : threads)
                thread.join();
            if (round % 500 == 0)
                Workload.say("ROUNDS " + round);
        }
    }

    private static void live() {
        long end = System.nanoTime() + 100_000;
        while (System.nanoTime() < end)
            sink++;
    }
}
