// SPDX-License-Identifier: MIT
package workload;

import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.lang.reflect.Method;
import java.util.concurrent.atomic.AtomicLongArray;

/**
 * VirtualShares [TURNS [LENGTH]]: virtual threads (JDK 21+) that take turns: one named "alpha" does 50 % of their work,
 * two named "beta" 30 %, two without a name 20 %, each kind in a method of its own; and a platform thread "plain" as
 * much as alpha. The line "SHARES a b c" is what the CPU clocks of the carriers saw: equal work takes unequal time on
 * a machine with other guests. Wants --add-opens java.base/java.lang=ALL-UNNAMED.
 */
public final class VirtualShares {
    static final ThreadMXBean CLOCK = ManagementFactory.getThreadMXBean();
    static final AtomicLongArray spent = new AtomicLongArray(3); // ns of CPU time: alpha, beta, those without a name
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

    /** A turn neither waits nor yields, so that it ends on the carrier on which it began. */
    static void takeTimed(int kind, int turns, Runnable turn) throws Exception {
        Method carrier = Thread.class.getDeclaredMethod("currentCarrierThread");
        carrier.setAccessible(true);
        for (int i = 0; i < turns; i++) {
            long id = ((Thread) carrier.invoke(null)).getId();
            long start = CLOCK.getThreadCpuTime(id);
            turn.run();
            spent.addAndGet(kind, CLOCK.getThreadCpuTime(id) - start);
            Thread.yield();
        }
    }

    /** NAME may be null. Built so for compilers that do not know it. */
    static Thread start(int kind, String name, int turns, Runnable turn) throws Exception {
        Object builder = Thread.class.getMethod("ofVirtual").invoke(null);
        Class<?> type = Class.forName("java.lang.Thread$Builder");
        if (name != null)
            builder = type.getMethod("name", String.class).invoke(builder, name);
        Runnable body = () -> {
            try {
                takeTimed(kind, turns, turn);
            } catch (Exception e) {
                throw new IllegalStateException(e);
            }
        };
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
            start(0, "alpha", turns, VirtualShares::alpha),
            start(1, "beta", turns, VirtualShares::beta),
            start(1, "beta", turns, VirtualShares::beta),
            start(2, null, turns, VirtualShares::unnamed),
            start(2, null, turns, VirtualShares::unnamed)
        };
        for (Thread thread : threads)
            thread.join();
        plain.join();
        long alpha = spent.get(0), beta = spent.get(1), unnamed = spent.get(2);
        double all = (alpha + beta + unnamed) / 100.0;
        Workload.say(String.format("SHARES %.2f %.2f %.2f", alpha / all, beta / all, unnamed / all));
        Workload.done();
    }
}
