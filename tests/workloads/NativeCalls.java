// SPDX-License-Identifier: MIT
package workload;

/**
 * NativeCalls ROUNDS: calls native methods a known number of times: one that was called often before the go, so that it
 * is compiled, one that was not, and one of a class that is loaded after the go. Says "SUM" of what they return.
 */
public final class NativeCalls {
    static final class Late {
        static native int twice(int number);
    }

    static native double many(int a, long b, double c, float d, byte e, short f, long g, double h, double i, double j,
            double k, double l, double m, double n, int o);

    native synchronized int length(String text);

    static double callMany(int times) {
        double sum = 0;
        for (int i = 0; i < times; i++)
            sum += many(1, 2, 3, 4, (byte) 5, (short) 6, 7, 8, 9, 10, 11, 12, 13, 14, i);
        return sum;
    }

    double callLength(int times) {
        double sum = 0;
        for (int i = 0; i < times; i++)
            sum += length("text");
        return sum;
    }

    public static void main(String[] args) throws Exception {
        int rounds = (int) Workload.argument(args, 0, 1000);
        double sum = 0;
        System.loadLibrary("workload");
        callMany(100_000);
        Workload.ready();
        sum += callMany(rounds);
        sum += new NativeCalls().callLength(rounds);
        for (int i = 0; i < rounds; i++)
            sum += Late.twice(i);
        System.gc();
        Workload.say("SUM " + (long) sum);
        Workload.done();
    }
}
