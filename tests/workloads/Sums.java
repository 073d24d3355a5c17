// SPDX-License-Identifier: MIT
package workload;

import java.lang.management.ManagementFactory;
import java.util.concurrent.CountDownLatch;

/**
 * Sums MEGABYTES [THREADS [virtual]]: seven sites allocate objects whose sizes follow from the language: the fields of
 * an object, or the header of an array (16 bytes) and its elements, in steps of 8 bytes. They take turns in an order
 * that a generator draws. Says "SITE method class bytes" for each site and class. With "virtual" virtual threads (JDK
 * 21+) do it.
 */
public final class Sums {
    static final class Node {
        long a, b, c, d, e, f, g;
    }

    static final int SITES = 8, KEPT = 64;
    static final String[] METHODS = {"node", "longs", "references", "grid", "grid", "page", "large", "huge"};
    static final String[] CLASSES = {"workload.Sums$Node", "long[]", "java.lang.String[][]", "int[][]", "int[]",
            "byte[]", "char[]", "byte[]"};
    static final long[] sums = new long[SITES];
    static long nodeBytes, referenceBytes;

    /** What a thread allocates. */
    static final class Work implements Runnable {
        final long[] counts = new long[SITES];
        final Object[] kept = new Object[KEPT];
        final CountDownLatch done;
        final long bytes;
        long random;

        Work(long bytes, long seed, CountDownLatch done) {
            this.bytes = bytes;
            this.random = seed;
            this.done = done;
        }

        void node(int i) {
            kept[i] = new Node();
        }

        void longs(int i) {
            kept[i] = new long[14];
        }

        void references(int i) {
            kept[i] = new String[30][];
        }

        void grid(int i) {
            kept[i] = new int[4][30];
        }

        void page(int i) {
            kept[i] = new byte[1008];
        }

        void large(int i) {
            kept[i] = new char[16376];
        }

        void huge(int i) {
            kept[i] = new byte[262128];
        }

        int next(int most) {
            random ^= random << 13;
            random ^= random >>> 7;
            random ^= random << 17;
            return (int) ((random >>> 33) % most);
        }

        /** The numbers make each class a twentieth or more of all bytes, but for the arrays of arrays. */
        void one() {
            int what = next(8192), i = next(KEPT);
            if (what < 3600) {
                counts[0]++;
                node(i);
            } else if (what < 5700) {
                counts[1]++;
                longs(i);
            } else if (what < 7000) {
                counts[2]++;
                references(i);
            } else if (what < 7900) {
                counts[3]++;
                counts[4] += 4;
                grid(i);
            } else if (what < 8182) {
                counts[5]++;
                page(i);
            } else if (what < 8191) {
                counts[6]++;
                large(i);
            } else {
                counts[7]++;
                huge(i);
            }
        }

        long allocated() {
            long sum = 0;
            for (int i = 0; i < SITES; i++)
                sum += counts[i] * sizes(i);
            return sum;
        }

        @Override
        public void run() {
            while (allocated() < bytes)
                for (int i = 0; i < 1000; i++)
                    one();
            synchronized (sums) {
                for (int i = 0; i < SITES; i++)
                    sums[i] += counts[i] * sizes(i);
            }
            done.countDown();
        }
    }

    static long sizes(int site) {
        switch (site) {
            case 0:
                return nodeBytes;
            case 1:
                return 16 + 14 * 8;
            case 2:
                return 16 + 30 * referenceBytes;
            case 3:
                return 16 + 4 * referenceBytes;
            case 4:
                return 16 + 30 * 4;
            case 5:
                return 16 + 1008;
            case 6:
                return 16 + 16376 * 2;
            default:
                return 16 + 262128;
        }
    }

    static Object measured;

    /** Objects have headers of 8, 12 or 16 bytes, and references have 4 or 8: the JVM's own count tells which. */
    @SuppressWarnings("deprecation") // JDK 8 has no Thread.threadId()
    static void measure() {
        com.sun.management.ThreadMXBean counter =
                (com.sun.management.ThreadMXBean) ManagementFactory.getThreadMXBean();
        long self = Thread.currentThread().getId();
        counter.getThreadAllocatedBytes(self);
        long begin = counter.getThreadAllocatedBytes(self);
        measured = new Object[100000];
        referenceBytes = (counter.getThreadAllocatedBytes(self) - begin) / 100000;
        begin = counter.getThreadAllocatedBytes(self);
        for (int i = 0; i < 100000; i++)
            measured = new Node();
        nodeBytes = (counter.getThreadAllocatedBytes(self) - begin) / 100000 & ~7L;
    }

    public static void main(String[] args) throws Exception {
        long megabytes = Workload.argument(args, 0, 100);
        int threads = (int) Workload.argument(args, 1, 1);
        boolean virtual = args.length > 2 && args[2].equals("virtual");
        CountDownLatch done = new CountDownLatch(threads);
        measure();
        Workload.ready();
        for (int i = 0; i < threads; i++) {
            Work work = new Work((megabytes << 20) / threads, 0x9e3779b97f4a7c15L * (i + 1), done);
            if (virtual)
                Virtual.start("allocator-" + i, work);
            else
                new Thread(work, "allocator-" + i).start();
        }
        done.await();
        for (int i = 0; i < SITES; i++)
            Workload.say("SITE " + METHODS[i] + " " + CLASSES[i] + " " + sums[i]);
        Workload.done();
    }
}
