// SPDX-License-Identifier: MIT
package workload;

import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.time.Instant;

/**
 * Burns and sleeps in turn, 4 ms each, in 512 stacks. Says READY, then "CLOCK CPU" now and then: the time of day, and
 * what its thread has used, in ns.
 */
public class Victim {
    static final ThreadMXBean threads = ManagementFactory.getThreadMXBean();
    static volatile double sink;

    static void burn() {
        for (int i = 0; i < 1000; i++)
            sink += Math.sqrt(i);
    }

    static void burnAndRest() throws InterruptedException {
        long end = threads.getCurrentThreadCpuTime() + 4_000_000;

        while (threads.getCurrentThreadCpuTime() < end)
            burn();
        Thread.sleep(4);
    }

    static void left(int depth, int way) throws InterruptedException {
        if (depth == 0)
            burnAndRest();
        else if ((way & 1) != 0)
            left(depth - 1, way >> 1);
        else
            right(depth - 1, way >> 1);
    }

    static void right(int depth, int way) throws InterruptedException {
        if (depth == 0)
            burnAndRest();
        else if ((way & 1) != 0)
            left(depth - 1, way >> 1);
        else
            right(depth - 1, way >> 1);
    }

    public static void main(String[] arguments) throws InterruptedException {
        long said = 0;

        System.out.println("READY");
        for (int way = 0;; way++) {
            if (System.nanoTime() - said > 50_000_000) {
                said = System.nanoTime();
                Instant now = Instant.now();
                System.out.println((now.getEpochSecond() * 1_000_000_000L + now.getNano()) + " "
                    + threads.getCurrentThreadCpuTime());
            }
            left(9, way);
        }
    }
}
