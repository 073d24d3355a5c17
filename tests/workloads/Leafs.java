// SPDX-License-Identifier: MIT
package workload;

/**
 * Leafs [SECONDS [ROWS [STEPS [once]]]]: one loop in handler(), into which the compiler inlines two methods that do
 * their work in calls without debug information: copyRows() in a stub that copies arrays, about 70 % of the time, and
 * trig() in stubs for sin and exp. "TRUTH METHOD NANOSECONDS" is said once a second: the time of each since the start.
 * With "once", handler() is called once, so that it is compiled while it runs (OSR).
 */
public final class Leafs {
    private static final int PREEMPTED = 1_000_000; // ns: longer than any of the two takes
    static volatile double sink;
    private static byte[][] from, to;
    private static int steps;
    private static long copying, counting;

    public static void main(String[] args) throws Exception {
        long seconds = Workload.argument(args, 0, 6);
        from = new byte[(int) Workload.argument(args, 1, 100)][1200];
        to = new byte[from.length][1200];
        steps = (int) Workload.argument(args, 2, 60);
        Workload.ready();
        if (args.length > 3)
            handler(Long.MAX_VALUE, System.nanoTime() + seconds * 1_000_000_000L);
        for (long second = 0; second < seconds && args.length <= 3; second++) {
            for (long end = System.nanoTime() + 1_000_000_000L; System.nanoTime() < end;)
                handler(2000, Long.MAX_VALUE);
            say();
        }
        say();
        Workload.done();
    }

    private static void say() {
        Workload.say("TRUTH copyRows " + copying);
        Workload.say("TRUTH trig " + counting);
    }

    static void handler(long turns, long end) {
        double sum = 0;
        for (long i = 0; i < turns; i++) {
            long start = System.nanoTime();
            copyRows();
            long between = System.nanoTime();
            sum += trig(i);
            long now = System.nanoTime();
            if (now - start < PREEMPTED) {
                copying += between - start;
                counting += now - between;
            }
            if (now > end)
                break;
        }
        sink = sum;
    }

    static void copyRows() {
        for (int i = 0; i < from.length; i++)
            System.arraycopy(from[i], 0, to[i], 0, from[i].length);
    }

    static double trig(long i) {
        double sum = 0;
        for (int k = 0; k < steps; k++)
            sum += Math.sin(i + k) + Math.exp(k * 0.1);
        return sum;
    }
}
