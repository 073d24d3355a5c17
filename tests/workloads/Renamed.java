// SPDX-License-Identifier: MIT
package workload;

/**
 * Renamed SECONDS: a thread that renames itself for each request, to "orders-a" and "billing-b" in turn, and runs the
 * method of that name. Another, whose first name is "painter", is renamed by the main thread, and runs paint().
 */
public final class Renamed {
    static volatile long sink;

    private Renamed() {
    }

    static void burn(long nanos) {
        long end = System.nanoTime() + nanos, x = end;
        while (System.nanoTime() < end)
            for (int i = 0; i < 1000; i++)
                x = x * 31 + i;
        sink = x;
    }

    static void orders() {
        burn(7_000_000);
    }

    static void billing() {
        burn(7_000_000);
    }

    static void paint() {
        burn(50_000_000);
    }

    static void serve() {
        for (;;) {
            Thread.currentThread().setName("orders-a");
            orders();
            Thread.currentThread().setName("billing-b");
            billing();
        }
    }

    public static void main(String[] args) throws Exception {
        Thread painter = new Thread(() -> {
            for (;;)
                paint();
        }, "painter");
        painter.setDaemon(true);
        painter.start();
        Thread server = new Thread(Renamed::serve, "server");
        server.setDaemon(true);
        server.start();
        Thread.sleep(200);
        painter.setName("painter-of-the-fourth-hour");
        Workload.ready();
        Thread.sleep(1000 * Workload.argument(args, 0, 60));
    }
}
