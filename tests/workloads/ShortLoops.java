// SPDX-License-Identifier: MIT
package workload;

import java.util.zip.CRC32;

/**
 * ShortLoops [SECONDS]: powers() and checksums() call a method in a loop of so few turns that C2 compiles each without
 * a safepoint, and so without debug information. The methods do their work in stubs: power() in that of Math.pow(),
 * checksum() in that of CRC32. Run with -XX:CompileCommand=dontinline,workload.ShortLoops::*s.
 */
public final class ShortLoops {
    static volatile double sink;
    private static final byte[] BYTES = new byte[2000];

    private ShortLoops() {
    }

    public static void main(String[] args) throws Exception {
        long end = System.nanoTime() + Workload.argument(args, 0, 6) * 1_000_000_000L;
        Workload.ready();
        while (System.nanoTime() < end)
            sink = powers() + checksums();
        Workload.done();
    }

    static double powers() {
        double sum = 0;
        for (int i = 0; i < 300; i++)
            sum += power(i);
        return sum;
    }

    static double power(double of) {
        return Math.pow(of, 1.7);
    }

    static long checksums() {
        long sum = 0;
        for (int i = 0; i < 100; i++)
            sum += checksum(i);
        return sum;
    }

    static long checksum(int from) {
        CRC32 sum = new CRC32();
        sum.update(BYTES, from, 1500);
        return sum.getValue();
    }
}
