// SPDX-License-Identifier: MIT
package workload;

import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.math.BigInteger;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.zip.Adler32;
import java.util.zip.CRC32;
import javax.crypto.Cipher;
import javax.crypto.spec.SecretKeySpec;

/**
 * Intrinsics [SECONDS [main|virtual|contended [GROUP...]]]: kinds of work that HotSpot's compilers do by stubs, by
 * calls of the JVM, or in place. Each kind is a small method of its own, which the compiler inlines into the loop of
 * its group (sums, strings, arrays, maths, memory, locks). "TRUTH KIND NANOSECONDS" is said once a second: the time of
 * each kind since the start, by the program's clock. Runs in the main thread or in a virtual thread. With "contended",
 * two threads fight for the lock.
 */
public final class Intrinsics {
    private static final int PREEMPTED = 2_000_000; // ns: longer than any block of work takes
    private static final String[] KINDS = {
        "crc32", "adler", "aes", "bigs", "find", "order", "same", "concat", "fill", "equal", "differ", "copy",
        "overlap", "objects", "vector", "pow", "log", "sine", "round", "rest", "small", "large", "store", "buffer",
        "locked"};
    static volatile long sink;
    static volatile double sum;
    private static final byte[] BYTES = new byte[4096], OTHER = new byte[4096];
    private static final int[] NUMBERS = new int[2048], OTHERS = new int[2048];
    private static final Object[] OBJECTS = new Object[64];
    private static final Integer[] INTEGERS = new Integer[64];
    private static final Object[] OLD = new Object[1 << 16];
    private static final String HAY = text(200, "needle"), STRAW = text(200, "nettle");
    private static final CRC32 CRC = new CRC32();
    private static final Adler32 ADLER = new Adler32();
    private static final BigInteger BIG = BigInteger.ONE.shiftLeft(1500).subtract(BigInteger.TEN);
    private static final ByteBuffer DIRECT = ByteBuffer.allocateDirect(4096);
    private static final MethodHandle MISMATCH = mismatch();
    private static final Cipher AES = cipher();
    private static final Object LOCK = new Object();
    private static final long[] SPENT = new long[KINDS.length];
    private static long shared;

    public static void main(String[] args) throws Exception {
        String mode = args.length > 1 ? args[1] : "main";
        Arrays.fill(OBJECTS, 7);
        Arrays.fill(NUMBERS, 3);
        Runnable work = () -> run(args);
        Workload.ready();
        if (mode.equals("virtual"))
            ((Thread) Thread.class.getMethod("startVirtualThread", Runnable.class).invoke(null, work)).join();
        else if (mode.equals("contended"))
            contend(work);
        else
            work.run();
        Workload.done();
    }

    private static void contend(Runnable work) throws InterruptedException {
        Thread other = new Thread(work, "other");
        other.start();
        work.run();
        other.join();
    }

    private static void run(String[] args) {
        String groups = args.length > 2 ? String.join(" ", args) : "sums strings arrays maths memory locks";
        long start = System.nanoTime(), seconds = Workload.argument(args, 0, 6);
        for (long said = 0; said < seconds;) {
            round(groups);
            if (System.nanoTime() - start < (said + 1) * 1_000_000_000L)
                continue;
            said++;
            for (int i = 0; i < KINDS.length; i++)
                Workload.say("TRUTH " + KINDS[i] + " " + SPENT[i]);
        }
    }

    private static void round(String groups) {
        if (groups.contains("sums"))
            sums();
        if (groups.contains("strings"))
            strings();
        if (groups.contains("arrays"))
            arrays();
        if (groups.contains("maths"))
            maths();
        if (groups.contains("memory"))
            memory();
        if (groups.contains("locks"))
            locks();
    }

    /** Returns the time, and adds what has passed since the last one to a kind. */
    private static long note(int kind, long since) {
        long now = System.nanoTime();
        if (now - since < PREEMPTED)
            SPENT[kind] += now - since;
        return now;
    }

    // ---- groups: each loop is as long as the reading of the clock is of no account ----

    static void sums() {
        long all = 0, time = System.nanoTime();
        for (int i = 0; i < 500; i++)
            all += crc32(i);
        time = note(0, time);
        for (int i = 0; i < 500; i++)
            all += adler(i);
        time = note(1, time);
        for (int i = 0; i < 50; i++)
            all += aes(i);
        time = note(2, time);
        for (int i = 0; i < 50; i++)
            all += bigs(i);
        note(3, time);
        sink = all;
    }

    static void strings() {
        long all = 0, time = System.nanoTime();
        for (int i = 0; i < 2000; i++)
            all += find(i);
        time = note(4, time);
        for (int i = 0; i < 2000; i++)
            all += order(i);
        time = note(5, time);
        for (int i = 0; i < 2000; i++)
            all += same(i);
        time = note(6, time);
        for (int i = 0; i < 500; i++)
            all += concat(i);
        note(7, time);
        sink = all;
    }

    static void arrays() {
        long all = 0, time = System.nanoTime();
        for (int i = 0; i < 2000; i++)
            fill(i);
        time = note(8, time);
        for (int i = 0; i < 2000; i++)
            all += equal(i);
        time = note(9, time);
        for (int i = 0; i < 2000; i++)
            all += differ(i);
        time = note(10, time);
        for (int i = 0; i < 2000; i++)
            copy(i);
        time = note(11, time);
        for (int i = 0; i < 2000; i++)
            overlap(i);
        time = note(12, time);
        for (int i = 0; i < 1000; i++)
            objects(i);
        time = note(13, time);
        for (int i = 0; i < 200; i++)
            vector(i);
        note(14, time);
        sink = all;
    }

