// SPDX-License-Identifier: MIT
package workload;

import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.util.concurrent.atomic.AtomicLong;
import one.profiler.Recording;
import one.profiler.Span;

/**
 * ProfiledSpans [THREADS [COUNT]]: each thread makes COUNT spans "short", 20 spans "slept", and one without a tag, of
 * 30 ms. Says how many there are, and how long they took by its own clock: "SPANS short n ns", "SPANS slept n ns".
 * "optional": 5 spans "busy", of 30 ms of CPU time, and 20 spans "idle", both only if they were sampled.
 * "cost": says how many ns a span takes. "steady": spans of 5 ms until it is killed.
 */
public final class ProfiledSpans {
    private static final int SLEPT = 20;

    static volatile long sink;

    private static final AtomicLong shortNs = new AtomicLong(), sleptNs = new AtomicLong();

    private ProfiledSpans() {
    }

    private static void spans(int count) {
        long begun = 0, ns = 0;
        for (int i = 0; i < count; i++) {
            begun = Span.start();
            Span.end(begun, "short");
            ns += begun == 0 ? 0 : System.nanoTime() - begun;
        }
        shortNs.addAndGet(ns);
    }

    private static void sleeps() {
        try {
            for (int i = 0; i < SLEPT; i++) {
                long begun = Span.start(), own = System.nanoTime();
                Thread.sleep(5);
                sleptNs.addAndGet(System.nanoTime() - own);
                Span.end(begun, "slept");
            }
            long begun = Span.start();
            Thread.sleep(30);
            Span.end(begun, null);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    private static void all(int threads, int count) throws InterruptedException {
        Thread[] started = new Thread[threads];
        for (int i = 0; i < threads; i++) {
            started[i] = new Thread(() -> {
                spans(count);
                sleeps();
            }, "spans-" + i);
            started[i].start();
        }
        for (Thread thread : started)
            thread.join();
        Workload.say("SPANS short " + threads * count + " " + shortNs);
        Workload.say("SPANS slept " + threads * SLEPT + " " + sleptNs);
    }

    private static void cost(int count) {
        for (int round = 0; round < 5; round++) {
            long begun = System.nanoTime();
            for (int i = 0; i < count; i++)
                Span.end(Span.start(), "cost");
            Workload.say("COST " + (System.nanoTime() - begun) / (double) count);
        }
    }

    private static void optional() throws InterruptedException {
        ThreadMXBean threads = ManagementFactory.getThreadMXBean();
        for (int i = 0; i < 5; i++) {
            long begun = Span.start(), until = threads.getCurrentThreadCpuTime() + 30_000_000;
            while (threads.getCurrentThreadCpuTime() < until)
                sink += TwoBusy.spin(10_000);
            Span.endIfProfiled(begun, "busy");
        }
        for (int i = 0; i < 20; i++) {
            long begun = Span.start();
            Thread.sleep(5);
            Span.endIfProfiled(begun, "idle");
        }
    }

    private static void steady() throws InterruptedException {
        while (true) {
            long begun = Span.start();
            Thread.sleep(5);
            Span.end(begun, "steady");
        }
    }

    public static void main(String[] args) throws Exception {
        Span.end(Span.start(), "before");
        Workload.say("STATE " + Recording.state());
        Workload.ready();
        Workload.say("STATE " + Recording.state());
        if (args.length > 0 && args[0].equals("cost"))
            cost(1_000_000);
        else if (args.length > 0 && args[0].equals("optional"))
            optional();
        else if (args.length > 0 && args[0].equals("steady"))
            steady();
        else
            all((int) Workload.argument(args, 0, 4), (int) Workload.argument(args, 1, 1000));
        Workload.done();
    }
}
