// SPDX-License-Identifier: MIT
package workload;

import java.io.IOException;
import one.profiler.AsyncProfiler;
import workload.shaded.ShadedAsyncProfiler;

// Calls of async-profiler's Java API. Prints what they return, a line for each.
public class ProfilerCalls {
    static volatile long sink;

    static long cpuTime() {
        return java.lang.management.ManagementFactory.getThreadMXBean().getCurrentThreadCpuTime();
    }

    // CPU time of this thread: a third and two thirds.
    static void work(long ms) {
        long end = cpuTime() + ms * 1_000_000;
        while (cpuTime() < end) {
            one();
            two();
        }
    }

    static void spin(long ns) {
        long end = cpuTime() + ns;
        while (cpuTime() < end)
            for (int i = 0; i < 1000; i++)
                sink++;
    }

    static void one() {
        spin(1_000_000);
    }

    static void two() {
        spin(2_000_000);
    }

    static String first(String text) {
        String[] lines = text.split("\n");
        for (String line : lines)
            if (line.startsWith("workload/"))
                return line; // of collapsed stacks, the program's own: the agent's thread may come before it
        return lines.length == 0 ? "" : lines[0];
    }

    static void tell(String what, String command) {
        try {
            System.out.println(what + ": " + first(AsyncProfiler.getInstance().execute(command)));
        } catch (IllegalArgumentException | IllegalStateException | IOException e) {
            System.out.println(what + ": " + e.getClass().getSimpleName() + " " + e.getMessage());
        }
    }

    // What Flink's service for profiling does with each of its modes.
    static void flink(String folder) {
        for (String mode : new String[] {"CPU", "ALLOC", "LOCK", "WALL", "ITIMER"}) {
            tell("start " + mode, "start,event=" + mode.toLowerCase());
            work(700);
            tell("stop " + mode, "stop,file=" + folder + "/10.0.0.1:4711-a_" + mode + "_2024-01-01_00_00_00.html");
        }
    }

    static void errors() {
        tell("stop", "stop");
        tell("dump", "dump,collapsed");
        tell("event", "start,event=cpu,event=wall");
        tell("interval", "start,interval=0");
        tell("several", "start,event=cpu,alloc,file=x.collapsed");
        tell("start", "start,event=cpu");
        tell("again", "start,event=cpu");
        tell("file", "stop,file=/no/such/folder/x.html");
        tell("status", "status");
        tell("stopped", "stop");
        tell("after", "stop,collapsed");
    }

    static void older() {
        ShadedAsyncProfiler profiler = new ShadedAsyncProfiler();
        System.out.println("version: " + profiler.version0());
        profiler.start0("cpu", 1_000_000);
        work(1000);
        profiler.stop0();
        System.out.println("samples: " + profiler.getSamples());
        System.out.print(profiler.dumpCollapsed0(0));
        System.out.println("text: " + first(profiler.dumpTraces0(5)));
    }

    static void cycles(int count, long ms) {
        for (int i = 0; i < count; i++) {
            long begun = System.nanoTime();
            AsyncProfiler.getInstance().start("cpu", 1_000_000);
            System.out.println("start: " + (System.nanoTime() - begun) / 1000 + " us");
            work(ms);
            AsyncProfiler.getInstance().stop();
        }
    }

    // What was done before the question is counted in its answer.
    static void countAtOnce(int count) throws IOException {
        tell("start", "start,trace=workload.ProfilerCalls.one,features=stats");
        for (int i = 0; i < count; i++)
            one();
        System.out.println(AsyncProfiler.getInstance().execute("metrics"));
        tell("stop", "stop");
    }

    static class Marker {
    }

    static volatile Object marker;

    static void mark(int count) {
        for (int i = 0; i < count; i++)
            marker = new Marker();
    }

