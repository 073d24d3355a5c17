// SPDX-License-Identifier: MIT
package workload;

import java.math.BigInteger;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.Arrays;
import java.util.Base64;
import java.util.zip.Adler32;
import java.util.zip.CRC32;

/**
 * Stubs [SECONDS]: methods that spend their time in code that HotSpot's compiler does not make for them: array copies,
 * virtual and interface calls of many receivers, checksums, the clock, strings, digests. Each is called by main()
 * alone, so that every sample of the main thread has one of them.
 */
public final class Stubs {
    static volatile long sink;
    private static final byte[] FROM = new byte[4096];
    private static final byte[] TO = new byte[4096];
    private static final Object[] OBJECTS = {new First(), new Second(), new Third(), "four", 5L};
    private static final Object[] COPIES = new Object[OBJECTS.length];
    private static final Base[] RECEIVERS = {new First(), new Second(), new Third()};
    private static final BigInteger BIG = BigInteger.ONE.shiftLeft(1500).subtract(BigInteger.TEN);
    private static final BigInteger MODULUS = BigInteger.ONE.shiftLeft(1279).subtract(BigInteger.ONE);
    private static final String HAY = hay();

    public static void main(String[] args) throws Exception {
        long end = System.nanoTime() + Workload.argument(args, 0, 6) * 1_000_000_000L;
        Workload.ready();
        while (System.nanoTime() < end)
            round();
        Workload.done();
    }

    private static void round() {
        copies();
        objects();
        casts();
        virtuals();
        interfaces();
        checksums();
        clocks();
        strings();
        maths();
        digests();
        encodings();
        arrays();
    }

    private static String hay() {
        StringBuilder text = new StringBuilder();
        for (int i = 0; i < 400; i++)
            text.append((char) (97 + i % 10));
        return text.append("needle").toString();
    }

    static void copies() {
        for (int i = 0; i < 20_000; i++)
            System.arraycopy(FROM, i & 7, TO, 0, 16 + (i & 1023));
        for (int i = 0; i < 20_000; i++)
            System.arraycopy(FROM, i & 7, FROM, 3, 16 + (i & 255)); // they overlap
    }

    /** A class remembers one interface of its that was asked for: C1 calls a stub when it is another. */
    static void casts() {
        long sum = 0;
        for (int i = 0; i < 100_000; i++) {
            Object receiver = RECEIVERS[i % RECEIVERS.length];
            sum += (receiver instanceof Weighed ? 1 : 0) + (receiver instanceof Marked ? 2 : 0);
        }
        sink = sum;
    }

    static void objects() {
        for (int i = 0; i < 20_000; i++)
            System.arraycopy(OBJECTS, 0, COPIES, 0, OBJECTS.length);
    }

    static void virtuals() {
        long sum = 0;
        for (int i = 0; i < 100_000; i++)
            sum += RECEIVERS[i % 3].weigh(i);
        sink = sum;
    }

    static void interfaces() {
        long sum = 0;
        for (int i = 0; i < 100_000; i++)
            sum += ((Weighed) RECEIVERS[i % 3]).weighed(i);
        sink = sum;
    }

    static void checksums() {
        CRC32 crc = new CRC32();
        for (int i = 0; i < 10_000; i++)
            crc.update(FROM, i & 7, 1024);
        sink = crc.getValue();
    }

    static void clocks() {
        long sum = 0;
        for (int i = 0; i < 10_000; i++)
            sum += System.currentTimeMillis() ^ System.nanoTime();
        sink = sum;
    }

    static void strings() {
        long sum = 0;
        for (int i = 0; i < 2_000; i++)
            sum += HAY.indexOf("needle", i & 15) + HAY.hashCode() + HAY.concat("x").compareTo(HAY) + HAY.indexOf('n');
        sink = sum;
    }

    static void maths() {
        double sum = 0;
        for (int i = 1; i < 3_000; i++)
            sum += Math.sin(i) + Math.cos(i * 1e3) + Math.pow(i, 1.3) + Math.log(i) + Math.exp(1.0 / i) + Math.tan(i);
        BigInteger big = BIG;
        for (int i = 0; i < 10; i++)
            big = big.multiply(BIG).mod(MODULUS).modPow(BigInteger.TEN, MODULUS);
        sink = (long) sum ^ big.hashCode();
    }

    static void digests() {
        try {
            MessageDigest digest = MessageDigest.getInstance("SHA-256");
            for (int i = 0; i < 20; i++)
                digest.update(FROM);
            MessageDigest other = MessageDigest.getInstance("MD5");
            for (int i = 0; i < 20; i++)
                other.update(FROM);
            sink = digest.digest()[0] + other.digest()[0];
            Adler32 adler = new Adler32();
            for (int i = 0; i < 200; i++)
                adler.update(FROM);
            sink += adler.getValue();
        } catch (NoSuchAlgorithmException e) {
            throw new IllegalStateException(e);
        }
    }

    static void encodings() {
        long sum = 0;
        for (int i = 0; i < 20; i++) {
            byte[] coded = Base64.getEncoder().encode(FROM);
            sum += coded.length + Base64.getDecoder().decode(coded).length;
            sum += HAY.getBytes(StandardCharsets.ISO_8859_1).length + HAY.getBytes(StandardCharsets.UTF_8).length;
            sum += new String(FROM, StandardCharsets.UTF_8).length() + (HAY + '\u20ac' + i).length();
            sum += HAY.equals(new String(HAY.toCharArray())) ? 1 : 0;
        }
        sink = sum;
    }

    static void arrays() {
        int[] numbers = new int[2000];
        for (int i = 0; i < numbers.length; i++)
            numbers[i] = i * 7919 % 4099;
        int[] sorted = numbers.clone();
        Arrays.sort(sorted);
        Object[] copy = Arrays.copyOf(OBJECTS, OBJECTS.length, Object[].class);
        Base[] bases = new Base[RECEIVERS.length];
        for (int i = 0; i < 500; i++) {
            System.arraycopy(copy, 0, bases, 0, 3); // each element is checked
            Arrays.fill(numbers, i);
            sink = Arrays.equals(numbers, sorted) ? 1 : Arrays.hashCode(numbers);
        }
    }

    interface Weighed {
        long weighed(long x);
    }

    interface Marked {}

    abstract static class Base implements Weighed, Marked {
        abstract long weigh(long x);
    }

    static final class First extends Base {
        @Override
        long weigh(long x) {
            return x + 1;
        }

        @Override
        public long weighed(long x) {
            return x * 3;
        }
    }

    static final class Second extends Base {
        @Override
        long weigh(long x) {
            return x ^ 2;
        }

        @Override
        public long weighed(long x) {
            return x * 5;
        }
    }

    static final class Third extends Base {
        @Override
        long weigh(long x) {
            return x - 3;
        }

        @Override
        public long weighed(long x) {
            return x * 7;
        }
    }
}
