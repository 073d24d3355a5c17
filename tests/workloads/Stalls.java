// SPDX-License-Identifier: MIT
package workload;

import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;

/**
 * Stalls CLASSES: Many with so many classes, and beside it a thread that computes and loads classes, each by a loader
 * of its own. It says "STALL MS US" when a turn took long: at which time, and for how many microseconds the thread
 * neither computed nor waited for a CPU. So it had to wait for the JVM: for a safepoint, or for a lock of it.
 */
public final class Stalls {
    private static final int LEAST_US = 20;
    private static final Path SCHEDSTAT = Paths.get("/proc/thread-self/schedstat");

    private static final ThreadMXBean THREADS = ManagementFactory.getThreadMXBean();

    private Stalls() {
    }

    public static void main(String[] args) throws Exception {
        Thread thread = new Thread(Stalls::run, "stalls");
        thread.setDaemon(true);
        thread.start();
        Many.main(new String[] {args[0], "600"});
    }

    private static void run() {
        try {
            byte[] template = Many.template();
            for (int number = 1;; number = number % 99999 + 1) {
                turn(template, number);
                Thread.sleep(1);
            }
        } catch (Exception e) {
            Workload.say("FAILED " + e);
        }
    }

    private static void turn(byte[] template, int number) throws Exception {
        long start = System.nanoTime(), scheduled = scheduledNs();
        new Many.Loader(template).make(number).all(number);
        TwoBusy.spin(100_000);
        scheduled = scheduledNs() - scheduled;
        long us = (System.nanoTime() - start - scheduled) / 1000;
        if (us >= LEAST_US)
            Workload.say("STALL " + System.currentTimeMillis() + " " + us);
    }

    /** How long this thread has run or has waited for a CPU. */
    private static long scheduledNs() throws IOException {
        String text = new String(Files.readAllBytes(SCHEDSTAT), StandardCharsets.US_ASCII);
        return Long.parseLong(text.split(" ")[1]) + THREADS.getCurrentThreadCpuTime();
    }
}
