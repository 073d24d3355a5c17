// SPDX-License-Identifier: MIT
package workload;

import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;

/** TwoBusy [SECONDS]: two threads that use SECONDS of CPU each, then nothing. */
public final class TwoBusy {
    static volatile long sink;

    public static void main(String[] args) throws Exception {
        long seconds = Workload.argument(args, 0, 6);
        Workload.ready();
        Thread[] busy = new Thread[2];
        for (int i = 0; i < busy.length; i++) {
            busy[i] = new Thread(() -> burn(seconds * 1_000_000_000L), "busy-" + i);
            busy[i].start();
        }
        for (Thread thread : busy)
            thread.join();
        Workload.done();
    }

    static void burn(long cpuNanos) {
        ThreadMXBean threads = ManagementFactory.getThreadMXBean();
        while (threads.getCurrentThreadCpuTime() < cpuNanos)
            sink += spin(2_000_000);
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
