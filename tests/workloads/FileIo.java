// SPDX-License-Identifier: MIT
package workload;

import java.io.File;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.util.Random;

/**
 * FileIo [SECONDS]: writes and reads a file of 1 MiB that stays in the page cache, for SECONDS of CPU time. A direct
 * buffer of 256 KiB leaves nothing but the kernel's copy between two looks at the thread's CPU clock, so that the line
 * "SYSTEM percent ns", the kernel's share of so much, knows it to the microsecond; the counters of /proc only guess it,
 * at every tick.
 */
public final class FileIo {
    private static final int BLOCK = 256 << 10;
    private static final int BLOCKS = 4;
    private static final ThreadMXBean CLOCK = ManagementFactory.getThreadMXBean();

    /** A loop of even turns could keep step with the samples' clock, which would then see one place of it too often. */
    private final Random random = new Random(1);
    private long systemNanos;

    public static void main(String[] args) throws Exception {
        long seconds = Workload.argument(args, 0, 10);
        File path = File.createTempFile("duet-fileio", null);
        try (RandomAccessFile file = new RandomAccessFile(path, "rw")) {
            if (!path.delete())
                throw new IllegalStateException("cannot unlink " + path);
            Workload.ready();
            FileIo io = new FileIo();
            long begin = CLOCK.getCurrentThreadCpuTime();
            long end = begin + seconds * 1_000_000_000L;
            byte[] bytes = new byte[BLOCK];
            ByteBuffer buffer = ByteBuffer.allocateDirect(BLOCK);
            while (CLOCK.getCurrentThreadCpuTime() < end)
                io.pass(file.getChannel(), buffer, bytes);
            long all = CLOCK.getCurrentThreadCpuTime() - begin;
            Workload.say(String.format("SYSTEM %.2f %d", 100.0 * io.systemNanos / all, all));
        }
        Workload.done();
    }

    private void pass(FileChannel channel, ByteBuffer buffer, byte[] bytes) throws IOException {
        for (int i = 0; i < BLOCKS; i++) {
            mix(bytes, random.nextInt(bytes.length));
            buffer.clear();
            buffer.put(bytes);
            buffer.flip();
            long begin = CLOCK.getCurrentThreadCpuTime();
            channel.write(buffer, (long) i * BLOCK);
            for (int reads = random.nextInt(7); reads > 0; reads--) {
                buffer.flip();
                channel.read(buffer, (long) i * BLOCK);
            }
            systemNanos += CLOCK.getCurrentThreadCpuTime() - begin;
        }
    }

    private static void mix(byte[] bytes, int count) {
        for (int i = 0; i < count; i++)
            bytes[i] += (byte) i;
    }
}
