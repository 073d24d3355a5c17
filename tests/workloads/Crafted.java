// SPDX-License-Identifier: MIT
package workload;

import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.lang.invoke.MutableCallSite;

/**
 * Crafted [SECONDS [shuffle|shift]]: runs native code whose frame pointer lies on words that look like the
 * interpreter's, see crafted.c. With "shift" the Java frames below are deoptimized all the time, and, where there are
 * virtual threads, in one.
 */
public final class Crafted {
    private Crafted() {
    }

    static native void spin(long times);

    static native void shuffle(long times, long seed);

    static final MethodType STEP = MethodType.methodType(void.class, int.class, long.class);
    static final MutableCallSite SITE = new MutableCallSite(STEP);
    static final MethodHandle NEXT = SITE.dynamicInvoker();

    static void sink(int depth, long seed) throws Throwable {
        if (depth > 0)
            NEXT.invokeExact(depth - 1, seed);
        else
            shuffle(20, seed);
    }

    static void sinkToo(int depth, long seed) throws Throwable {
        sink(depth, seed);
    }

    /** What was compiled for the old target of the call is deoptimized, also while it waits for native code. */
    static void shift() {
        try {
            MethodHandles.Lookup lookup = MethodHandles.lookup();
            MethodHandle[] targets = {lookup.findStatic(Crafted.class, "sink", STEP),
                    lookup.findStatic(Crafted.class, "sinkToo", STEP)};
            for (int i = 0;; i++) {
                SITE.setTarget(targets[i % 2]);
                MutableCallSite.syncAll(new MutableCallSite[] {SITE});
                Thread.sleep(20);
            }
        } catch (ReflectiveOperationException | InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    static void sinkUntil(long end) {
        try {
            for (long i = 0; System.nanoTime() < end; i++)
                NEXT.invokeExact((int) (i % 20), i);
        } catch (Throwable e) {
            throw new IllegalStateException(e);
        }
    }

    static void runShifting(Runnable work) throws InterruptedException {
        Thread shifting = new Thread(Crafted::shift), worker;
        shifting.setDaemon(true);
        shifting.start();
        Thread.sleep(100);
        try {
            worker = (Thread) Thread.class.getMethod("startVirtualThread", Runnable.class).invoke(null, work);
        } catch (ReflectiveOperationException e) {
            worker = new Thread(work);
            worker.start();
        }
        worker.join();
    }

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
        if (args.length > 1 && args[1].equals("shift")) {
            runShifting(() -> sinkUntil(end));
            return;
        }
        boolean isShuffled = args.length > 1 && args[1].equals("shuffle");
        for (long i = 0; System.nanoTime() < end; i++)
            if (isShuffled)
                descend((int) (i % 20), i);
            else
                spin(10);
        Workload.done();
    }
}
