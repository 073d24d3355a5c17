// SPDX-License-Identifier: MIT
package workload;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.lang.instrument.ClassDefinition;
import java.lang.instrument.Instrumentation;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.locks.LockSupport;
import java.util.function.LongUnaryOperator;

/**
 * Storm NAME...: everything at once that is hard on a profiler, beside threads that compute known sums (Checksum).
 * Obeys lines on stdin: "ask TOKEN" computes both sums once more and answers "SOUND TOKEN"; "exit CODE"; "exec".
 * What goes wrong is said in a line "WRONG ..." and ends the JVM with code 3. Storm "redefine" needs this class as a
 * Java agent.
 */
public final class Storm {
    /** In the constant pool of Changing; the other body has this plus one. */
    private static final int ONE_VALUE = 0x5ca1ab1e;

    private static Instrumentation instrumentation;
    private static final byte[] LINE = new byte[256];
    private static int lineBytes;
    private static boolean memoryRunsOut;
    static volatile long sink;
    static volatile Object kept;

    private interface Body {
        void run() throws Exception;
    }

    public static void premain(String arguments, Instrumentation given) {
        instrumentation = given;
    }

    public static void main(String[] args) throws Exception {
        memoryRunsOut = Arrays.asList(args).contains("oom");
        Checksum.verifyJava(); // while there is memory to initialize the class
        Checksum.verifyNative();
        forever("sum", Checksum::verifyJava);
        forever("native-sum", Checksum::verifyNative);
        for (String name : args)
            begin(name);
        Workload.ready();
        obey();
    }

    private static void begin(String name) throws Exception {
        switch (name) {
        case "threads": forever(name, Storm::threads); break;
        case "virtual": forever(name, Storm::virtualThreads); break;
        case "classes": forever(name, Storm::classes); break;
        case "code": forever(name, Storm::code); break;
        case "deopt": forever(name, Storm::deopt); break;
        case "redefine": forever("changing", Storm::callChanging); forever(name, Storm::redefine); break;
        case "overflow": forever(name, Storm::overflow); break;
        case "exceptions": forever(name, Storm::exceptions); break;
        case "locks": forever("locks-1", Storm::locks); forever("locks-2", Storm::locks); break;
        case "children": forever("children-1", Storm::children); forever("children-2", Storm::children); break;
        case "gc": forever(name, Storm::gc); break;
        case "oom": forever(name, Storm::outOfMemory); break;
        default: throw new IllegalArgumentException(name);
        }
    }

    private static void forever(String name, Body body) {
        Thread thread = new Thread(() -> {
            for (;;)
                attempt(name, body);
        }, name);
        thread.setDaemon(true);
        thread.start();
    }

    /** Where memory runs out, any allocation may fail, also one that a class needs to be initialized. */
    private static void attempt(String name, Body body) {
        try {
            body.run();
        } catch (Throwable thrown) {
            if (!memoryRunsOut)
                wrong(name + ": " + thrown);
        }
    }

    private static void wrong(String what) {
        Workload.say("WRONG " + what);
        Runtime.getRuntime().halt(3);
    }

    // ---- commands ----

    /** What has been read stays when there is no memory for the string: BufferedReader would lose the line. */
    private static String readLine() throws IOException {
        while (lineBytes == 0 || LINE[lineBytes - 1] != '\n') {
            int next = System.in.read();
            if (next < 0)
                return null;
            LINE[lineBytes++] = (byte) next;
        }
        String line = new String(LINE, 0, lineBytes - 1);
        lineBytes = 0;
        return line;
    }

    /** Also without memory: then once more. */
    private static void obey() throws IOException {
        String line = "";
        while (line != null) {
            try {
                if (!line.isEmpty())
                    obey(line.split(" "));
                line = readLine();
            } catch (OutOfMemoryError again) {
                Thread.yield();
            }
        }
        System.exit(0);
    }

    private static void obey(String[] words) {
        switch (words[0]) {
        case "ask":
            Checksum.verifyJava();
            Checksum.verifyNative();
            Workload.say("SOUND " + words[1]);
            break;
        case "exit":
            System.exit(Integer.parseInt(words[1]));
            break;
        case "exec":
            String script = "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done; echo LIVED";
            wrong("exec: " + SystemCalls.exec(new String[] {"/bin/sh", "-c", script}));
            break;
        default:
            wrong("command " + words[0]);
        }
    }

    // ---- storms ----

    private static void threads() throws InterruptedException {
        Thread[] threads = new Thread[1000];
        for (int i = 0; i < threads.length; i++) {
            threads[i] = new Thread(() -> spin(1_000_000), "short-" + i);
            threads[i].start();
        }
        for (Thread thread : threads)
            thread.join();
    }

    private static void spin(long nanoseconds) {
        long end = System.nanoTime() + nanoseconds;
        while (System.nanoTime() < end)
            sink++;
    }

    /** JDK 21 and later, so by reflection. */
    private static void virtualThreads() throws Exception {
        Method start = Thread.class.getMethod("startVirtualThread", Runnable.class);
        CountDownLatch ended = new CountDownLatch(1000);
        for (int i = 0; i < 1000; i++) {
            Runnable body = () -> {
                for (int round = 0; round < 10; round++) {
                    spin(20_000);
                    LockSupport.parkNanos(50_000);
                }
                ended.countDown();
            };
            start.invoke(null, body);
        }
        ended.await();
    }

    /** A loader for one class. */
    private static final class Loader extends ClassLoader {
        Loader() {
            super(Storm.class.getClassLoader());
        }

        Object create(byte[] bytes) throws ReflectiveOperationException {
            return defineClass(null, bytes, 0, bytes.length).getDeclaredConstructor().newInstance();
        }
    }

