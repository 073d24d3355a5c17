// SPDX-License-Identifier: MIT
package workload;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.management.ManagementFactory;
import java.lang.management.MemoryPoolMXBean;
import java.lang.reflect.Method;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.locks.LockSupport;
import javax.management.ObjectName;

/**
 * Kept: does everything that an agent may look at, and answers each line on stdin with what the JVM keeps of it: the
 * most pieces of code that one native method has, the lengths of the constant pools of the classes that agents change,
 * and the bytes of metaspace. Needs --add-exports of java.base's packages jdk.internal.access and jdk.internal.reflect.
 */
public final class Kept {
    static final Object LOCK = new Object();
    static volatile Object kept;
    static volatile long sum;

    /** No method of it is running for long: then the JVM would keep the class as it was. */
    static final class Target {
        static long plain(long number) {
            return number * 31 + 7;
        }
    }

    static void fail() {
        try {
            throw new IllegalStateException("kept");
        } catch (IllegalStateException expected) {
            sum++;
        }
    }

    /** The time of a call is known to nobody, so no compiler leaves one out. */
    static void work() throws Exception {
        for (int i = 0; i < 1000; i++) {
            sum = Target.plain(sum);
            kept = new long[20];
            sum += Runtime.getRuntime().freeMemory();
        }
        for (int i = 0; i < 100; i++)
            fail();
        synchronized (LOCK) {
            LOCK.wait(0, 1);
        }
        for (int i = 0; i < 100; i++)
            LockSupport.parkNanos(LOCK, 1000);
    }

    private static void forever() {
        for (;;) {
            try {
                work();
            } catch (Exception thrown) {
                Workload.say("WRONG " + thrown);
            }
        }
    }

    private static int poolOf(Class<?> type) throws Exception {
        Class<?> secrets = Class.forName("jdk.internal.access.SharedSecrets");
        Object access = secrets.getMethod("getJavaLangAccess").invoke(null);
        Method pool = Class.forName("jdk.internal.access.JavaLangAccess").getMethod("getConstantPool", Class.class);
        Object constants = pool.invoke(access, type);
        return (Integer) constants.getClass().getMethod("getSize").invoke(constants);
    }

    private static String command(String name) throws Exception {
        ObjectName bean = new ObjectName("com.sun.management:type=DiagnosticCommand");
        return (String) ManagementFactory.getPlatformMBeanServer().invoke(bean, name, new Object[] {null},
                new String[] {String[].class.getName()});
    }

    /** Each line has an id, a level, a state and the method; level 0 is the code that calls a native method. */
    private static int mostWrappers() throws Exception {
        Map<String, Integer> counts = new HashMap<>();
        int most = 0;
        for (String line : command("compilerCodelist").split("\n")) {
            String[] words = line.trim().split(" +");
            if (words.length > 3 && words[1].equals("0"))
                most = Math.max(most, counts.merge(words[3], 1, Integer::sum));
        }
        return most;
    }

    private static long metaspace() {
        long bytes = 0;
        for (MemoryPoolMXBean pool : ManagementFactory.getMemoryPoolMXBeans())
            if (pool.getName().equals("Metaspace"))
                bytes = pool.getUsage().getUsed();
        return bytes;
    }

    private static void answer(String line) throws Exception {
        for (int i = 0; i < 3; i++)
            System.gc();
        Workload.say("KEPT " + mostWrappers() + " " + (poolOf(Throwable.class) + poolOf(Target.class)) + " "
                + metaspace() + " " + line);
    }

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        Thread worker = new Thread(Kept::forever, "worker");
        worker.setDaemon(true);
        worker.start();
        answer("warm");
        Workload.ready();
        for (String line = in.readLine(); line != null; line = in.readLine())
            answer(line);
    }
}
