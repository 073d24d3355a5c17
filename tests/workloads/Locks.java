// SPDX-License-Identifier: MIT
package workload;

/** Locks: four threads that fight for one monitor for ever, with a little work inside and outside of it. */
public final class Locks {
    private static final Object LOCK = new Object();
    static volatile long sink;
    private static long held;

    public static void main(String[] args) throws Exception {
        Workload.ready();
        for (int i = 0; i < 4; i++)
            new Thread(Locks::fight, "fighter-" + i).start();
    }

    private static void fight() {
        for (;;) {
            synchronized (LOCK) {
                held += TwoBusy.spin(2_000);
            }
            sink += TwoBusy.spin(1_000);
        }
    }
}