    /** Its code is loaded a thousand times. */
    public static final class Victim implements LongUnaryOperator {
        @Override
        public long applyAsLong(long x) {
            long sum = x;
            for (int i = 0; i < 64; i++)
                sum = sum * 31 + (i ^ Long.rotateLeft(sum, i));
            return sum;
        }
    }

    private static byte[] bytesOf(Class<?> type) throws IOException {
        String name = type.getName();
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        byte[] piece = new byte[4096];
        try (InputStream in = type.getResourceAsStream(name.substring(name.lastIndexOf('.') + 1) + ".class")) {
            for (int got = in.read(piece); got > 0; got = in.read(piece))
                bytes.write(piece, 0, got);
        }
        return bytes.toByteArray();
    }

    private static void loadVictims(int loaders, int calls) throws Exception {
        byte[] bytes = bytesOf(Victim.class);
        long want = new Victim().applyAsLong(7);
        for (int i = 0; i < loaders; i++) {
            LongUnaryOperator victim = (LongUnaryOperator) new Loader().create(bytes);
            for (int call = 0; call < calls; call++)
                if (victim.applyAsLong(7) != want)
                    wrong("Victim");
        }
    }

    private static void classes() throws Exception {
        loadVictims(2000, 1);
        System.gc();
    }

    /** Each is called often enough to be compiled, by both compilers: the code cache fills and is flushed. */
    private static void code() throws Exception {
        loadVictims(100, 20_000);
    }

    public static class Shape {
        public long area(long x) {
            return x + 1;
        }
    }

    public static final class OtherShape extends Shape {
        @Override
        public long area(long x) {
            return x + 1;
        }
    }

    /** A new subclass breaks what the compilers had assumed of the callers that run. */
    private static void deopt() throws Exception {
        byte[] bytes = bytesOf(OtherShape.class);
        Shape[] shapes = new Shape[8];
        for (int round = 0; round < 20; round++) {
            Arrays.fill(shapes, new Shape());
            sumAreas(shapes);
            shapes[round % 8] = (Shape) new Loader().create(bytes);
            sumAreas(shapes);
        }
        System.gc();
    }

    private static void sumAreas(Shape[] shapes) {
        long sum = 0;
        for (int i = 0; i < 200_000; i++)
            sum += shapes[i & 7].area(i);
        if (sum != 200_000L * 200_001 / 2)
            wrong("areas " + sum);
    }

    public static final class Changing {
        static long value() {
            long value = 0;
            for (int i = 0; i < 1000; i++)
                value = i % 2 == 0 ? ONE_VALUE : value;
            return value;
        }
    }

    private static void callChanging() {
        for (int i = 0; i < 1000; i++) {
            long value = Changing.value();
            if (value != ONE_VALUE && value != ONE_VALUE + 1)
                wrong("redefined method: " + value);
        }
    }

    private static void redefine() throws Exception {
        byte[] bytes = bytesOf(Changing.class);
        int last = indexOf(bytes, ONE_VALUE) + 3;
        for (int round = 0; round < 100; round++) {
            bytes[last] ^= (byte) ONE_VALUE ^ (byte) (ONE_VALUE + 1);
            instrumentation.redefineClasses(new ClassDefinition(Changing.class, bytes));
            Thread.sleep(1);
        }
    }

    private static int indexOf(byte[] bytes, int value) {
        for (int i = 0; i + 3 < bytes.length; i++)
            if (bytes[i] == (byte) (value >> 24) && bytes[i + 1] == (byte) (value >> 16) &&
                bytes[i + 2] == (byte) (value >> 8) && bytes[i + 3] == (byte) value)
                return i;
        throw new IllegalStateException("no such constant");
    }

    /** 512 KiB as the agent's own thread has it: the C library hands its stack on. */
    private static void overflow() throws InterruptedException {
        for (long stack : new long[] {0, 256 << 10, 512 << 10, 1 << 20}) {
            Thread thread = new Thread(null, Storm::overflowOnce, "overflow-" + stack, stack);
            thread.start();
            thread.join();
        }
    }

    private static void overflowOnce() {
        for (int i = 0; i < 20; i++) {
            try {
                sink = recurse(1);
                wrong("endless recursion ended");
            } catch (StackOverflowError expected) {
                sink++;
            }
        }
    }

    private static long recurse(long depth) {
        return recurse(depth + 1) + depth;
    }

    private static void exceptions() {
        for (int i = 0; i < 1000; i++) {
            try {
                throwFrom(100);
            } catch (IllegalStateException expected) {
                // HotSpot leaves out what it has no memory for.
                if (expected.getStackTrace().length < 100 && !memoryRunsOut)
                    wrong("stack trace");
            }
        }
    }

    private static void throwFrom(int depth) {
        if (depth == 0)
            throw new IllegalStateException("expected");
        throwFrom(depth - 1);
    }

    private static void locks() {
        for (int i = 0; i < 10_000; i++) {
            synchronized (Storm.class) {
                sink++;
            }
            if (i % 100 == 0)
                LockSupport.parkNanos(10_000);
        }
    }

    private static void children() throws Exception {
        int code = new ProcessBuilder("/bin/true").start().waitFor();
        if (code != 0)
            wrong("exit code of a child: " + code);
    }

    private static void gc() {
        kept = new byte[1 << 20];
        System.gc();
    }

    private static void outOfMemory() throws InterruptedException {
        List<byte[]> hoard = new ArrayList<>();
        try {
            for (;;)
                hoard.add(new byte[1 << 16]);
        } catch (OutOfMemoryError expected) {
            hoard = null;
        }
        Thread.sleep(20);
    }
}
