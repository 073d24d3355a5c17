// SPDX-License-Identifier: MIT
package workload;

import java.io.File;
import java.util.zip.Adler32;
import java.util.zip.CRC32;

/**
 * Checksum [SECONDS]: two threads compute the same known sums over and over, in Java and in native code; a wrong
 * one ends the JVM with code 3. Says "ROUNDS n" while it lives and ends with code 0 and "SOUND" after SECONDS, or when
 * the file exists that -Dend=FILE names.
 */
public final class Checksum {
    private static final byte[] DATA = new byte[1 << 18];
    /** Not "": since JDK 25 that is the current folder. */
    private static final File END = new File(System.getProperty("end", "/dev/null/none"));
    private static final long CRC, JAVA;

    static {
        for (int i = 0; i < DATA.length; i++)
            DATA[i] = (byte) (i * 31 + (i >>> 7));
        CRC = crc();
        JAVA = inJava();
    }

    public static void main(String[] args) throws Exception {
        long seconds = Workload.argument(args, 0, Integer.MAX_VALUE);
        Workload.ready();
        long end = System.nanoTime() + seconds * 1_000_000_000L;
        Thread native_ = new Thread(() -> {
            while (goesOn(end))
                verifyNative();
        }, "native-sum");
        native_.start();
        for (long round = 1; goesOn(end); round++) {
            verifyJava();
            if (round % 200 == 0)
                Workload.say("ROUNDS " + round);
        }
        native_.join();
        Workload.say("SOUND");
    }

    private static boolean goesOn(long end) {
        return System.nanoTime() < end && !END.exists();
    }

    static void verifyJava() {
        verify("Java sum", JAVA, inJava());
    }

    static void verifyNative() {
        verify("CRC32 or Adler32", CRC, crc());
    }

    private static void verify(String what, long want, long got) {
        if (want == got)
            return;
        Workload.say("WRONG " + what + ": " + got + " instead of " + want);
        Runtime.getRuntime().halt(3);
    }

    private static long crc() {
        CRC32 crc = new CRC32();
        crc.update(DATA);
        Adler32 adler = new Adler32();
        adler.update(DATA);
        return crc.getValue() << 32 ^ adler.getValue();
    }

    private static long inJava() {
        double wave = 0;
        long sum = 0;
        for (int i = 0; i < DATA.length; i++) {
            sum = sum * 31 + DATA[i];
            wave += Math.sqrt(DATA[i] * DATA[i] + i);
        }
        return sum ^ Double.doubleToLongBits(wave);
    }
}
