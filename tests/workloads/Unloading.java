// SPDX-License-Identifier: MIT
package workload;

/**
 * Classes that come and go, so that their memory is used again and again. Each has a number, which its name and both
 * of its methods' names hold, and the one always calls the other: a stack in which two numbers differ is wrong. Methods
 * that stay are the number's lowest bits in the same stack, highest bit at the root: a stack in which they say another
 * number is wrong too. Runs on. A class runs for MILLISECONDS (20).
 */
public final class Unloading {
    private static final String NUMBER = "0000000000";
    private static final int AT_ONCE = 20; // classes between two collections
    private static final int BITS = 10; // of the number, in each stack
    static volatile long sink;

    private Unloading() {
    }

    public interface Work {
        long outer(long x, long milliseconds);
    }

    public static final class Copy0000000000 implements Work {
        @Override
        public long outer(long x, long milliseconds) {
            long end = System.nanoTime() + milliseconds * 1_000_000, sum = x;
            while (System.nanoTime() < end)
                sum += outer0000000000(sum);
            return sum;
        }

        static long outer0000000000(long x) {
            return inner0000000000(x) + 1;
        }

        static long inner0000000000(long x) {
            long sum = x;
            for (int i = 0; i < 20_000; i++)
                sum = sum * 31 + (sum >>> 7);
            return sum;
        }
    }

    static long bits(int number, int left, Work work, long milliseconds) {
        if (left == 0)
            return work.outer(number, milliseconds);
        return (number >> (left - 1) & 1) == 0 ? zero(number, left, work, milliseconds)
            : one(number, left, work, milliseconds);
    }

    static long zero(int number, int left, Work work, long milliseconds) {
        return bits(number, left - 1, work, milliseconds) + 1;
    }

    static long one(int number, int left, Work work, long milliseconds) {
        return bits(number, left - 1, work, milliseconds) + 2;
    }

    public static void main(String[] args) throws Exception {
        long milliseconds = Workload.argument(args, 0, 20);
        String template = Copies.template(Copy0000000000.class);
        Workload.ready();
        for (int i = 1;; i++) {
            String copy = template.replace(NUMBER, String.format("%010d", i));
            sink += bits(i, BITS, Copies.make(copy, Work.class), milliseconds);
            if (i % AT_ONCE == 0)
                System.gc();
        }
    }
}
