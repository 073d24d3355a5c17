// SPDX-License-Identifier: MIT
package workload;

/**
 * VirtualShares [TURNS [LENGTH]]: virtual threads (JDK 21+) that take turns: one named "alpha" does 50 % of their work,
 * two named "beta" 30 %, two without a name 20 %, each kind in a method of its own; and a platform thread "plain" as
 * much as alpha. What each has to do is fixed. All take equally many turns, of lengths in proportion to their work, so
 * that they meet the same load of the machine.
 */
public final class VirtualShares {
    static volatile long sink;
    static int length;

    static void alpha() {
        sink += TwoBusy.spin(length);
    }

    static void beta() {
        sink += TwoBusy.spin(length / 10 * 3);
    }

    static void unnamed() {
        sink += TwoBusy.spin(length / 10 * 2);
    }

    static void plain() {
        sink += TwoBusy.spin(length);
    }

    static void take(int turns, Runnable turn) {
        for (int i = 0; i < turns; i++) {
            turn.run();
            Thread.yield();
        }
    }

    /** NAME may be null. Built so for compilers that do not know it. */
    static Thread start(String name, int turns, Runnable turn) throws Exception {
        Object builder = Thread.class.getMethod("ofVirtual").invoke(null);
        Class<?> type = Class.forName("java.lang.Thread$Builder");
        if (name != null)
            builder = type.getMethod("name", String.class).invoke(builder, name);
        Runnable body = () -> take(turns, turn);
        return (Thread) type.getMethod("start", Runnable.class).invoke(builder, body);
    }

    public static void main(String[] args) throws Exception {
        int turns = (int) Workload.argument(args, 0, 1000);
        length = 10_000;
        take(1000, VirtualShares::plain); // compiled before it counts
        length = (int) Workload.argument(args, 1, 1_000_000);
        Workload.ready();
        Thread plain = new Thread(() -> take(turns, VirtualShares::plain), "plain");
        plain.start();
        Thread[] threads = {
            start("alpha", turns, VirtualShares::alpha),
            start("beta", turns, VirtualShares::beta),
            start("beta", turns, VirtualShares::beta),
            start(null, turns, VirtualShares::unnamed),
            start(null, turns, VirtualShares::unnamed)
        };
        for (Thread thread : threads)
            thread.join();
        plain.join();
        Workload.done();
    }
}
