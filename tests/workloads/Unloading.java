// SPDX-License-Identifier: MIT
package workload;

/**
 * Classes that come and go, so that their memory is used again and again. Each has a number, which its name and both
 * of its methods' names hold, and the one always calls the other: a stack in which two numbers differ is wrong. Runs
 * on. A class runs for MILLISECONDS (20).
 */
public final class Unloading {
    private static final String NUMBER = "0000000000";
    private static final int AT_ONCE = 20; // classes between two collections
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

    public static void main(String[] args) throws Exception {
        long milliseconds = Workload.argument(args, 0, 20);
        String template = Copies.template(Copy0000000000.class);
        Workload.ready();
        for (int i = 1;; i++) {
            String copy = template.replace(NUMBER, String.format("%010d", i));
            sink += Copies.make(copy, Work.class).outer(i, milliseconds);
            if (i % AT_ONCE == 0)
                System.gc();
        }
    }
}
