// SPDX-License-Identifier: MIT
package workload;

/** Interleave: Java calls native code, which calls Java, three times over; then it works. */
public final class Interleave {
    static {
        System.loadLibrary("workload");
    }

    static volatile long sink;

    /** Calls down(depth) from native code. */
    static native long across(int depth);

    static long down(int depth) {
        return depth > 0 ? across(depth - 1) : TwoBusy.spin(200_000);
    }

    public static void main(String[] args) throws Exception {
        Workload.ready();
        for (;;)
            sink += down(3);
    }
}
