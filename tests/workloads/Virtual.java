// SPDX-License-Identifier: MIT
package workload;

/**
 * Virtual FRAMES ROUNDS: two virtual threads (JDK 21+) that call themselves so many times over, and down there for ever
 * work and yield: when they go on, most of their frames stay on the heap.
 */
public final class Virtual {
    static volatile long sink;
    static int rounds;

    static long down(int frames) {
        return frames > 1 ? down(frames - 1) + 1 : forEver();
    }

    static long forEver() {
        for (;;) {
            sink += many(1, 2, 3, 4, 5, 6, 7, 8, 9, 10);
        }
    }

    /** Some of its arguments lie on the stack. */
    static long many(long a, long b, long c, long d, long e, long f, long g, long h, long i, long j) {
        Thread.yield();
        return TwoBusy.spin(rounds) + a + b + c + d + e + f + g + h + i + j;
    }

    /** Thread.ofVirtual().name(NAME).start(BODY), for compilers that do not know it. */
    static Thread start(String name, Runnable body) throws Exception {
        Object builder = Thread.class.getMethod("ofVirtual").invoke(null);
        Class<?> type = Class.forName("java.lang.Thread$Builder");
        builder = type.getMethod("name", String.class).invoke(builder, name);
        return (Thread) type.getMethod("start", Runnable.class).invoke(builder, body);
    }

    public static void main(String[] args) throws Exception {
        int frames = (int) Workload.argument(args, 0, 300);
        rounds = (int) Workload.argument(args, 1, 1_000_000);
        for (int i = 0; i < 2; i++)
            start("virtual-" + i, () -> down(frames));
        Workload.ready();
        Thread.sleep(Long.MAX_VALUE);
    }
}
