// SPDX-License-Identifier: MIT
package workload;

import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Paths;

/**
 * Meets methods in batches. Arguments: how many batches; how many classes of Many's each has; ms of CPU time of a
 * phase. A batch has three phases: its methods are new, few of them are still new, none is. The file of -Dgate=FILE
 * has the pids of the profiler's processes. Prints "BATCH NUMBER NEW REST AGAIN", the CPU time in us that they used
 * in each phase and in a pause after it. Class N is of batch N / 1000.
 */
public final class Batches {
    private static final int NUMBERS = 1000;
    private static final int WARM_ROUNDS = 20000;
    private static final int PAUSE_MS = 150;

    private Batches() {
    }

    private static long spentUs(String[] pids) throws IOException {
        long ns = 0;
        for (String pid : pids) {
            byte[] bytes = Files.readAllBytes(Paths.get("/proc", pid, "schedstat"));
            ns += Long.parseLong(new String(bytes, StandardCharsets.US_ASCII).split(" ")[0]);
        }
        return ns / 1000;
    }

    private static int call(Many.Work[] works, int sum) {
        for (Many.Work each : works)
            sum += each.all(sum);
        return sum;
    }

    private static int phase(Many.Work[] works, long cpuMs) {
        long end = ManagementFactory.getThreadMXBean().getCurrentThreadCpuTime() + cpuMs * 1000000;
        int sum = 0;
        while (ManagementFactory.getThreadMXBean().getCurrentThreadCpuTime() < end)
            sum = call(works, sum);
        return sum;
    }

    public static void main(String[] args) throws Exception {
        int classes = (int) Workload.argument(args, 1, 60);
        Many.Work[][] batches = new Many.Work[(int) Workload.argument(args, 0, 9)][classes];
        long cpuMs = Workload.argument(args, 2, 500);
        Many.Loader loader = new Many.Loader(Many.template());
        int sum = 0;
        for (int b = 0; b < batches.length; b++)
            for (int i = 0; i < batches[b].length; i++)
                batches[b][i] = loader.make(b * NUMBERS + i);
        for (int i = 0; i < WARM_ROUNDS; i++)
            sum += call(batches[i % batches.length], sum);
        for (Many.Work[] works : batches)
            sum += phase(works, cpuMs);
        Workload.ready();
        String[] pids = new String(Files.readAllBytes(Paths.get(System.getProperty("gate"))),
            StandardCharsets.US_ASCII).trim().split(" ");
        for (int b = 0; b < batches.length; b++) {
            StringBuilder spent = new StringBuilder();
            for (int i = 0; i < 3; i++) {
                Thread.sleep(PAUSE_MS);
                long before = spentUs(pids);
                sum += phase(batches[b], cpuMs);
                Thread.sleep(PAUSE_MS);
                spent.append(' ').append(spentUs(pids) - before);
            }
            Workload.say("BATCH " + b + spent);
        }
        Workload.say("SUM " + sum);
        Workload.done();
    }
}
