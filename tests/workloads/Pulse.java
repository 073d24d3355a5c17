// SPDX-License-Identifier: MIT
package workload;

/** Pulse [PERCENT]: one thread that works so much of the time, in turns of a few milliseconds, as many JVMs do. */
public final class Pulse {
    static volatile long sink;

    public static void main(String[] args) throws Exception {
        long percent = Workload.argument(args, 0, 2);
        Workload.ready();
        for (;;) {
            long start = System.nanoTime();
            work();
            long spent = System.nanoTime() - start;
            Thread.sleep(Math.max(1, spent * (100 - percent) / percent / 1_000_000));
        }
    }

    private static void work() {
        for (int i = 0; i < 10; i++)
            sink += TwoBusy.spin(100_000);
    }
}
