// SPDX-License-Identifier: MIT
package workload;

import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;

/**
 * TwoBusy [SECONDS [THREADS]]: two threads, or so many, that use SECONDS of CPU each, then sleep. Says
 * "BURNT ns ns": what they have used together, by their own clocks, and how long it took.
 */
public final class TwoBusy {
    static volatile long sink;

    public static void main(String[] args) throws Exception {
        double seconds = args.length > 0 ? Double.parseDouble(args[0]) : 6;
        Workload.ready();
        AtomicLong burnt = new AtomicLong();
        int count = (int) Workload.argument(args, 1, 2);
        CountDownLatch busy = new CountDownLatch(count);
        long began = System.nanoTime();
        for (int i = 0; i < count; i++) {
            Thread thread = new Thread(() -> {
                burnt.addAndGet(burn((long) (seconds * 1e9)));
                busy.countDown();
                LockSupport.park();
            }, "busy-" + i);
            thread.setDaemon(true);
            thread.start();
        }
        busy.await();
        Workload.say("BURNT " + burnt.get() + " " + (System.nanoTime() - began));
        Workload.done();
    }

    static long burn(long cpuNanos) {
        ThreadMXBean threads = ManagementFactory.getThreadMXBean();
        long used;
        while ((used = threads.getCurrentThreadCpuTime()) < cpuNanos)
            sink += spin(2_000_000);
        return used;
    }

    static long spin(int rounds) {
        long x = 88172645463325252L;
        for (int i = 0; i < rounds; i++) {
            x ^= x << 13;
            x ^= x >>> 7;
            x ^= x << 17;
        }
        return x;
    }
}
