// SPDX-License-Identifier: MIT
package workload;

/**
 * Traced ROUNDS [virtual]: calls methods that take 1 or 60 ms, and end in all the ways that a method can. Says "SLEPT
 * ns": how long the calls of slow() took by their caller's clock.
 */
public final class Traced {
    static final class Made {
        final int ms;

        Made(int ms) {
            this(ms, String.valueOf(ms > 0 ? new StringBuilder("a") : new StringBuilder()));
            if (ms > 10)
                pause(ms);
        }

        private Made(int ms, String text) {
            this.ms = ms + text.length() - 1;
        }
    }

    static long slept;

    static void pause(int ms) {
        long end = System.nanoTime() + ms * 1_000_000L;
        try {
            Thread.sleep(ms);
        } catch (InterruptedException never) {
            throw new IllegalStateException(never);
        }
        while (System.nanoTime() < end)
            Thread.yield();
    }

    static long slow(int ms) {
        pause(ms);
        return ms;
    }

    static double early(int ms, double real) {
        if (ms < 10)
            return real;
        pause(ms);
        return real + 1;
    }

    static int throwing(int ms, int[] numbers) {
        try {
            pause(ms);
            return numbers[ms];
        } catch (NullPointerException notThis) {
            return 1;
        } finally {
            slept += 0;
        }
    }

    static synchronized void level(int depth) {
        if (depth > 0) {
            pause(50);
            level(depth - 1);
        }
    }

    static void callAll(int rounds) {
        for (int i = 0; i < rounds; i++) {
            for (int ms = 1; ms <= 60; ms += 59) {
                long begin = System.nanoTime();
                slow(ms);
                slept += ms == 60 ? System.nanoTime() - begin : 0;
                early(ms, 2.5);
                try {
                    throwing(ms, new int[0]);
                } catch (ArrayIndexOutOfBoundsException expected) {
                    slept += 0;
                }
                new Made(ms);
            }
            level(3);
        }
    }

    public static void main(String[] args) throws Exception {
        int rounds = (int) Workload.argument(args, 0, 5);
        Workload.ready();
        Thread thread = Calls.start("caller", args.length > 1 && args[1].equals("virtual"), () -> callAll(rounds));
        thread.join();
        Workload.say("SLEPT " + slept);
        Workload.done();
    }
}
