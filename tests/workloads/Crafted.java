// SPDX-License-Identifier: MIT
package workload;

/** Runs native code whose frame pointer lies on words that look like the interpreter's, see crafted.c. */
public final class Crafted {
    private Crafted() {
    }

    static native void spin(long times);

    public static void main(String[] args) throws InterruptedException {
        System.loadLibrary("crafted");
        Workload.ready();
        long end = System.nanoTime() + Workload.argument(args, 0, 60) * 1000000000L;
        while (System.nanoTime() < end)
            spin(10);
        Workload.done();
    }
}