    static void nap(long ms) {
        try {
            Thread.sleep(ms);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    static void naps() {
        while (true)
            nap(5);
    }

    // Of three threads, one is in the filter for a second, and this one for half of it.
    static void chosen(String file) throws IOException {
        AsyncProfiler profiler = AsyncProfiler.getInstance();
        Thread[] threads = new Thread[3];
        for (int i = 0; i < threads.length; i++) {
            threads[i] = new Thread(ProfilerCalls::naps, "naps-" + i);
            threads[i].setDaemon(true);
            threads[i].start();
        }
        profiler.execute("start,event=wall,interval=10ms,filter,threads,collapsed,file=" + file);
        profiler.addThread(threads[1]);
        profiler.addThread(Thread.currentThread());
        for (int i = 0; i < 100; i++)
            nap(5);
        profiler.removeThread(Thread.currentThread());
        for (int i = 0; i < 100; i++)
            nap(5);
        profiler.removeThread(threads[1]);
        nap(1000);
        profiler.execute("stop,threads,collapsed,file=" + file);
    }

    // All threads ask at once; one of them starts, the others are told so.
    static void crowd(int count) throws InterruptedException {
        Thread[] threads = new Thread[count];
        for (int i = 0; i < count; i++) {
            threads[i] = new Thread(() -> tell("crowd", "start,event=cpu"));
            threads[i].start();
        }
        for (Thread thread : threads)
            thread.join();
        tell("stop", "stop");
    }

    // By JMX, as a monitoring tool would.
    static void bean() throws Exception {
        javax.management.MBeanServer server = java.lang.management.ManagementFactory.getPlatformMBeanServer();
        javax.management.ObjectName name = new javax.management.ObjectName("one.profiler:type=AsyncProfiler");
        System.out.println("version: " + server.getAttribute(name, "Version"));
        work(1500);
        System.out.print(server.invoke(name, "dumpCollapsed", new Object[] {"SAMPLES"},
            new String[] {String.class.getName()}));
        byte[] otlp = (byte[]) server.invoke(name, "dumpOtlp", new Object[] {"TOTAL"},
            new String[] {String.class.getName()});
        System.out.println("otlp: " + (otlp.length > 0));
    }

    static native void replace(int descriptor, String path);

    // Puts a file in the place of each socket of this process, as a program may that closes what it does not know.
    static void closed(String path) throws Exception {
        System.loadLibrary("workload");
        tell("first", "start,event=cpu");
        java.io.File[] descriptors = new java.io.File("/proc/self/fd").listFiles();
        for (java.io.File descriptor : descriptors) {
            String target;
            try {
                target = java.nio.file.Files.readSymbolicLink(descriptor.toPath()).toString();
            } catch (IOException e) {
                continue;
            }
            if (target.startsWith("socket:"))
                replace(Integer.parseInt(descriptor.getName()), path);
        }
        tell("second", "status");
    }

    public static void main(String[] args) throws Exception {
        if (args[0].equals("moment"))
            System.out.println("main: " + System.currentTimeMillis());
        else if (args[0].equals("markers"))
            mark(Integer.parseInt(args[1]));
        else if (args[0].equals("chosen"))
            chosen(args[1]);
        else if (args[0].equals("flink"))
            flink(args[1]);
        else if (args[0].equals("tell"))
            for (int i = 1; i < args.length; i++) {
                tell(args[i], args[i]);
                work(300);
            }
        else if (args[0].equals("errors"))
            errors();
        else if (args[0].equals("older"))
            older();
        else if (args[0].equals("cycles"))
            cycles(Integer.parseInt(args[1]), args.length > 2 ? Long.parseLong(args[2]) : 20);
        else if (args[0].equals("metrics"))
            countAtOnce(Integer.parseInt(args[1]));
        else if (args[0].equals("bean"))
            bean();
        else if (args[0].equals("closed"))
            closed(args[1]);
        else if (args[0].equals("crowd"))
            crowd(Integer.parseInt(args[1]));
        else
            work(Long.parseLong(args[1]));
        System.out.println("END");
        if (!Boolean.getBoolean("ends"))
            Thread.sleep(Long.MAX_VALUE);
    }
}
