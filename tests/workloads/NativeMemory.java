// SPDX-License-Identifier: MIT
package workload;

/**
 * NativeMemory COUNT [BYTES]: takes native memory in each known way, COUNT times. Says "BYTES way=sum ...", where late
 * is the sum of a library that is loaded after the go, and left what was not freed. For -Dextra=true also says "EXTRA
 * malloc free", in ps. For -Dcycles=true, goes on taking memory and loading and unloading libraries, and says "HOOKED
 * n" each time: how many of the two places that a library calls by hold another function than the allocator's.
 */
public final class NativeMemory {
    static final String[] WAYS = {"malloc", "calloc", "realloc", "posix_memalign", "aligned_alloc", "memalign",
        "valloc", "by_pointer", "mmap", "moved"};
    static final int LEAK = WAYS.length, LEAK_ALL = LEAK + 1;

    /** In a library that is there from the start. */
    static final class First {
        static native long take(int way, int count, int bytes);

        static native boolean visit(String path);

        static native int hooked();

        static native long extra(boolean frees);
    }

    /** In one that is loaded late. */
    static final class Late {
        static native long take(int way, int count, int bytes);
    }

    static long late(int count, int bytes) {
        System.load(System.getProperty("java.library.path") + "/libmemory_late.so");
        return Late.take(0, count, bytes);
    }

    static void cycle() throws InterruptedException {
        String late = System.getProperty("java.library.path") + "/libmemory_late.so";
        for (;;) {
            First.take(0, 1000, 64);
            if (!First.visit(late))
                Workload.say("FAILED");
            Workload.say("HOOKED " + First.hooked());
            Thread.sleep(5);
        }
    }

    public static void main(String[] args) throws Exception {
        int count = (int) Workload.argument(args, 0, 1000);
        int bytes = (int) Workload.argument(args, 1, 128);
        StringBuilder sums = new StringBuilder("BYTES");
        System.loadLibrary("memory");
        Workload.ready();
        if (Boolean.getBoolean("cycles"))
            cycle();
        for (int way = 0; way < WAYS.length; way++)
            sums.append(' ').append(First.take(way, count, bytes));
        sums.append(' ').append(late(count, bytes));
        sums.append(' ').append(First.take(LEAK, count, bytes));
        sums.append(' ').append(First.take(LEAK_ALL, Integer.getInteger("leaks", 0), bytes));
        Workload.say(sums.toString());
        if (Boolean.getBoolean("extra"))
            Workload.say("EXTRA " + First.extra(false) + " " + First.extra(true));
        Workload.done();
    }
}
