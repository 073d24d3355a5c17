// SPDX-License-Identifier: MIT
package workload;

import java.util.concurrent.CountDownLatch;

/** Idle [THREADS [busy]]: so many threads that wait for ever; "busy": and one that does not. */
public final class Idle {
    static volatile long sink;

    public static void main(String[] args) throws Exception {
        int count = (int) Workload.argument(args, 0, 100);
        CountDownLatch never = new CountDownLatch(1);
        for (int i = 0; i < count; i++) {
            Thread thread = new Thread(() -> {
                try {
                    never.await();
                } catch (InterruptedException e) {
                    Thread.currentThread().interrupt();
                }
            }, "idle-" + i);
            thread.setDaemon(true);
            thread.start();
        }
        Workload.ready();
        while (args.length > 1)
            sink += TwoBusy.spin(1_000_000);
        never.await();
    }
}
