// SPDX-License-Identifier: MIT
package workload;

import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import one.profiler.Span;
import one.profiler.TraceContext;

/**
 * TraceContexts [SECONDS]: three threads use so much CPU each: a part for each of two spans, the rest for none, by
 * their own clocks: "CONTEXT TRACE SPAN ns". They allocate as they go. "cost": what it takes to set a context, and to
 * make a span that is not recorded or is; beside them a write to a volatile field and the clock: "COST name ns".
 */
public final class TraceContexts {
    private static final int SPANS = 2, ROUNDS = 7;
    private static final long SLICE_NS = 1_618_000; // four are in step with no tick
    private static final ThreadMXBean THREADS = ManagementFactory.getThreadMXBean();

    private static volatile long written;
    private static volatile byte[] garbage;

    private TraceContexts() {
    }

    private static long work(long ns) {
        long from = THREADS.getCurrentThreadCpuTime(), used;
        do {
            long sum = 0;
            for (int i = 0; i < 2000; i++)
                sum += i ^ written;
            garbage = new byte[(int) (sum & 1) + 256];
            used = THREADS.getCurrentThreadCpuTime() - from;
        } while (used < ns);
        return used;
    }

    private static void serve(long number, long ns) {
        long trace = 0xa0a0a0a0a0a0a0a0L + number, all = 0;
        long[] used = new long[SPANS + 1];
        while (all < ns) {
            for (int i = 0; i < SPANS; i++) {
                TraceContext.set(trace, ~trace, i + 1);
                used[i] += work((i + 1) * SLICE_NS);
            }
            TraceContext.clear();
            used[SPANS] += work(SLICE_NS);
            all = used[0] + used[1] + used[2];
        }
        for (int i = 0; i < SPANS; i++)
            Workload.say(String.format("CONTEXT %016x%016x %016x %d", trace, ~trace, i + 1, used[i]));
        Workload.say(String.format("CONTEXT %032x %016x %d", 0, 0, used[SPANS]));
    }

    private static void all(double seconds) throws InterruptedException {
        Thread[] threads = new Thread[3];
        for (int i = 0; i < threads.length; i++) {
            long number = i;
            threads[i] = new Thread(() -> serve(number, (long) (seconds * 1e9)), "serve-" + i);
            threads[i].start();
        }
        for (Thread thread : threads)
            thread.join();
    }

    private interface Loop {
        void run(int count);
    }

    private static void cost(String name, int count, Loop loop) {
        double least = Double.MAX_VALUE;
        for (int round = 0; round < ROUNDS; round++) {
            long begun = System.nanoTime();
            loop.run(count);
            least = Math.min(least, (System.nanoTime() - begun) / (double) count);
        }
        Workload.say(String.format("COST %s %.2f", name, least));
    }

    private static void costs(int count) {
        cost("volatile-write", count, n -> {
            for (int i = 0; i < n; i++)
                written = i;
        });
        cost("clock", count, n -> {
            long sum = 0;
            for (int i = 0; i < n; i++)
                sum += System.nanoTime();
            written = sum;
        });
        cost("set-context", count, n -> {
            for (int i = 0; i < n; i++)
                TraceContext.set(i, n, 1);
        });
        cost("set-context-kept", count, n -> {
            TraceContext context = TraceContext.current();
            for (int i = 0; i < n; i++)
                context.begin(i, n, 1);
        });
        cost("span", count / 10, n -> {
            for (int i = 0; i < n; i++)
                Span.end(Span.start(), "cost");
        });
        cost("span-if-profiled", count / 10, n -> {
            for (int i = 0; i < n; i++)
                Span.endIfProfiled(Span.start(), "cost");
        });
    }

    public static void main(String[] args) throws Exception {
        TraceContext.set(1, 1, 1);
        TraceContext.clear();
        Workload.ready();
        if (args.length > 0 && args[0].equals("cost"))
            costs(10_000_000);
        else
            all(args.length > 0 ? Double.parseDouble(args[0]) : 1);
        Workload.done();
    }
}
