// SPDX-License-Identifier: MIT
package workload;

import java.io.File;
import java.io.RandomAccessFile;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;

/**
 * FileIo [SECONDS]: reads and writes a file of 1 MiB that stays in the page cache, so that much of the time goes
 * to the kernel, until SECONDS of CPU time are used. The line "CPU utime stime" tells how much, in
 * clock ticks, and "SYSTEM share" in percent.
 */
public final class FileIo {
    public static void main(String[] args) throws Exception {
        long seconds = Workload.argument(args, 0, 10);
        File path = File.createTempFile("duet-fileio", null);
        path.deleteOnExit();
        try (RandomAccessFile file = new RandomAccessFile(path, "rw")) {
            if (!path.delete())
                throw new IllegalStateException("cannot unlink " + path);
            Workload.ready();
            long[] before = Workload.cpuTicks();
            ThreadMXBean clock = ManagementFactory.getThreadMXBean();
            long end = clock.getCurrentThreadCpuTime() + seconds * 1_000_000_000L;
            byte[] block = new byte[4096];
            while (clock.getCurrentThreadCpuTime() < end)
                pass(file, block);
            long[] after = Workload.cpuTicks();
            long user = after[0] - before[0];
            long system = after[1] - before[1];
            Workload.say("CPU " + user + " " + system);
            Workload.say(String.format("SYSTEM %.2f", 100.0 * system / (user + system)));
        }
        Workload.done();
    }

    private static void pass(RandomAccessFile file, byte[] block) throws Exception {
        file.seek(0);
        for (int i = 0; i < 256; i++) {
            file.write(block);
            mix(block);
        }
        file.seek(0);
        for (int i = 0; i < 256; i++)
            file.readFully(block);
    }

    private static void mix(byte[] block) {
        for (int i = 0; i < block.length; i++)
            block[i] += (byte) i;
    }
}
