// SPDX-License-Identifier: MIT
package workload;

import java.util.concurrent.atomic.AtomicLong;

/**
 * NativeLocks ROUNDS HOLD_US: four threads take a lock of native code in turn, and have it for HOLD_US each time. Says
 * "WAITED mutex timed read write native", in ns, as the threads have measured it, and then "BROKEN bits", "EXTRA ps".
 * With -Dreferences=true native code that has many references waits for a Java lock. With -Dcycles=true says "HOOKED
 * true|false" again and again. With -Dlong=true a thread waits for ever.
 */
public final class NativeLocks {
    static final int MUTEX = 0, TIMED = 1, READ = 2, WRITE = 3, THREADS = 4;

    static native long contend(int way, int rounds, int holdMicros);

    static native long threads(int rounds);

    static native int broken();

    static native long extra();

    static native boolean hooked();

    static native void refer(Object lock);

    /** Each thread has its own name and way. Returns what they have waited, by way. */
    static AtomicLong[] run(int[] ways, int rounds, int hold) throws InterruptedException {
        AtomicLong[] waited = new AtomicLong[THREADS];
        Thread[] threads = new Thread[THREADS];
        for (int i = 0; i < THREADS; i++)
            waited[i] = new AtomicLong();
        for (int i = 0; i < THREADS; i++) {
            int way = ways[i];
            threads[i] = new Thread(() -> waited[way].addAndGet(contend(way, rounds, hold)), "taker-" + i);
            threads[i].start();
        }
        for (Thread thread : threads)
            thread.join();
        return waited;
    }

    /** Native code waits for a Java lock. */
    static void waitWithReferences() throws InterruptedException {
        Object lock = new Object();
        Thread waiter = new Thread(() -> refer(lock), "waiter");
        synchronized (lock) {
            waiter.start();
            Workload.seen(waiter, Thread.State.BLOCKED);
            Thread.sleep(300);
        }
        waiter.join();
    }

    static void waitForEver() throws InterruptedException {
        for (int i = 0; i < 2; i++)
            new Thread(() -> contend(MUTEX, 1, 900_000), "taker-" + i).start();
        Thread.sleep(500);
    }

    public static void main(String[] args) throws Exception {
        int rounds = (int) Workload.argument(args, 0, 50);
        int hold = (int) Workload.argument(args, 1, 2000);
        System.loadLibrary("locks");
        Workload.ready();
        while (Boolean.getBoolean("cycles")) {
            run(new int[] {MUTEX, TIMED, READ, WRITE}, 10, 100);
            Workload.say("HOOKED " + hooked());
        }
        if (Boolean.getBoolean("long"))
            waitForEver();
        if (Boolean.getBoolean("references"))
            waitWithReferences();
        AtomicLong[] mutexes = run(new int[] {MUTEX, MUTEX, TIMED, TIMED}, rounds, hold);
        // Two threads that read may share the lock until they are done.
        AtomicLong[] rwlocks = run(new int[] {READ, WRITE, WRITE, WRITE}, rounds, hold);
        Workload.say("WAITED " + mutexes[MUTEX] + " " + mutexes[TIMED] + " " + rwlocks[READ] + " " + rwlocks[WRITE]
            + " " + threads(rounds));
        Workload.say("BROKEN " + broken());
        Workload.say("EXTRA " + extra());
        Workload.done();
    }
}
