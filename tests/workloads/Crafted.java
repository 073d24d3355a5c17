// SPDX-License-Identifier: MIT
package workload;

/** Runs native code whose frame pointer lies on words that look like the interpreter's, see crafted.c. */
public final class Crafted {
    private Crafted() {
    }

    static native void spin(long times);

    static native void shuffle(long times, long seed);

    /** More than one Java frame below the native one, of more than one kind. */
    static void descend(int depth, long seed) {
        if (depth > 0)
            descend(depth - 1, seed);
        else
            shuffle(20, seed);
    }

    public static void main(String[] args) throws InterruptedException {
        System.loadLibrary("crafted");
        Workload.ready();
        long end = System.nanoTime() + Workload.argument(args, 0, 60) * 1000000000L;
        boolean isShuffled = args.length > 1 && args[1].equals("shuffle");
        for (long i = 0; System.nanoTime() < end; i++)
            if (isShuffled)
                descend((int) (i % 20), i);
            else
                spin(10);
        Workload.done();
    }
}