    static void maths() {
        double all = 0;
        long time = System.nanoTime();
        for (int i = 1; i < 2000; i++)
            all += pow(i);
        time = note(15, time);
        for (int i = 1; i < 4000; i++)
            all += log(i);
        time = note(16, time);
        for (int i = 1; i < 3000; i++)
            all += sine(i);
        time = note(17, time);
        for (int i = 1; i < 20000; i++)
            all += round(i);
        time = note(18, time);
        for (int i = 1; i < 3000; i++)
            all += rest(i);
        note(19, time);
        sum = all;
    }

    static void memory() {
        long all = 0, time = System.nanoTime();
        for (int i = 0; i < 1000; i++)
            all += small(i).length;
        time = note(20, time);
        for (int i = 0; i < 4; i++)
            all += large(i).length;
        time = note(21, time);
        for (int i = 0; i < 4000; i++)
            store(i);
        time = note(22, time);
        for (int i = 0; i < 2000; i++)
            buffer(i);
        note(23, time);
        sink = all;
    }

    static void locks() {
        long time = System.nanoTime();
        for (int i = 0; i < 3000; i++)
            locked(i);
        note(24, time);
    }

    // ---- kinds ----

    static long crc32(int i) {
        CRC.update(BYTES, i & 7, 1000);
        return CRC.getValue();
    }

    static long adler(int i) {
        ADLER.update(BYTES, i & 7, 1000);
        return ADLER.getValue();
    }

    static long aes(int i) {
        try {
            return AES.update(BYTES, i & 7, 2048, OTHER);
        } catch (Exception e) {
            throw new IllegalStateException(e);
        }
    }

    static long bigs(int i) {
        return BIG.multiply(BIG).testBit(i) ? 1 : 0;
    }

    static int find(int i) {
        return HAY.indexOf("needle", i & 15);
    }

    static int order(int i) {
        return (i & 1) == 0 ? HAY.compareTo(STRAW) : STRAW.compareTo(HAY);
    }

    static int same(int i) {
        return HAY.equals((i & 1) == 0 ? STRAW : HAY) ? 1 : 0;
    }

    static int concat(int i) {
        return HAY.concat(STRAW).length() + i;
    }

    static void fill(int i) {
        Arrays.fill(BYTES, 0, 2000, (byte) i);
    }

    static int equal(int i) {
        BYTES[i & 7] = 1;
        return Arrays.equals(NUMBERS, OTHERS) || Arrays.equals(BYTES, OTHER) ? 1 : 0;
    }

    static int differ(int i) {
        try {
            OTHERS[2000] = i;
            return (int) MISMATCH.invokeExact(NUMBERS, NUMBERS);
        } catch (Throwable e) {
            throw new IllegalStateException(e);
        }
    }

    static void copy(int i) {
        System.arraycopy(BYTES, i & 7, OTHER, 0, 2000);
    }

    static void overlap(int i) {
        System.arraycopy(NUMBERS, i & 7, NUMBERS, 3, 1000);
    }

    static void objects(int i) {
        System.arraycopy(OBJECTS, 0, (i & 3) == 0 ? OBJECTS : (Object[]) INTEGERS, 0, OBJECTS.length);
    }

    static void vector(int i) {
        for (int k = 0; k < NUMBERS.length; k++)
            OTHERS[k] += NUMBERS[k] * i;
    }

    static double pow(int i) {
        return Math.pow(i, 1.3);
    }

    static double log(int i) {
        return Math.log(i) + Math.log10(i);
    }

    static double sine(int i) {
        return Math.sin(i) + Math.exp(1.0 / i);
    }

    static double round(int i) {
        return Math.round(i * 1.7) + Math.rint(i * 0.3) + Math.sqrt(i);
    }

    static double rest(int i) {
        return (i * 1e9) % 1.7;
    }

    static byte[] small(int i) {
        return new byte[64 + (i & 255)];
    }

    static long[] large(int i) {
        return new long[20_000 + i];
    }

    static void store(int i) {
        OLD[(i * 0x9E3779B1) >>> 16] = new int[1];
    }

    static void buffer(int i) {
        DIRECT.clear();
        DIRECT.put(BYTES, i & 7, 2000);
    }

    static void locked(int i) {
        synchronized (LOCK) {
            shared += i;
        }
    }

    // ---- what they work on ----

    private static String text(int length, String end) {
        StringBuilder text = new StringBuilder();
        for (int i = 0; i < length; i++)
            text.append((char) (97 + i % 10));
        return text.append(end).toString();
    }

    private static Cipher cipher() {
        try {
            Cipher cipher = Cipher.getInstance("AES/CBC/NoPadding");
            cipher.init(Cipher.ENCRYPT_MODE, new SecretKeySpec(new byte[16], "AES"));
            return cipher;
        } catch (Exception e) {
            throw new IllegalStateException(e);
        }
    }

    private static int compared(int[] a, int[] b) {
        return Arrays.equals(a, b) ? -1 : 0;
    }

    /** Arrays.mismatch(), which JDK 8 has not. */
    private static MethodHandle mismatch() {
        MethodType type = MethodType.methodType(int.class, int[].class, int[].class);
        try {
            return MethodHandles.lookup().findStatic(Arrays.class, "mismatch", type);
        } catch (ReflectiveOperationException e) {
            try {
                return MethodHandles.lookup().findStatic(Intrinsics.class, "compared", type);
            } catch (ReflectiveOperationException impossible) {
                throw new IllegalStateException(impossible);
            }
        }
    }
}
