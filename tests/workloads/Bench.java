// SPDX-License-Identifier: MIT
package workload;

import java.io.ByteArrayOutputStream;
import java.io.File;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.atomic.LongAdder;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.Collectors;
import java.util.zip.Deflater;
import javax.tools.JavaCompiler;
import javax.tools.ToolProvider;

/**
 * Bench compute|mixed|churn|idle|alloc|lock|javac FOLDER: as many busy threads as CPUs, and with lock four times as
 * many. Ten times a second says "OPS operations nanoseconds", both since the start, the latter the CPU time of the
 * whole process: throughput per CPU-second between any two lines.
 */
public final class Bench {
    private static final int IDLE_THREADS = 1000;
    static volatile long sink;

    private interface Operation {
        void run() throws Exception;
    }

    public static void main(String[] args) throws Exception {
        LongAdder done = new LongAdder();
        if (args[0].equals("idle"))
            startIdle();
        int threads = Runtime.getRuntime().availableProcessors() * (args[0].equals("lock") ? 4 : 1);
        for (int i = 0; i < threads; i++) {
            Operation operation = operation(args, i);
            new Thread(() -> loop(operation, done), "bench-" + i).start();
        }
        Workload.ready();
        com.sun.management.OperatingSystemMXBean process =
            (com.sun.management.OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
        for (;;) {
            Thread.sleep(100);
            Workload.say("OPS " + done.sum() + " " + process.getProcessCpuTime());
        }
    }

    private static Operation operation(String[] args, int thread) throws IOException {
        switch (args[0]) {
        case "mixed":
            return new Mixed(thread);
        case "churn":
            return Bench::shortThread;
        case "alloc":
            return new Allocating();
        case "lock":
            return new Locking(thread);
        case "javac":
            return new Javac(new File(args[1]));
        default:
            return new Compute(thread);
        }
    }

    private static void loop(Operation operation, LongAdder done) {
        try {
            for (;;) {
                operation.run();
                done.increment();
            }
        } catch (Exception e) {
            throw new IllegalStateException(e);
        }
    }

    private static void startIdle() {
        for (int i = 0; i < IDLE_THREADS; i++) {
            Thread thread = new Thread(() -> {
                for (;;)
                    LockSupport.park();
            }, "idle-" + i);
            thread.setDaemon(true);
            thread.start();
        }
    }

    /** A thread that lives for 100 us. */
    private static void shortThread() throws InterruptedException {
        Thread thread = new Thread(() -> {
            long end = System.nanoTime() + 100_000;
            while (System.nanoTime() < end)
                sink++;
        });
        thread.start();
        thread.join();
    }

    /** Recursion, virtual calls and a hash table: deep, ordinary Java without allocation. */
    private static final class Compute implements Operation {
        private final Map<Integer, Integer> table = new HashMap<>();
        private final Random random;

        Compute(int seed) {
            random = new Random(seed);
            for (int i = 0; i < 10_000; i++)
                table.put(i, random.nextInt());
        }

        @Override
        public void run() {
            long sum = 0;
            for (int i = 0; i < 200; i++)
                sum += table.get(random.nextInt(10_000));
            sink += sum + fib(14);
        }

        private static int fib(int n) {
            return n < 2 ? n : fib(n - 1) + fib(n - 2);
        }
    }

    /** Objects of 16 bytes to 4 kB, some of which live for a while: 20 kB an operation. */
    private static final class Allocating implements Operation {
        private final Object[] kept = new Object[4096];
        private int next;

        private void keep(Object object) {
            kept[next++ & 4095] = object;
        }

        @Override
        public void run() {
            for (int i = 0; i < 100; i++) {
                keep(new int[i & 31]);
                keep(Integer.valueOf(1000 + i));
            }
            for (int i = 0; i < 20; i++)
                keep(new StringBuilder("operation ").append(next).toString());
            keep(new byte[4096]);
            keep(new Object[500]);
        }
    }

    /** Threads that wait for two monitors and for a lock of java.util.concurrent most of the time. */
    private static final class Locking implements Operation {
        private static final Object[] MONITORS = {new Object(), new Object()};
        private static final java.util.concurrent.locks.ReentrantLock LOCK =
                new java.util.concurrent.locks.ReentrantLock();
        private final int thread;
        private int turn;

        Locking(int thread) {
            this.thread = thread;
        }

        @Override
        public void run() {
            synchronized (MONITORS[(thread + turn++) & 1]) {
                sink += Compute.fib(10);
            }
            sink += Compute.fib(9);
            LOCK.lock();
            try {
                sink += Compute.fib(10);
            } finally {
                LOCK.unlock();
            }
        }
    }

    /** What a server does: objects and streams, native compression, a little file I/O. */
    private static final class Mixed implements Operation {
        private final byte[] text = new byte[8 << 10];
        private final byte[] packed = new byte[16 << 10];
        private final List<String> words = new ArrayList<>();
        private final RandomAccessFile file;

        Mixed(int seed) throws IOException {
            Random random = new Random(seed);
            for (int i = 0; i < 500; i++)
                words.add("word-" + random.nextInt(100));
            for (int i = 0; i < text.length; i++)
                text[i] = (byte) ('a' + random.nextInt(6));
            File path = File.createTempFile("duet-bench", null);
            file = new RandomAccessFile(path, "rw");
            if (!path.delete())
                path.deleteOnExit();
        }

        @Override
        public void run() throws IOException {
            sink += words.stream().collect(Collectors.groupingBy(word -> word, Collectors.counting())).size();
            int length = compress();
            file.seek(0);
            for (int i = 0; i < 4; i++)
                file.write(packed, 0, length);
        }

        private int compress() {
            Deflater deflater = new Deflater(Deflater.BEST_SPEED);
            deflater.setInput(text);
            deflater.finish();
            int length = deflater.deflate(packed);
            deflater.end();
            return length;
        }
    }

    /** The compiler's own sources, one file after the other, each against all the others. */
    private static final class Javac implements Operation {
        private final JavaCompiler compiler = ToolProvider.getSystemJavaCompiler();
        private final File[] files;
        private final String[] command;
        private int next;

        Javac(File sources) throws IOException {
            File classes = Files.createTempDirectory("duet-bench").toFile();
            classes.deleteOnExit();
            files = new File(sources, "com/sun/tools/javac/code").listFiles((folder, name) -> name.endsWith(".java"));
            command = new String[] {"-nowarn", "-proc:none", "-implicit:none", "--patch-module",
                "jdk.compiler=" + sources, "-d", classes.getPath(), null};
        }

        @Override
        public void run() {
            command[command.length - 1] = files[next++ % files.length].getPath();
            if (compiler.run(null, new ByteArrayOutputStream(), null, command) != 0)
                throw new IllegalStateException("javac failed: " + String.join(" ", command));
        }
    }
}
