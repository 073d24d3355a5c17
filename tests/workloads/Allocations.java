// SPDX-License-Identifier: MIT
package workload;

import java.lang.management.ManagementFactory;

/**
 * Allocations ROUNDS [virtual]: three methods that allocate in the ratio 1 : 2 : 4, in rounds of 896 kB with a pause
 * after each. Says "BYTES one two four", as the JVM itself has counted them. With "virtual" a virtual thread (JDK 21+)
 * does it, for which no JVM counts: the numbers of the main thread, in as many rounds before, are said.
 */
public final class Allocations {
    static final class Node {
        long a, b, c, d, e, f;
    }

    static final com.sun.management.ThreadMXBean counter =
            (com.sun.management.ThreadMXBean) ManagementFactory.getThreadMXBean();
    static final Object[] kept = new Object[64];
    static final long[] bytes = new long[3];

    /** An object of 64 bytes, or some more with another layout of headers. */
    static void one() {
        for (int i = 0; i < 2000; i++)
            kept[i & 63] = new Node();
    }

    static void two() {
        for (int i = 0; i < 2000; i++)
            kept[i & 63] = new byte[112];
    }

    /** Arrays of references, of two dimensions. */
    static void four() {
        for (int i = 0; i < 2000; i++)
            kept[i & 63] = new String[60][];
    }

    static void round(boolean counts) {
        long self = Thread.currentThread().getId();
        long begin = counts ? counter.getThreadAllocatedBytes(self) : 0;
        one();
        long first = counts ? counter.getThreadAllocatedBytes(self) : 0;
        two();
        long second = counts ? counter.getThreadAllocatedBytes(self) : 0;
        four();
        long third = counts ? counter.getThreadAllocatedBytes(self) : 0;
        bytes[0] += first - begin;
        bytes[1] += second - first;
        bytes[2] += third - second;
    }

    static void rounds(int count, boolean counts) {
        for (int i = 0; i < count; i++) {
            round(counts);
            try {
                Thread.sleep(1);
            } catch (InterruptedException end) {
                return;
            }
        }
    }

    public static void main(String[] args) throws Exception {
        int count = (int) Workload.argument(args, 0, 100);
        boolean virtual = args.length > 1 && args[1].equals("virtual");
        counter.getThreadAllocatedBytes(Thread.currentThread().getId());
        if (virtual)
            rounds(count, true);
        Workload.ready();
        if (virtual) {
            Object[] done = new Object[1];
            Virtual.start("allocator", () -> {
                rounds(count, false);
                done[0] = kept;
                synchronized (kept) {
                    kept.notifyAll();
                }
            });
            synchronized (kept) {
                while (done[0] == null)
                    kept.wait(10);
            }
        } else {
            rounds(count, true);
        }
        Workload.say("BYTES " + bytes[0] + " " + bytes[1] + " " + bytes[2]);
        Workload.done();
    }
}
