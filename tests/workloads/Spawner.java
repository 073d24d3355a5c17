// SPDX-License-Identifier: MIT
package workload;

import java.io.IOException;

/**
 * Spawner: one thread starts /bin/true over and over (fork and exec), another stays busy. Says "SPAWNED n"; a
 * child that did not end with 0, as one killed by a stray signal would, ends the JVM with code 3.
 */
public final class Spawner {
    static volatile long sink;

    public static void main(String[] args) throws Exception {
        Workload.ready();
        Thread busy = new Thread(() -> {
            for (;;)
                sink += TwoBusy.spin(1_000_000);
        }, "busy");
        busy.setDaemon(true);
        busy.start();
        for (long count = 1;; count++) {
            spawn();
            if (count % 20 == 0)
                Workload.say("SPAWNED " + count);
        }
    }

    private static void spawn() throws IOException, InterruptedException {
        int code = new ProcessBuilder("/bin/true").start().waitFor();
        if (code == 0)
            return;
        Workload.say("WRONG exit code " + code);
        Runtime.getRuntime().halt(3);
    }
}
